"""Text to tokens and back: every character is in a gap or in a token, and none is lost.

A gap is white space, punctuation, ASCII symbols and currency signs. A token is everything else:
words, numbers, e-mail addresses, URLs, identifiers and symbols. docs/text.md states what happens
to each. `split` is the hot path; `tokenize` is the same with names and offsets.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple

from deniable.case import CLITICS, apply_case, case_of, split_clitic
from deniable.characters import (
    GAP,
    LETTER,
    MARK,
    MAY_START,
    NUMBER,
    SPACED_LETTER,
    URL_END,
)

__all__ = [
    "CLITICS",
    "Kind",
    "Token",
    "apply_case",
    "case_of",
    "kind_of",
    "split",
    "split_clitic",
    "tokenize",
]


class Kind(StrEnum):
    """What a token is, by its form alone."""

    WORD = "word"
    NUMBER = "number"
    EMAIL = "email"
    URL = "url"
    IDENTIFIER = "identifier"
    SYMBOL = "symbol"


class Token(NamedTuple):
    """A token and where it stands: `text == source[start:end]`."""

    text: str
    start: int
    end: int
    kind: Kind

    def __repr__(self) -> str:
        """Say where, never what: a token is private."""
        return f"Token(start={self.start}, end={self.end}, kind={self.kind.value!r})"


# A form of token is the class of its first character and what follows, so that `split` can find
# starts by one quick test and look back at the first character. Every repeat is possessive or
# bounded (but the tail of a URL, which is read once), and what a failed attempt read is read at
# most a bounded number of times more: the time is linear in the text whatever it holds.
_RUN = f"[{SPACED_LETTER}{MARK}{NUMBER}_]"
_LABELS = r"[A-Za-z0-9_-]{0,62}+\.(?:[A-Za-z0-9_-]{1,63}+\.){0,7}?"
_LABEL_END = r"(?![A-Za-z0-9_-])"
_TOP_LEVEL = (  # those that aren't English words, so that a forgotten space isn't a domain
    "com|org|net|edu|gov|mil|io|eu|uk|de|fr|nl|ru|cn|jp|br|ca|ch|pl|cz|kr|tv"
)
_FILE_ENDING = (
    "pdf|docx?|xlsx?|pptx?|odt|txt|csv|tsv|jsonl?|xml|html?|md|tex|log|zip|tar|gz|7z|rar|exe|"
    "jpe?g|png|gif|bmp|svg|tiff?|mp[34]|wav|avi|mov|py|js|java|cpp|dcm|eml|sql|parquet"
)
_URL_TAIL = f"[^{URL_END}]*[^{GAP}]"
_ATTACHED = f"[{MARK}\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]*+"
_DIGITS = f"[{NUMBER}]*+(?:[-.,:/'’٫٬][{NUMBER}]++)*+"
_MIXED = (  # letters with digits or `_`, then every joined part that holds a digit
    f"(?:(?<=[{SPACED_LETTER}])[{SPACED_LETTER}{MARK}]*+(?=[{NUMBER}_])"
    f"|(?<=_)_*+(?=[{SPACED_LETTER}{NUMBER}])"
    f"|(?<=[{NUMBER}]){_DIGITS}(?=[{SPACED_LETTER}{MARK}_]))"
    f"{_RUN}*+(?:[-.:/][{SPACED_LETTER}{MARK}_]*+[{NUMBER}]{_RUN}*+)*+"
)
_WORD = (  # joiners and apostrophes only between letters
    f"[{LETTER}{MARK}]*+"
    f"(?:(?:[\u00ad\u200c\u200d\u2060][{LETTER}{MARK}]|['’·׳״][{LETTER}])[{LETTER}{MARK}]*+)*+"
)
_CLITIC = r"(?<!\S['’])(?ai:s|d|m|re|ve|ll)(?=[\s,.;:!?)]|\Z)"  # tokenised text: it 's

_Form = tuple[Kind, str, str]
_CLITIC_FORM: _Form = (Kind.WORD, "['’]", _CLITIC)
_FORMS: tuple[_Form, ...] = (  # the first that fits is taken
    (Kind.URL, "[A-Za-z]", rf"[A-Za-z0-9+.-]{{1,30}}+://{_URL_TAIL}"),
    (Kind.URL, "[wW]", rf"[wW]{{2}}\.(?=[^{GAP}]){_URL_TAIL}"),
    (
        Kind.URL,
        "[A-Za-z0-9_]",
        rf"{_LABELS}(?ai:{_TOP_LEVEL}){_LABEL_END}(?:(?::[0-9]{{1,5}}+)?[/?#]{_URL_TAIL})?",
    ),
    (Kind.EMAIL, r"\w", r"[\w.%+'’-]{0,63}+@\w++(?:[.-]\w++)*+"),
    (Kind.SYMBOL, "[0-9]", "\ufe0f?\u20e3"),  # a keycap
    (
        Kind.IDENTIFIER,  # a UUID
        "[0-9A-Fa-f]",
        rf"[0-9A-Fa-f]{{7}}(?:-[0-9A-Fa-f]{{4}}){{3}}-[0-9A-Fa-f]{{12}}(?!{_RUN})",
    ),
    (Kind.IDENTIFIER, "[A-Za-z0-9_]", rf"{_LABELS}(?ai:{_FILE_ENDING}){_LABEL_END}"),
    (Kind.IDENTIFIER, f"[{SPACED_LETTER}{NUMBER}_]", _MIXED),
    (Kind.NUMBER, f"[{NUMBER}]", _DIGITS),
    (Kind.WORD, f"[{LETTER}]", _WORD),
    (Kind.SYMBOL, "[\U0001f1e6-\U0001f1ff]", "[\U0001f1e6-\U0001f1ff]"),  # a flag
    (Kind.SYMBOL, "_", "_*+"),
    (Kind.SYMBOL, f"[^{GAP}]", f"{_ATTACHED}(?:\u200d(?!\\w)[^{GAP}]{_ATTACHED})*+"),
)

# Prose takes one of three fast ways: a word or a number after which nothing stands that could
# continue another kind of token. They change the time and never the result.
_SURE_END = r"""[ ,\n\t\r;!?"()\[\]<>*/=&“”。，、]"""
_SURE_PAIR = _SURE_END.replace("/", "")  # `http:/` may go on
_SURE = rf"(?={_SURE_END}|[-.:'’]{_SURE_PAIR}|\Z)"
_SURE_ASCII = (
    rf"[A-Za-z]*+(?:(?={_SURE_END})|(?=[-.:'’]{_SURE_PAIR})|\Z|(?:['’][A-Za-z]++)++{_SURE})"
)
_SURE_NUMBER = r"""[0-9]*+(?=[ \n\t\r;!?"()\[\]<>]|[.,:][ \n]|\Z)"""

_AFTER_START = "|".join(
    [
        f"(?<=[A-Za-z]){_SURE_ASCII}",
        f"(?<=[0-9]){_SURE_NUMBER}",
        f"(?<=['’]){_CLITIC}",
        f"(?<=[{LETTER}]){_WORD}{_SURE}",
        f"(?<![{GAP}])(?:{'|'.join(f'(?<={first}){rest}' for _, first, rest in _FORMS)})",
    ]
)
_PATTERN = re.compile(f"([{MAY_START}](?:{_AFTER_START}))")
_SPLIT = _PATTERN.split
_KINDS = (_CLITIC_FORM, *_FORMS)
_KIND = re.compile("|".join(f"({first}{rest})" for _, first, rest in _KINDS)).fullmatch


def split(text: str) -> list[str]:
    """Gaps and tokens in turn, a gap first and last; joined they are the text.

    >>> split("Don't go, Alice!")
    ['', "Don't", ' ', 'go', ', ', 'Alice', '!']
    """
    return _SPLIT(text)


def kind_of(token: str) -> Kind:
    """The kind of one token.

    >>> [kind_of(token).value for token in ("don't", "3.14", "a@b.org", "x_1", "→")]
    ['word', 'number', 'email', 'identifier', 'symbol']
    """
    found = _KIND(token)
    if found is None or found.lastindex is None:
        return Kind.SYMBOL
    return _KINDS[found.lastindex - 1][0]


def tokenize(text: str) -> list[Token]:
    """The tokens of a text with their offsets and kinds.

    >>> [(t.text, t.start, t.end, t.kind.value) for t in tokenize("Room 12, please")]
    [('Room', 0, 4, 'word'), ('12', 5, 7, 'number'), ('please', 9, 15, 'word')]
    """
    tokens, at = [], 0
    for place, part in enumerate(split(text)):
        end = at + len(part)
        if place % 2:
            tokens.append(Token(part, at, end, kind_of(part)))
        at = end
    return tokens
