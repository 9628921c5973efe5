"""One text or many, joined or apart: the same decisions, the same counts, the same law."""

from __future__ import annotations

import itertools
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import toys
from deniable import PRESETS, Guarantee, Kernel, Mechanism, Policy, Relation, Sanitizer, Space
from deniable import mechanism as make
from deniable.certify import Certification, brute_force
from deniable.errors import ParameterError
from deniable.mechanism import register
from deniable.tally import Tally
from deniable.testing import seeded
from deniable.text import split

WORDS = [*toys.NAMES[:9], "The", "RED", "aNd", "it's", "W5's", "12", "3.14", "a@b.org", "👍", "Ωm"]
GAPS = [" ", ", ", "\n", "\r", "\r\n", "\t", ". ", "", "\u2028", "\x85", "--", "\ud800", "'", "\0"]
texts = st.lists(st.sampled_from([*WORDS, *GAPS]), max_size=14).map("".join) | st.text(
    st.characters(exclude_categories=()), max_size=12
)
batches = st.lists(texts, max_size=6)
one_line = st.lists(texts.map(lambda text: text.replace("\n", " ")), max_size=6)


@dataclass(frozen=True)
class Identity(Mechanism):
    """Every word stays: made here to state the law of rendering."""

    name = "identity-of-the-tests"
    summary, promise, source = "stays", "none", "this test"

    def bind(self, space: Space) -> Kernel:
        """Make the kernel."""
        return IdentityKernel(self, space)


class IdentityKernel(Kernel):
    """Certain to give back what it gets."""

    def __init__(self, mechanism: Mechanism, space: Space) -> None:
        self.mechanism, self.space = mechanism, space
        self.outputs = np.arange(len(space))
        self.guarantee = Guarantee("token", Relation("all pairs", covered=0.0), 1.0)

    def log_probs(self, ids: npt.ArrayLike) -> npt.NDArray[np.float64]:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.eye(len(self.space))[np.asarray(ids)]))

    formula = log_probs

    def draws(self, words: Any, how_many: Any) -> Any:
        return np.repeat(words, how_many)

    def promised(self, a: Any, b: Any) -> Any:
        return np.full((len(a), len(b)), np.inf)

    def certify(self) -> Certification:
        return brute_force(self)


KEEP = Policy(
    unknown="keep", numbers="keep", emails="keep", urls="keep", identifiers="keep", symbols="keep"
)


def identity(policy: Policy = KEEP) -> Sanitizer:
    return Sanitizer(Identity(epsilon=1.0), space=toys.space("random"), policy=policy)


ALL_KEPT = identity()


@given(batches)
def test_with_the_identity_kernel_texts_come_back_as_they_were(many: list[str]) -> None:
    assert ALL_KEPT.sanitize_texts(many)[0] == many
    assert [out.text for out in ALL_KEPT.sanitize_many(many)] == many
    for text in many:
        assert ALL_KEPT.sanitize(text).text == text


def test_a_mechanism_of_someone_else_is_used_like_ours() -> None:
    """Registered, made by name, bound, certified: as the built-in ones."""
    register(Identity)
    try:
        kernel = make("identity-of-the-tests", epsilon=2.0).bind(toys.space("two words"))
        assert kernel.sample([1, 0, 1]).tolist() == [1, 0, 1]
        found = kernel.certify()
        assert (found.holds, found.covered) == (True, 0.0)
    finally:
        from deniable.mechanism import _registry  # noqa: PLC0415

        del _registry["identity-of-the-tests"]


def total(tallies: list[Tally]) -> Tally:
    found = Tally()
    for tally in tallies:
        found.add(tally)
    return found


MIXED = Sanitizer("santext", 1.0, space=toys.space("random"))
APART = Sanitizer("santext", 1.0, space=toys.space("random"), policy=Policy(whitespace="collapse"))


@given(batches)
def test_a_batch_counts_what_its_texts_count(many: list[str]) -> None:
    """However texts are grouped, and whether they are joined or not."""
    outputs, whole = MIXED.sanitize_texts(many or [""])
    parts = [MIXED.sanitize_texts([text]) for text in many or [""]]
    summed = total([tally for _, tally in parts])
    assert whole == summed
    assert whole.records == len(many or [""]) == len(outputs)


@given(one_line)
def test_joined_and_apart_are_the_same(many: list[str]) -> None:
    """The fast way over one joined string decides, draws and counts like the plain way."""
    with seeded(11):
        fast = identity(Policy()).sanitize_texts(many)
    plain = [identity(Policy())._batch([text]) for text in many]
    outs = [next(one) for one in plain]
    apart = Tally()
    with seeded(12):
        for text in many:
            apart.add(identity(Policy()).sanitize_texts([text])[1])
    assert len(fast[0]) == len(many)
    assert (fast[1].tokens, fast[1].charged, fast[1].seen) == (
        apart.tokens,
        apart.charged,
        apart.seen,
    )
    for text, out, fast_text in zip(many, outs, fast[0], strict=True):
        # Known words stay; what is drawn anew (digits, unknown words) stays where it was.
        assert len(split(fast_text)) >= 1
        assert [t.kind for t in out.tokens] == [
            r.kind for r in identity(Policy()).sanitize(text).tokens
        ]
        plain_words = [w for w, t in zip(split(text)[1::2], out.tokens, strict=True) if t.action == "draw"]  # noqa: E501 # fmt: skip
        assert all(word in fast_text for word in plain_words)


