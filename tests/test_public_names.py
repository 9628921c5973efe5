"""The public names, the tree of exceptions and the pages of the mechanisms are what they say."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import deniable
from deniable import errors, mechanism, mechanisms, register
from deniable.errors import DeniableError, ParameterError, UnknownMechanismError
from deniable.mechanism import Mechanism

ROOT = Path(__file__).parent.parent
PUBLIC = [
    "PRESETS", "Certificate", "Certification", "DeniableError", "Guarantee", "Kernel",
    "Mechanism", "Policy", "Relation", "Sanitized", "Sanitizer", "Space", "Verification",
    "mechanism", "mechanisms", "register",
]  # fmt: skip
BUILT_IN = {"clusant", "custext", "custext+", "random", "santext", "santext+"}


def test_public_names_are_pinned() -> None:
    assert deniable.__all__ == PUBLIC
    in_order = [name for name in PUBLIC if not name.isupper()]
    assert sorted(in_order) == in_order
    for name in PUBLIC:
        one = getattr(deniable, name)
        assert name == "PRESETS" or (one.__doc__ or "").strip(), name


def test_a_public_name_stays_what_it_is() -> None:
    """The folder `mechanisms` doesn't take the place of the function when it is loaded."""
    code = "import deniable; deniable.mechanisms(); from deniable import mechanisms; mechanisms()"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_tree_drawn_in_errors_is_the_real_one() -> None:
    drawn = re.findall(
        r"^    (?:[|] {3}| {4})*(?:[|`]-- )?([A-Z]\w+Error)\b", errors.__doc__ or "", re.M
    )
    real = [
        name
        for name, one in vars(errors).items()
        if isinstance(one, type) and issubclass(one, DeniableError)
    ]
    assert sorted(drawn) == sorted(real)
    assert drawn[0] == "DeniableError"
    for name in real:
        one = getattr(errors, name)
        said = re.search(rf"^.*\b{name}\b\s+(.*)$", errors.__doc__ or "", re.M)
        assert said is not None
        assert ("exit code 1" in said[1]) == (one.exit_code == 1)
        assert ("ValueError" in said[1]) <= issubclass(one, ValueError)
        assert issubclass(one, DeniableError)


@pytest.mark.parametrize("name", mechanisms())
def test_every_mechanism_is_documented(name: str) -> None:
    page = ROOT / "docs" / "mechanisms" / f"{name.replace('+', '-plus')}.md"
    assert page.is_file(), f"{page} is missing"
    cls = mechanisms()[name]
    for text in (cls.summary, cls.promise, cls.source, cls.__doc__):
        assert text


def test_the_built_in_mechanisms_are_there() -> None:
    assert set(mechanisms()) >= BUILT_IN
    assert list(mechanisms()) == sorted(mechanisms())


@pytest.mark.parametrize("name", mechanisms())
@pytest.mark.parametrize(
    "epsilon",
    [0, 0.0, -1.0, float("nan"), float("inf"), "1", None, True, [1.0], 10**400],
    ids=lambda value: str(value)[:8],
)
def test_an_impossible_epsilon_is_refused_when_the_object_is_made(name: str, epsilon: Any) -> None:
    with pytest.raises(ParameterError, match=r"^epsilon must be a "):
        mechanism(name, epsilon=epsilon)


def test_unknown_names_are_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownMechanismError, match="did you mean clusant"):
        mechanism("clusan", epsilon=1.0)
    with pytest.raises(UnknownMechanismError, match="there are: "):
        mechanism("?", epsilon=1.0)
    with pytest.raises(ParameterError, match="did you mean calibrate"):
        mechanism("santext", epsilon=1.0, calibrated="tight")
    with pytest.raises(ParameterError, match="needs epsilon"):
        mechanism("santext")


BAD: list[tuple[str, dict[str, Any]]] = [
    ("santext", {"calibrate": "loose"}),
    ("santext+", {"w": 0.0}),
    ("santext+", {"w": 1.5}),
    ("santext+", {"p": float("nan")}),
    ("santext+", {"p": -0.1}),
    ("custext", {"K": 1}),
    ("custext", {"K": 2.5}),
    ("custext", {"mapping": "nearest"}),
    ("custext", {"pos": "noun"}),
    ("custext", {"pos": ["noun"]}),
    ("custext", {"pos": 1}),
    ("custext", {"pos": True, "mapping": [["a", "b"]]}),
    ("custext", {"pos": [["a"], ["a"]]}),
    ("optimal", {"mapping": "balanced"}),
    ("optimal", {"mapping": [1, 2]}),
    ("optimal", {"mapping": [None]}),
    ("custext", {"mapping": [[1]]}),
    ("optimal", {"pos": [1]}),
    ("clusant", {"clusters": [1]}),
    ("clusant", {"pos": True, "clusters": [["a"]]}),
    ("diffractor", {"lists": 10**13}),
    ("mahalanobis", {"lam": 0.9999999999999999}),
    ("optimal", {"bayes_cap": 0.01}),
    ("optimal", {"bayes_cap": 1.5}),
    ("optimal", {"adaptive": 1}),
    ("tem", {"beta": 0}),
    ("tem", {"beta": 1.0}),
    ("diffractor", {"lists": 0}),
    ("rantext", {"share": 0}),
    ("rantext", {"share": 1}),
    ("custext", {"mapping": ["ab"]}),
    ("custext", {"similarity": "dot"}),
    ("custext", {"normalize": "no"}),
    ("clusant", {"k": 0}),
    ("clusant", {"k": float("inf")}),
    ("clusant", {"clusters": 0}),
    ("clusant", {"clusters": "abc"}),
    ("clusant", {"clusters": True}),
]


@pytest.mark.parametrize(("name", "parameters"), BAD, ids=str)
def test_impossible_parameters_are_refused(name: str, parameters: dict[str, Any]) -> None:
    with pytest.raises(ParameterError) as caught:
        mechanism(name, epsilon=1.0, **parameters)
    assert "\n" not in str(caught.value)


def test_a_name_can_be_taken_once() -> None:
    taken = type("Other", (Mechanism,), {"name": "santext", "__module__": "somewhere"})
    with pytest.raises(ParameterError, match="two mechanisms are called 'santext'"):
        register(taken)
    assert mechanisms()["santext"].__module__ == "deniable.mechanisms.santext"


def test_nothing_is_pickled() -> None:
    for path in (ROOT / "src").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"\bimport (pickle|dill|joblib|shelve|marshal)\b", text), path
        assert "allow_pickle=True" not in text, path
        for call in re.findall(r"np\.load\(.*", text):
            assert "allow_pickle=False" in call, path


@pytest.mark.parametrize("name", mechanisms())
def test_every_parameter_is_explained(name: str) -> None:
    cls = mechanisms()[name]
    assert [field.name for field in fields(cls)] == list(cls.explains)
