"""Laws of splitting, kinds and case, over all of Unicode, and a table of known answers."""

from __future__ import annotations

import doctest
import re
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from deniable import characters, text
from deniable.text import (
    CLITICS,
    Kind,
    apply_case,
    case_of,
    kind_of,
    split,
    split_clitic,
    tokenize,
)

PIECES = [
    *"aZéßΣяשक中ไ5٣½_-.,:/'’@#&%+ \n\t\x00\ud800",
    *"\u0301\u200c\u200d\u00ad\ufe0f\u20e3😀👩🇫🏽·״٫€→´",
    *[
        "http://",
        "www.",
        ".com",
        ".pdf",
        "@x.org",
        "n't",
        "'s",
        "don't",
        "2024-05-13",
        "well-known",
    ],
    *[
        "a1",
        "_x",
        "İ",
        "ǆ",
        "ﬁ",
        "ŉ",
        "\U00020000",
        "\U0010ffff",
        "12345678-1234",
        "O’Brien",
        "ΟΔΟΣ",
    ],
]
ANY_CHARACTER = st.characters() | st.characters(categories=["Cs", "Cn", "Co", "Cf", "P", "S", "M"])
TEXTS = st.text(ANY_CHARACTER) | st.lists(st.sampled_from(PIECES)).map("".join)


def is_gap(character: str) -> bool:
    """The stated rule, written again from `unicodedata`."""
    category = unicodedata.category(character)
    if character == "_":
        return False
    return character.isspace() or category[0] == "P" or category == "Sc" or character in "$+<=>^`|~"


# ---- splitting


@given(TEXTS)
def test_the_parts_join_to_the_text_and_alternate(source: str) -> None:
    parts = split(source)
    assert "".join(parts) == source
    assert len(parts) % 2 == 1
    assert all(parts[1::2])


@given(TEXTS)
def test_gaps_hold_gap_characters_and_nothing_else(source: str) -> None:
    assert all(is_gap(character) for gap in split(source)[::2] for character in gap)


@given(TEXTS)
@example("it 'ſ 'S ’ve 'lL")
def test_a_token_starts_and_ends_on_a_character_that_is_no_gap(source: str) -> None:
    for token in split(source)[1::2]:
        assert not is_gap(token[-1])
        assert not is_gap(token[0]) or token.lower().replace("’", "'") in CLITICS


@given(TEXTS)
def test_offsets_slice_the_token_out_of_the_text(source: str) -> None:
    tokens = tokenize(source)
    assert [source[t.start : t.end] for t in tokens] == [t.text for t in tokens]
    assert [t.text for t in tokens] == split(source)[1::2]
    assert all(t.kind is kind_of(t.text) for t in tokens)


WHOLE_FORMS = "|".join(first + rest for _, first, rest in text._KINDS)
SLOW_SPLIT = re.compile(f"({WHOLE_FORMS})").split


@given(TEXTS)
@example("http:/ http://a 'a' ''s a.. a@b a'b@c b-c@d 5,5 5, 5:\n5. www. a1 b_ 5a")
def test_the_fast_ways_change_nothing(source: str) -> None:
    assert split(source) == SLOW_SPLIT(source)


def test_every_character_is_in_a_gap_or_in_a_token_as_stated() -> None:
    gap = re.compile(f"[{characters.GAP}]").fullmatch
    wrong = [
        point for point in range(sys.maxunicode + 1) if bool(gap(chr(point))) != is_gap(chr(point))
    ]
    assert wrong == []


def test_the_classes_agree_with_unicodedata() -> None:
    classes = {"L": characters.LETTER, "M": characters.MARK, "N": characters.NUMBER}
    matches = {name: re.compile(f"[{body}]").fullmatch for name, body in classes.items()}
    for point in range(sys.maxunicode + 1):
        category = unicodedata.category(chr(point))
        assigned = category != "Cn"
        for name, match in matches.items():
            if assigned:
                assert bool(match(chr(point))) == (category[0] == name), hex(point)


