"""A certificate says what was promised, and a changed number doesn't pass."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

import toys
from deniable import Certificate, Guarantee, Policy, Relation, Sanitizer, mechanisms
from deniable.audit import audit
from deniable.errors import CertificateError, DeniableError, ParameterError
from deniable.kernels import noisy

TEXT = "The red w5, and blue of W9! 1234 it's unknown a@b.org"
WANTED = {"mechanism", "parameters", "space", "policy", "guarantee", "document", "in_clear"}


def made(name: str = "santext", **parameters: Any) -> tuple[Sanitizer, Certificate]:
    given = next(toys.settings_of(name, mechanisms()[name]))
    sanitizer = Sanitizer(name, 1.0, space=toys.space_for(name), **{**given, **parameters})
    return sanitizer, sanitizer.sanitize(TEXT).certificate


@pytest.fixture(autouse=True)
def quick_audits(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is looked at here is the comparison, not how many samples an audit draws."""
    monkeypatch.setattr(noisy, "audit", partial(audit, draws=200))


@pytest.mark.parametrize("name", mechanisms())
def test_a_certificate_survives_json_and_verifies(name: str) -> None:
    sanitizer, certificate = made(name)
    data = json.loads(certificate.to_json())
    assert set(data) >= WANTED | {"randomness", "version"}
    assert set(data["space"]) >= {"name", "hash", "size", "metric"}
    again = Certificate.from_json(certificate.to_json())
    assert again == certificate
    found = again.verify(sanitizer.space)
    assert found.problems == ()
    assert found.holds
    assert certificate.mechanism == name


def test_the_numbers_are_right() -> None:
    sanitizer, certificate = made()
    document = certificate.document
    guarantee = sanitizer.guarantee
    assert document["tokens"] == 11
    assert document["tokens_charged"] == 7  # the words of the space
    each = guarantee.epsilon * guarantee.relation.diameter + guarantee.slack
    assert document["epsilon"] == pytest.approx(7 * each)
    assert document["largest_record"]["epsilon"] == pytest.approx(7 * each)
    counts = {name: entry["count"] for name, entry in certificate.in_clear.items()}
    assert counts["length"] == 11
    assert counts["number"] == 1
    assert counts["unknown word"] == 2
    assert counts["email"] == 1
    assert counts["white space"] == 10
    assert counts["punctuation"] == 2