@given(texts)
def test_tokens_say_where_they_stood(text: str) -> None:
    out = MIXED.sanitize(text)
    found = split(text)
    assert [text[t.start : t.end] for t in out.tokens] == found[1::2]
    # The gaps of the input and the written tokens in turn are the output.
    ends = [0, *(t.end for t in out.tokens)]
    starts = [*(t.start for t in out.tokens), len(text)]
    gaps = [text[a:b] for a, b in zip(ends, starts, strict=True)]
    written = [piece for pair in itertools.zip_longest(gaps, [t.text for t in out.tokens], fillvalue="") for piece in pair]  # noqa: E501 # fmt: skip
    assert "".join(written) == out.text == str(out)
    assert out.certificate.document["tokens"] == len(out.tokens)


@given(batches)
def test_collapsed_texts_are_counted_alike(many: list[str]) -> None:
    assert APART.sanitize_texts(many)[1] == MIXED.sanitize_texts(many)[1]


def endless() -> Iterator[str]:
    for number in itertools.count():
        yield f"The red w5 and blue {number % 7} of it"


def test_an_endless_stream_is_sanitized_lazily(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deniable.batches.BATCH_TEXTS", 50)
    asked = 0

    def counted() -> Iterator[str]:
        nonlocal asked
        for text in endless():
            asked += 1
            yield text

    stream = MIXED.sanitize_many(counted())
    assert asked == 0
    next(stream)
    assert asked == 50
    for _ in range(400):
        next(stream)
    assert asked <= 450


def test_an_endless_stream_needs_constant_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deniable.batches.BATCH_TEXTS", 50)
    stream = MIXED.sanitize_many(endless())
    sizes = []
    tracemalloc.start()
    try:
        for _ in range(4):
            for _ in range(100):
                next(stream)
            sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert sizes[-1] < sizes[1] + 2_000_000


def test_what_is_remembered_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streams of ever new tokens; a stream that waits still tells what became of its own."""
    monkeypatch.setattr("deniable.plan.REMEMBERED", 20)
    sanitizer = Sanitizer("santext", 1.0, space=toys.space("random"))
    waiting = sanitizer.sanitize_many(["red 1 a@b.org", "12 blue"])
    first = next(waiting)
    for number in range(200):
        sanitizer.sanitize(f"red new{'x' * number} of")
    assert len(sanitizer.plan) <= 25
    assert [t.kind for t in first.tokens] == ["word", "number", "email"]
    assert [t.kind for t in next(waiting).tokens] == ["number", "word"]


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_whole_choices_and_can_be_changed(name: str) -> None:
    preset, space = PRESETS[name], toys.space("random")
    plain = Sanitizer(preset=name, space=space)
    assert plain.mechanism.name == preset.mechanism
    assert plain.mechanism.epsilon == preset.parameters["epsilon"]
    assert plain.policy == preset.policy
    changed = Sanitizer(preset=name, epsilon=2.5, space=space, calibrate="paper")
    assert changed.mechanism.epsilon == 2.5
    assert changed.mechanism.parameters()["calibrate"] == "paper"
    own = Sanitizer(preset=name, policy=KEEP, space=space)
    assert own.policy == KEEP
    assert plain.kernel.certify().holds
    assert plain.sanitize("The red 12.").certificate.verify(space).holds


def test_without_a_mechanism_it_is_balanced() -> None:
    assert Sanitizer(space=toys.space("random")).mechanism.name == PRESETS["balanced"].mechanism


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"mechanism": "santext"}, "santext needs epsilon"),
        ({"mechanism": "santext", "epsilon": -1.0}, "epsilon must be"),
        ({"mechanism": "santext", "epsilon": 1.0, "preset": "strict"}, "not both"),
        ({"preset": "strictest"}, "no preset 'strictest'; there are: strict, balanced, fluent"),
        ({"mechanism": make("santext", epsilon=1.0), "epsilon": 1.0}, "has its own epsilon"),
        ({"mechanism": "santext", "epsilon": 1.0, "K": 5}, "santext has no parameter 'K'"),
    ],
)
def test_contradictions_are_refused(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        Sanitizer(space=toys.space("random"), **arguments)


def test_the_default_space_is_used_at_once() -> None:
    out = Sanitizer("custext", 2.0).sanitize("Alice flew to Paris.")
    assert out.certificate.space["size"] == len(Space.default())
    assert out.certificate.document["tokens_charged"] == 4
