"""Gaps, digits and settings of a policy: what is written for them, and what is refused."""

from __future__ import annotations

import json
import unicodedata
from random import Random
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from deniable.errors import PolicyError
from deniable.policy import _CHOICES, Policy, fresh_digits
from deniable.stopwords import STOPWORDS
from deniable.text import split

ANY_CHARACTER = st.characters() | st.characters(categories=["Cs", "Cn", "Co", "N", "P", "S", "M"])
TEXTS = st.text(ANY_CHARACTER | st.sampled_from("0٣½Ⅷ.,-"))
POLICIES = st.builds(
    Policy,
    **{name: st.sampled_from(choices) for name, choices in _CHOICES.items()},
    public=st.frozensets(st.sampled_from(["alice", "2024", "don't", "a@b.org", "→"])),
)

# ---- gaps

NOT_UNDERSCORE = st.characters(categories=["P", "Zs"], exclude_characters="_")
GAPS = st.text(st.sampled_from(" \n\t\u3000.,-'’$€。(«<=") | NOT_UNDERSCORE)


@given(GAPS)
def test_a_kept_gap_is_written_as_it_is(gap: str) -> None:
    assert Policy().gap(gap) == gap


@given(GAPS, st.sampled_from(["keep", "drop"]), st.sampled_from(["keep", "collapse"]))
def test_words_that_were_apart_stay_apart(gap: str, punctuation: str, whitespace: str) -> None:
    policy = Policy(punctuation=punctuation, whitespace=whitespace)
    written = policy.gap(gap)
    assert written or (not gap and not policy.even_gaps)
    if punctuation == "drop":
        assert written.strip() == ""
    if whitespace == "collapse":
        assert "  " not in written
        assert all(c == " " or not c.isspace() for c in written)


@given(GAPS)
def test_every_character_of_a_gap_is_counted_once(gap: str) -> None:
    counts = Policy().gap_counts(gap)
    assert sum(counts.values()) == len(gap)
    assert counts["white space"] == sum(c.isspace() for c in gap)
    assert counts["signs"] == sum(unicodedata.category(c)[0] == "S" for c in gap)


# ---- digits


@given(TEXTS, st.randoms(use_true_random=False))
def test_fresh_digits_replace_digits_and_nothing_else(source: str, random: Random) -> None:
    asked: list[int] = []

    def randbelow(bound: int, count: int) -> list[int]:
        asked.extend(random.randrange(bound) for _ in range(count))
        return asked

    written = fresh_digits(source, randbelow)
    assert len(written) == len(source)
    spots = [at for at, c in enumerate(source) if unicodedata.category(c)[0] == "N"]
    assert [int(written[at]) for at in spots] == asked
    assert all(
        a == b for at, (a, b) in enumerate(zip(source, written, strict=True)) if at not in spots
    )


# ---- settings


@given(POLICIES)
def test_json_and_back(policy: Policy) -> None:
    again = Policy.from_dict(json.loads(json.dumps(policy.to_dict())))
    assert again == policy
    assert hash(again) == hash(policy)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"unknown": "drew"}, "did you mean 'draw'"),
        ({"numbers": None}, "policy numbers can't be 'None': choose from digits"),
        ({"emails": ["mask"]}, "policy emails"),
        ({"symbol": "draw"}, "did you mean 'symbols'"),
        ({"public": "word"}, "must be a list of words"),
        ({"public": None}, "must be a list of words"),
        ({"public": ["good", 3]}, "word 2 is not a string"),
        ({"public": ["Secret"]}, "word 1 must be one token in lower case"),
        ({"public": ["two words"]}, "word 1 must be one token in lower case"),
        ([], "a policy is an object of settings"),
    ],
)
def test_a_wrong_setting_is_refused_in_one_line(settings: Any, message: str) -> None:
    with pytest.raises(PolicyError) as refused:
        Policy.from_dict(settings)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)
    assert "Secret" not in str(refused.value)


def test_a_public_word_may_be_written_with_a_curly_apostrophe() -> None:
    assert Policy(public=frozenset({"o’clock"})).decide("o'clock", {}).kind == "public word"


def test_the_stop_words_are_single_tokens_in_lower_case() -> None:
    assert all(split(word) == ["", word, ""] and word == word.lower() for word in STOPWORDS)


@given(st.text(ANY_CHARACTER, min_size=1))
def test_any_single_token_in_lower_case_can_be_declared(source: str) -> None:
    tokens = [t for t in split(source)[1::2] if t == t.lower() and split(t) == ["", t, ""]]
    assume(tokens)
    policy = Policy(public=frozenset(tokens))
    assert all(policy.decide(token, {}).action == "keep" for token in tokens)


@given(st.text())
def test_even_gaps_show_nothing_of_the_gaps(text: str) -> None:
    policy = Policy(punctuation="drop", whitespace="collapse")
    pieces = split(text)
    written = policy.gaps(pieces[::2])
    assert written[0] == written[-1] == ""
    assert set(written[1:-1]) <= {" "}
    assert "white space" not in policy.leaks({"white space": 3, "punctuation": 2, "signs": 1})
    assert "punctuation" not in policy.leaks({"white space": 3, "punctuation": 2, "signs": 1})


@pytest.mark.parametrize(
    ("gaps", "written"),
    [
        (["", " — ", "."], ["", " ", ""]),
        (["", ", ", ". "], ["", " ", " "]),
        (["(", ".\n", "\n"], ["", "\n", "\n"]),
        (["", "-", ""], ["", " ", ""]),
        (["", " ", "?"], ["", " ", ""]),
    ],
)
def test_a_dropped_mark_leaves_no_trace(gaps: list[str], written: list[str]) -> None:
    assert Policy(punctuation="drop").gaps(gaps) == written