def numbers(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the place of every number."""
    if isinstance(data, dict | list):
        for key, value in data.items() if isinstance(data, dict) else enumerate(data):
            yield from numbers(value, (*path, key))
    elif isinstance(data, int | float) and not isinstance(data, bool):
        yield path


def changed(data: Any, path: tuple[Any, ...], change: Any) -> str:
    copy = json.loads(json.dumps(data))
    place = copy
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = change(place[path[-1]])
    return json.dumps(copy)


def passes(text: str, sanitizer: Sanitizer) -> bool:
    """Whether a reader of this certificate would be told that it holds."""
    try:
        return Certificate.from_json(text).verify(sanitizer.space).holds
    except DeniableError:
        return False


# What was counted in the private text: it can't be counted again without it. Changing a number of
# tokens charged alone is seen, because the composed epsilon no longer fits.
COUNTED = {("document", "tokens"), ("document", "records"), ("document", "skipped")}


@pytest.mark.parametrize("name", mechanisms())
def test_a_changed_number_is_seen(name: str) -> None:
    sanitizer, certificate = made(name)
    data = json.loads(certificate.to_json())
    places = list(numbers(data))
    assert len(places) > 15
    for path in places:
        for change in (lambda v: v + 1, lambda v: v * 1.01 + 1e-3, lambda v: -v - 1):
            assert not passes(changed(data, path, change), sanitizer), path


@pytest.mark.parametrize("name", mechanisms())
def test_a_changed_number_under_a_new_digest_is_recomputed(name: str) -> None:
    """A forger recomputes the digest; then only counts of the private text can be changed."""
    sanitizer, certificate = made(name)
    data = json.loads(certificate.to_json())
    unseen = set()
    for path in numbers(data):
        text = changed(data, path, lambda v: v + 1)
        forged = json.loads(text)
        forged["digest"] = ""
        if passes(json.dumps(dataclasses.asdict(Certificate(**forged))), sanitizer):
            unseen.add(path)
    guarantee = sanitizer.guarantee
    allowed = COUNTED | {path for path in unseen if path[0] == "in_clear"}
    if guarantee.epsilon == 0:  # `random` promises 0 whatever is asked for
        allowed |= {("document", "tokens_charged"), ("parameters", "epsilon")}
        allowed |= {("document", "largest_record", "tokens_charged")}
    if name == "rantext":  # its promise is the same for every epsilon
        allowed |= {("parameters", "epsilon")}
    # How many clusters were asked for doesn't matter when they come out the same.
    assert unseen <= allowed


def test_what_a_forger_can_change_is_what_was_counted() -> None:
    sanitizer, certificate = made()
    data = json.loads(certificate.to_json())
    for path in (("document", "records"), ("in_clear", "number", "count")):
        forged = json.loads(changed(data, path, lambda v: v + 1))
        forged["digest"] = ""
        assert passes(json.dumps(dataclasses.asdict(Certificate(**forged))), sanitizer)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("mechanism", "random"),
        ("mechanism", "nothing"),
        ("parameters", {"epsilon": 1.0, "calibrate": "tight"}),
        ("parameters", {"epsilon": -1.0}),
        ("policy", {"numbers": "mask"}),
        ("policy", {"numbers": "nothing"}),
        ("randomness", "os entropy"),
        ("version", "9"),
        ("in_clear", {}),
    ],
)
def test_a_changed_word_is_seen(field: str, value: Any) -> None:
    sanitizer, certificate = made()
    data = json.loads(certificate.to_json())
    data[field] = value
    assert not passes(json.dumps(data), sanitizer)


def test_another_space_is_seen() -> None:
    _, certificate = made()
    for other in ("unit sphere", "one word"):
        found = certificate.verify(toys.space(other))
        assert not found.holds
        assert any("space.hash" in problem for problem in found.problems)
    assert not certificate.verify(toys.space("random", "angular")).holds


BROKEN = [
    "", "[]", "5", "{", "null", '{"format": 1}', '"text"', "{\"a\": NaN}",
]  # fmt: skip


@pytest.mark.parametrize("text", BROKEN)
def test_what_is_no_certificate_is_refused(text: str) -> None:
    with pytest.raises(CertificateError, match="not a certificate"):
        Certificate.from_json(text)


ANYTHING: tuple[Any, ...] = (
    None, 5, -1, 10**400, "x", [], {}, [[]], {"a": 1}, math.nan, True,
)  # fmt: skip


def test_any_part_replaced_by_anything_is_refused_or_not_verified() -> None:
    sanitizer, certificate = made()
    data = json.loads(certificate.to_json())
    places: list[tuple[str, ...]] = [(key,) for key in data]
    places += [(key, inner) for key in data if isinstance(data[key], dict) for inner in data[key]]
    for path in places:
        for value in ANYTHING:
            text = changed(data, path, partial(lambda new, _: new, value))
            if json.loads(text) != data:
                assert not passes(text, sanitizer), (path, value)


def test_a_users_similarity_is_named_and_not_verified() -> None:
    def alike(a: Any, b: Any) -> Any:
        return a @ b.T

    sanitizer = Sanitizer("custext", 1.0, space=toys.space("random"), K=4, similarity=alike)
    certificate = sanitizer.sanitize("red").certificate
    assert "alike" in certificate.parameters["similarity"]
    found = certificate.verify(sanitizer.space)
    assert not found.holds
    assert "user's function" in found.problems[-1]


def test_describe_says_what_counts() -> None:
    for name in mechanisms():
        text = made(name)[1].describe()
        for word in ("mechanism", "promise", "document", "in clear", "os-entropy", name):
            assert word in text


def test_exposed_words_are_listed() -> None:
    """santext+ lets frequent words through, custext+ copies stop words: both are counted."""
    _, certificate = made("santext+", w=0.5)
    assert certificate.in_clear["frequent words"]["count"] > 0
    _, certificate = made("custext+")
    assert certificate.in_clear["stop words"]["count"] == 3  # the, and, of
    assert certificate.document["tokens_charged"] == 4


def test_nothing_that_passes_is_left_out() -> None:
    for setting in ("unknown", "numbers", "emails"):
        policy = Policy.from_dict({setting: "keep"})
        out = Sanitizer("santext", 1.0, space=toys.space("random"), policy=policy).sanitize(TEXT)
        kind = {"unknown": "unknown word", "numbers": "number", "emails": "email"}[setting]
        assert "seen in full" in out.certificate.in_clear[kind]["what"]


def test_a_guarantee_composes_and_survives_json() -> None:
    guarantee = Guarantee("token", Relation("metric", metric="m", diameter=2.0), 3.0, 1e-6, 1e-8)
    assert Guarantee.from_dict(json.loads(json.dumps(guarantee.to_dict()))) == guarantee
    ten = guarantee.repeat(10)
    assert ten.worst_epsilon == pytest.approx(10 * guarantee.worst_epsilon)
    assert ten.delta == pytest.approx(1e-5)
    assert ten.unit == "document"
    assert guarantee.repeat(0).worst_epsilon == 0
    for kind in ("all pairs", "within one output set", "metric"):
        assert "P(output | x)" in Guarantee("token", Relation(kind, metric="m"), 1.0).describe()


@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf])
def test_a_guarantee_of_nonsense_is_refused(value: float) -> None:
    for name in ("epsilon", "delta", "slack"):
        with pytest.raises(ParameterError):
            replace(Guarantee("token", Relation("all pairs"), 1.0), **{name: value})  # type: ignore[arg-type]
    for name in ("covered", "diameter"):
        with pytest.raises(ParameterError):
            replace(Relation("metric"), **{name: value})  # type: ignore[arg-type]
    with pytest.raises(ParameterError):
        Guarantee("token", Relation("all pairs"), 1.0).repeat(-1)


def test_the_largest_record_is_counted() -> None:
    sanitizer = Sanitizer("santext", 1.0, space=toys.space("random"))
    _, tally = sanitizer.sanitize_texts(["red", "red blue of", "and 17", ""])
    document = sanitizer.certificate(tally).document
    assert (document["records"], document["tokens_charged"]) == (4, 5)
    assert document["largest_record"]["tokens_charged"] == 3
    assert np.isclose(document["largest_record"]["epsilon"], 3 / 5 * document["epsilon"])


def test_a_key_that_is_there_twice_is_refused() -> None:
    """Readers don't agree on which of the two counts."""
    text = made("random")[1].to_json()
    with pytest.raises(CertificateError, match="not JSON"):
        Certificate.from_json(text.replace('"epsilon":', '"epsilon": 0.01, "epsilon":', 1))
