"""Lengths that are hidden: every text of a bucket has one length, one charge, one law."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import toys
from deniable import Certificate, Policy, Sanitizer
from deniable.errors import InputError, PolicyError
from deniable.length import LEAST, Length, length_of
from deniable.presets import PRESETS
from deniable.sampling import using
from deniable.testing import Seeded

BARE = PRESETS["strict"].policy
SPACE = toys.space("random")
SANITIZERS = {
    name: Sanitizer("santext", 2.0, space=SPACE, policy=replace(BARE, length=name))
    for name in ("bucketed", "padded:40", "fixed:5")
}
some_texts = st.lists(
    st.lists(
        st.sampled_from(["red", "the", "w1", "2024", "Unheard", "a@b.cd", "nice👍"]), max_size=30
    )
    .map(" ".join)
    .map(lambda text: text.replace("w1 the", "w1,  the.")),
    max_size=5,
)


def shown(name: str, tokens: int) -> int:
    """How many tokens an output has, written down anew."""
    if name == "bucketed":
        return min(2**k for k in range(3, 20) if 2**k >= tokens)
    return int(name.partition(":")[2])


@given(some_texts, st.sampled_from(sorted(SANITIZERS)))
def test_every_text_has_the_length_that_is_shown(texts: list[str], name: str) -> None:
    plain = Sanitizer("santext", 2.0, space=SPACE, policy=BARE)
    sanitizer = SANITIZERS[name]
    outs = list(sanitizer.sanitize_many(texts))
    for text, out in zip(texts, outs, strict=True):
        tokens = len(plain.sanitize(text).tokens)
        assert out.certificate.document["tokens"] == shown(name, tokens)
        # What is said of tokens is said of the text's own.
        assert len(out.tokens) == min(tokens, shown(name, tokens))
        assert all(token.end <= len(text) for token in out.tokens)
        assert out.certificate.verify(SPACE).holds
    together, tally = sanitizer.sanitize_texts(texts)
    assert [len(text.split()) for text in together] == [len(out.text.split()) for out in outs]
    assert tally.tokens == sum(out.certificate.document["tokens"] for out in outs)


@given(st.integers(0, 5000))
def test_a_bucket_is_the_next_power_of_two(tokens: int) -> None:
    found = Length("bucketed").shown(tokens)
    assert found >= max(tokens, LEAST)
    assert found.bit_count() == 1
    assert found == LEAST or found < 2 * tokens


def test_what_fills_a_text_is_drawn_and_paid_like_a_word_of_the_text() -> None:
    """The filling's law is that of the filling word, tokens of the text apart."""
    sanitizer = SANITIZERS["bucketed"]
    word = sanitizer.plan.filler
    assert word in SPACE.index
    with using(Seeded(3)):
        filled, tally = sanitizer.sanitize_texts([""] * 4000)
    assert tally.charged == 4000 * LEAST
    assert tally.largest == LEAST
    counts = np.bincount(
        [SPACE.index[one] for text in filled for one in text.split()], minlength=len(SPACE)
    )
    chances = np.exp(sanitizer.kernel.log_probs([SPACE.index[word]])[0])
    expected = chances * counts.sum()
    statistic = float((((counts - expected) ** 2) / expected).sum())
    # Chi square with len(SPACE) - 1 degrees is this far out for one seed in 10^9; ours is fixed.
    assert statistic < len(SPACE) + 12 * np.sqrt(2 * len(SPACE)) + 30
    other = np.exp(sanitizer.kernel.log_probs([(SPACE.index[word] + 1) % len(SPACE)])[0])
    wrong = other * counts.sum()
    assert float((((counts - wrong) ** 2) / wrong).sum()) > 10 * statistic


def test_the_certificate_says_what_is_seen_and_who_is_a_neighbour() -> None:
    for name, sanitizer in SANITIZERS.items():
        certificate = sanitizer.sanitize("red the w1").certificate
        assert certificate.in_clear["length"]["what"] == length_of(name).seen()
        assert certificate.document["neighbours"] == length_of(name).neighbours()
        assert certificate.policy["length"] == name
        forged = Certificate.from_json(
            certificate.to_json().replace(length_of(name).seen(), length_of("declared").seen())
        )
        assert not forged.verify(SPACE).holds


def test_a_text_that_is_too_long_is_refused_or_cut() -> None:
    long = "red " * 41
    with pytest.raises(InputError, match="more than 40 tokens"):
        SANITIZERS["padded:40"].sanitize(long)
    assert len(SANITIZERS["fixed:5"].sanitize(long).text.split()) == 5


@pytest.mark.parametrize("text", ["", "long", "padded", "padded:0", "fixed:-1", "fixed:1e3", 8])
def test_other_lengths_are_refused(text: object) -> None:
    with pytest.raises(PolicyError, match="policy length is declared"):
        Policy(length=text)  # type: ignore[arg-type]


def test_a_length_is_not_hidden_where_something_else_shows_it() -> None:
    with pytest.raises(PolicyError, match="needs punctuation=drop, whitespace=collapse"):
        Policy(length="bucketed")
    with pytest.raises(PolicyError, match="promises between all words"):
        Sanitizer("custext", 1.0, K=4, space=SPACE, policy=replace(BARE, length="bucketed"))
