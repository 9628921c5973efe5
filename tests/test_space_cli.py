"""`deniable space`: what build makes, inspect reads; private words never come out."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from deniable.errors import DeniableError, InputError, ParameterError
from deniable.space import Space

# The package's own name `space` is the command, not the module.
commands = import_module("deniable.cli.space")
GLOVE = "the 0 0\nred 3 4\nblue 0 1\ngreen 1 0\n"


@pytest.fixture
def glove(tmp_path: Path) -> Path:
    (tmp_path / "glove.txt").write_text(GLOVE)
    return tmp_path / "glove.txt"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(commands.space, [str(a) for a in arguments])


def run_json(*arguments: object) -> dict[str, Any]:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.exception
    return dict(json.loads(result.stdout))


def test_build_and_inspect_say_the_same(glove: Path, tmp_path: Path) -> None:
    made = run_json("build", "--vectors", glove, "-o", tmp_path / "a.space")
    assert made["diameter"] == 5.0
    assert (made["name"], made["size"], made["metric"]) == ("a", 4, "euclidean")
    assert run_json("inspect", tmp_path / "a.space") == made
    assert Space.load(tmp_path / "a.space").hash == made["hash"]


def test_build_with_options(glove: Path, tmp_path: Path) -> None:
    unit = run_json("build", "--vectors", glove, "--unit-diameter", "-o", tmp_path / "u")
    assert unit["diameter"] == pytest.approx(1, abs=1e-6)
    less = run_json(
        *("build", "--vectors", glove, "--limit", 3, "--dimensions", 1),
        *("--quantise", "-o", tmp_path / "q"),
    )
    assert (less["size"], less["dimension"]) == (3, 1)
    assert np.load(tmp_path / "q" / "vectors.npy").dtype == np.int8


def test_build_embeds_a_word_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fake(words: tuple[str, ...], folder: Path | None, *, progress: bool) -> Any:
        assert folder is None
        return np.eye(len(words), dtype=np.float32)

    monkeypatch.setattr(commands, "embed", fake)
    (tmp_path / "words.txt").write_text("red\nblue\n\nred\n", "utf-8")
    made = run_json(
        "build", "--words", tmp_path / "words.txt", "--encoder", "-o", tmp_path / "w.space"
    )
    assert made["diameter"] == pytest.approx(2**0.5)
    assert Space.load(tmp_path / "w.space").words == ("red", "blue")


def test_inspect_shows_the_default_space() -> None:
    result = run("inspect", "--neighbours", "hospital")
    assert result.exit_code == 0
    assert "36,000" in result.stdout
    assert "hospital: hospitals" in result.stdout


def test_coverage_counts_and_names_no_word(glove: Path, tmp_path: Path) -> None:
    private = "Zanzibarella"
    (tmp_path / "text.txt").write_text(f"The red {private}, 12 the RED.\n{private} blue\n")
    arguments = ("inspect", glove, "--coverage", tmp_path / "text.txt")
    assert run_json(*arguments)["coverage"] == {
        "words": 7,
        "words_in_space": 5,
        "distinct": 4,
        "distinct_in_space": 3,
    }
    result = run(*arguments)
    assert "5 of 7 are in the space (71.4%)" in result.stdout
    assert private.lower() not in result.output.lower()


def test_an_empty_text_has_no_share(glove: Path, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("")
    assert "0 of 0" in run("inspect", glove, "--coverage", tmp_path / "text.txt").stdout


def chain(error: BaseException | None) -> list[str]:
    """Everything that an error and those behind it would show."""
    shown = []
    while error is not None:
        shown.append(repr(error))
        error = error.__cause__ or error.__context__
    return shown


def test_errors_are_one_line_and_hold_no_text(glove: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_bytes(b"the red\ncanary \xff\n")
    error = run("inspect", glove, "--coverage", tmp_path / "bad.txt").exception
    assert isinstance(error, InputError)
    assert "line 2 is not UTF-8" in str(error)
    error = run("inspect", glove, "--neighbours", "red,canary").exception
    assert isinstance(error, ParameterError)
    assert "word 2 of 2" in str(error)
    assert not any("canary" in line for line in chain(error))


@pytest.mark.parametrize(
    "arguments",
    [
        ["-o", "OUT"],
        ["--words", "GLOVE", "--vectors", "GLOVE", "-o", "OUT"],
        ["--vectors", "GLOVE", "--encoder", "-o", "OUT"],
        ["--vectors", "GLOVE", "--quantise", "--unit-diameter", "-o", "OUT"],
        ["--vectors", "GLOVE", "--dimensions", "3", "-o", "OUT"],
        ["--vectors", "MISSING", "-o", "OUT"],
        ["--words", "MISSING", "-o", "OUT"],
        ["--words", "EMPTY", "-o", "OUT"],
        ["--vectors", "GLOVE", "--metric", "cosine", "-o", "OUT"],
    ],
)
def test_a_wrong_call_writes_nothing(glove: Path, tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "empty.txt").write_text("")
    names = {"GLOVE": glove, "OUT": tmp_path / "out", "MISSING": tmp_path / "none"}
    names["EMPTY"] = tmp_path / "empty.txt"
    error = run("build", *(names.get(a, a) for a in arguments)).exception
    assert isinstance(error, DeniableError)
    assert error.exit_code == 2
    assert "\n" not in str(error)
    assert not (tmp_path / "out").exists()


TREE = "dog\tanimal\ncat\tanimal\noak\tplant\n" + "".join(
    f"{word}\tthing\n" for word in ("animal", "plant", "dog", "cat", "oak")
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "tree.tsv").write_text(TREE)
    return tmp_path / "tree.tsv"


def test_a_hierarchy_becomes_a_poincare_space(tree: Path, tmp_path: Path) -> None:
    options = ("--poincare", tree, "--dimensions", 3, "--epochs", 500)
    made = run_json("build", *options, "-o", tmp_path / "tree.space")
    assert (made["size"], made["dimension"], made["metric"]) == (6, 3, "poincare")
    assert made["MAP"] > 0.9
    again = run_json("build", *options, "-o", tmp_path / "again.space")
    assert again["hash"] == made["hash"]
    shown = run("build", *options, "-o", tmp_path / "again.space").stdout
    assert f"MAP        {made['MAP']:.4f}" in shown


def test_aliases_are_the_words_of_a_poincare_space(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "names.tsv").write_text("puppy\tdog\nhound\tdog\ntree\tplant\nfish\tfish\n")
    run_json(
        "build", "--poincare", tree, "--aliases", tmp_path / "names.tsv", "--epochs", 2,
        "-o", tmp_path / "tree.space",
    )  # fmt: skip
    space = Space.load(tmp_path / "tree.space")
    assert space.words == ("puppy", "hound", "tree")
    assert space.distances([0], [1])[0, 0] == 0.0


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("dog animal\n", "line 1: a line has two words with a tab between"),
        ("dog\tanimal\n\noak\t\n", "line 3: a line has"),
        ("\n", "no pairs of different words"),
        ("dog\tdog\n", "no pairs of different words"),
    ],
)
def test_a_broken_hierarchy_is_told_by_its_line(content: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "tree.tsv").write_text(content)
    target = tmp_path / "out.space"
    result = run("build", "--poincare", tmp_path / "tree.tsv", "-o", target)
    assert isinstance(result.exception, InputError)
    assert said in str(result.exception)
    assert not target.exists()


def test_other_options_do_not_go_with_a_hierarchy(tree: Path, tmp_path: Path) -> None:
    for more in (("--unit-diameter",), ("--metric", "cosine"), ("--words", tree), ("--limit", 3)):
        result = run("build", "--poincare", tree, *more, "-o", tmp_path / "out.space")
        assert isinstance(result.exception, ParameterError)
        assert "--poincare trains vectors of its own" in str(result.exception)
    result = run("build", "--aliases", tree, "--vectors", tree, "-o", tmp_path / "out.space")
    assert "--aliases are names in the pairs" in str(result.exception)


def test_mammals_are_given_back(shared_data: Path, tmp_path: Path) -> None:
    """The nouns take minutes: bench/README.md has their number."""
    pairs = shared_data / "wordnet" / "mammal_closure.tsv"
    made = run_json(
        "build", "--poincare", pairs, "--dimensions", 5, "--epochs", 60, "-o", tmp_path / "m.space"
    )
    assert made["MAP"] > 0.75