@pytest.mark.parametrize(
    "unit",
    ["a", ".", "-", "a@", "http://", "1-", "a'", "a.", "a_-", "www.", "_", "a1-_", "\u200d",
     "😀\u200d", "a\u200d", "é.", "a\u0301", "1:a", "'s ", "12345678-1234-", "a.com/", "x.pd"],
)  # fmt: skip
def test_a_long_run_of_anything_is_split_whole(unit: str) -> None:
    source = unit * (50_000 // len(unit))
    assert "".join(split(source)) == source


def test_only_the_tails_of_urls_may_backtrack_without_a_bound() -> None:
    # Every other unbounded repeat is possessive, which is what makes the time linear.
    without_classes = re.sub(r"\[(?:\\.|[^\]\\])*\]", "[]", text._PATTERN.pattern)
    greedy = re.findall(r"(..)(?<![*+?}])[*+](?!\+)", without_classes)
    assert set(greedy) == {"[]"}
    assert len(greedy) == text._PATTERN.pattern.count(text._URL_TAIL)


# ---- kinds

W, N, E, U, ID, S = tuple(
    Kind[name] for name in ("WORD", "NUMBER", "EMAIL", "URL", "IDENTIFIER", "SYMBOL")
)
KNOWN = [
    # contractions and apostrophes
    ("don't stop", [("don't", W), ("stop", W)]),
    ("O’Brien’s 'tis the dogs'", [("O’Brien’s", W), ("tis", W), ("the", W), ("dogs", W)]),
    ("rock'n'roll", [("rock'n'roll", W)]),
    ("it 's , n't", [("it", W), ("'s", W), ("n't", W)]),
    ("'stop'", [("stop", W)]),
    # hyphens and abbreviations
    ("well-known", [("well", W), ("known", W)]),
    ("covid-19 12-year", [("covid", W), ("19", N), ("12", N), ("year", W)]),
    ("U.S. e.g. Ph.D.", [(c, W) for c in ("U", "S", "e", "g", "Ph", "D")]),
    ("and/or", [("and", W), ("or", W)]),
    # URLs
    ("see http://x.com/a?b=c#d.", [("see", W), ("http://x.com/a?b=c#d", U)]),
    ("(https://en.wikipedia.org/wiki/A_(b))", [("https://en.wikipedia.org/wiki/A_(b", U)]),
    ("www.foo.org, ftp://h/", [("www.foo.org", U), ("ftp://h", U)]),
    ("example.com/path!", [("example.com/path", U)]),
    ("the end.The next", [("the", W), ("end", W), ("The", W), ("next", W)]),
    ("见http://x.com/a。好", [("见http", W), ("x.com/a", U), ("好", W)]),
    # e-mail addresses
    ("alice.o'b+x@foo-bar.co.uk.", [("alice.o'b+x@foo-bar.co.uk", E)]),
    ("<müller@straße.de>, a@b", [("müller@straße.de", E), ("a@b", E)]),
    ("@alice #tag", [("alice", W), ("tag", W)]),
    # numbers, dates, times, telephones
    ("3.14, 1,000 and 1'000.", [("3.14", N), ("1,000", N), ("and", W), ("1'000", N)]),
    ("2024-05-13 13/5/24 10:30.", [("2024-05-13", N), ("13/5/24", N), ("10:30", N)]),
    ("+1 (555) 123-4567", [("1", N), ("555", N), ("123-4567", N)]),
    ("-5% $9.99 ½ Ⅷ ٣٫١٤", [("5", N), ("9.99", N), ("½", N), ("Ⅷ", N), ("٣٫١٤", N)]),
    # identifiers
    ("5km 3rd mp3 x² 0x1F", [(t, ID) for t in ("5km", "3rd", "mp3", "x²", "0x1F")]),
    ("user_name _a __init__", [(t, ID) for t in ("user_name", "_a", "__init__")]),
    ("550e8400-e29b-41d4-a716-446655440000", [("550e8400-e29b-41d4-a716-446655440000", ID)]),
    ("deadbeef-cafe-babe-face-deadbeefcafe", [("deadbeef-cafe-babe-face-deadbeefcafe", ID)]),
    ("report-final.v2.pdf.", [("report-final.v2.pdf", ID)]),
    ("2024-05-13T10:00:00Z 00:1a:2b", [("2024-05-13T10:00:00Z", ID), ("00:1a:2b", ID)]),
    ("1980s-style", [("1980s", ID), ("style", W)]),
    # symbols
    ("hi😀👍🏽", [("hi", W), ("😀", S), ("👍🏽", S)]),
    ("👩‍👩‍👧🇫🇷🇩🇪", [("👩‍👩‍👧", S), ("🇫🇷", S), ("🇩🇪", S)]),
    ("1️⃣ ❤️ 🏴󠁧󠁢󠁥󠁮󠁧󠁿", [("1️⃣", S), ("❤️", S), ("🏴󠁧󠁢󠁥󠁮󠁧󠁿", S)]),
    ("10°C ____ a→b", [("10", N), ("°", S), ("C", W), ("____", S), ("a", W), ("→", S), ("b", W)]),
    ("a\x00\ud800", [("a", W), ("\x00", S), ("\ud800", S)]),
    # scripts
    ("नमस्ते दुनिया। क्‍ष", [("नमस्ते", W), ("दुनिया", W), ("क्‍ष", W)]),
    ("مرحبا، می‌روم؟", [("مرحبا", W), ("می‌روم", W)]),
    ("ภาษาไทย ๑๒", [("ภาษาไทย", W), ("๑๒", N)]),
    ("我爱你，2024年5月。", [("我爱你", W), ("2024", N), ("年", W), ("5", N), ("月", W)]),
    ("צה״ל בית־ספר", [("צה״ל", W), ("בית", W), ("ספר", W)]),
    ("Ὀδυσσεύς· l·lengua", [("Ὀδυσσεύς", W), ("l·lengua", W)]),
    ("cafe\u0301 naïve", [("cafe\u0301", W), ("naïve", W)]),
]


@pytest.mark.parametrize(("source", "expected"), KNOWN)
def test_known_answers(source: str, expected: list[tuple[str, Kind]]) -> None:
    assert [(t.text, t.kind) for t in tokenize(source)] == expected


@given(TEXTS)
def test_words_hold_no_digit_and_numbers_nothing_but_digits_and_separators(source: str) -> None:
    for token in tokenize(source):
        categories = {unicodedata.category(c)[0] for c in token.text}
        if token.kind is W:
            assert "N" not in categories
            assert "_" not in token.text
        if token.kind is N:
            rest = [c for c in token.text if unicodedata.category(c)[0] != "N"]
            assert set(rest) <= set("-.,:/'’٫٬")


@given(st.text(ANY_CHARACTER))
def test_any_string_has_a_kind(source: str) -> None:
    assert isinstance(kind_of(source), Kind)


@pytest.mark.parametrize("token", ["canary", "canary9", "c@anary.org", "http://canary"])
def test_the_repr_of_a_token_does_not_hold_it(token: str) -> None:
    assert "canary" not in repr(tokenize(token))


# ---- case and clitics


@pytest.mark.parametrize(
    ("word", "pattern"),
    [("paris", "lower"), ("Paris", "title"), ("I", "title"), ("USA", "upper"), ("I'M", "upper"),
     ("McCoy", "mixed:0,2"), ("iPhone", "mixed:1"), ("O'Brien", "mixed:0,2"), ("don’t", "lower’"),
     ("中", "lower"), ("ǅ", "title"), ("ΟΔΟΣ", "upper"), ("Éa", "title")],
)  # fmt: skip
def test_known_patterns(word: str, pattern: str) -> None:
    assert case_of(word) == pattern
    assert apply_case(word.lower().replace("’", "'"), pattern) == word


@given(st.from_regex(r"[a-zà-öø-þа-яα-ρτ-ω']+", fullmatch=True), st.data())
def test_letters_with_a_single_capital_form_survive_any_capitals(
    lower: str, data: st.DataObject
) -> None:
    capitals = data.draw(st.lists(st.booleans(), min_size=len(lower), max_size=len(lower)))
    word = "".join(c.upper() if up else c for c, up in zip(lower, capitals, strict=True))
    assert apply_case(word.lower(), case_of(word)) == word


@given(TEXTS, TEXTS)
def test_any_pattern_applies_to_any_word(word: str, other: str) -> None:
    assert isinstance(apply_case(word, case_of(other)), str)


@given(st.text("abcXYZ"), st.sampled_from(["lower", "title", "upper"]))
def test_a_pattern_changes_capitals_only(word: str, pattern: str) -> None:
    assert apply_case(word, pattern).lower() == word.lower()


@pytest.mark.parametrize("clitic", CLITICS)
def test_every_clitic_is_found_in_each_of_its_forms(clitic: str) -> None:
    for form in (clitic, clitic.upper(), clitic.replace("'", "’")):
        assert split_clitic("alice" + form) == ("alice", form)
        assert split_clitic(form) == ("", form)


@given(TEXTS)
def test_stem_and_clitic_are_the_word(word: str) -> None:
    parts = split_clitic(word)
    if parts is not None:
        assert "".join(parts) == word
        assert parts[1].lower().replace("’", "'") in CLITICS


# ---- the page


def test_the_page_on_text_says_what_happens() -> None:
    page = Path(__file__).parents[1] / "docs" / "text.md"
    failed, tried = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert tried > 10
    assert failed == 0
