"""What happens to every character of a text: drawn, replaced, masked, or kept and listed.

A policy is public and fixed before any text is read. It is total: each token gets one `Decision`,
each gap is written by `gap`, and `leaks` names everything that an attacker sees unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import NamedTuple, SupportsInt

from deniable.characters import NUMBER, PUNCTUATION
from deniable.errors import PolicyError
from deniable.leaks import KINDS, describe
from deniable.length import check_length, length_of
from deniable.stopwords import STOPWORDS
from deniable.text import CLITICS, Kind, apply_case, case_of, kind_of, split, split_clitic

__all__ = ["KINDS", "Decision", "Policy", "fresh_digits"]

_CHOICES: dict[str, tuple[str, ...]] = {
    "unknown": ("draw", "mask", "keep"),
    "numbers": ("digits", "words", "mask", "keep"),
    "emails": ("mask", "draw", "keep"),
    "urls": ("mask", "draw", "keep"),
    "identifiers": ("mask", "draw", "keep"),
    "symbols": ("mask", "draw", "keep"),
    "case": ("keep", "lower"),
    "clitics": ("keep", "drop"),
    "punctuation": ("keep", "drop"),
    "whitespace": ("keep", "collapse"),
    "stopwords": ("private", "keep"),
}
_MASKS = {
    "unknown word": "[UNKNOWN]",
    "number": "[NUMBER]",
    "email": "[EMAIL]",
    "url": "[URL]",
    "identifier": "[ID]",
    "symbol": "[SYMBOL]",
}
_NUMBER_CHARACTER = re.compile(f"[{NUMBER}]")
_SPACES = re.compile(r"\s+")
_NOT_SPACE = re.compile(r"\S")
_PUNCTUATION = re.compile(f"[{PUNCTUATION}]")


class Decision(NamedTuple):
    """What to write for one token.

    `draw` samples the kernel at `word`, `uniform` draws any word of the space, `digits` sends
    `text` through `fresh_digits`, `mask` and `keep` write `text`. Drawn words are written with
    `case` (see `apply_case`), and `suffix` follows.
    """

    action: str
    kind: str
    word: int = -1
    case: str = ""
    text: str = ""
    suffix: str = ""

    def __repr__(self) -> str:
        """Say what is done, never to what: the token is private."""
        return f"Decision(action={self.action!r}, kind={self.kind!r})"

    @property
    def is_drawn(self) -> bool:
        """Whether the mechanism replaces it."""
        return self.action == "draw"

    @property
    def counted(self) -> tuple[str, ...]:
        """The keys under which a certificate counts this token."""
        more = ("case pattern",) if self.case not in ("", "lower") else ()
        return (self.kind, *more, "clitic") if self.suffix else (self.kind, *more)


@dataclass(frozen=True)
class Policy:
    """The settings, checked when the policy is made.

    Symbols are masked by default: a drawn word would be glued to its neighbour (nice👍) and be
    unreadable, while the mask says only that a symbol stood there, which the gap shows anyway.

    >>> Policy(numbers="mask").decide("1984", {}).text
    '[NUMBER]'
    """

    unknown: str = "draw"
    numbers: str = "digits"
    emails: str = "mask"
    urls: str = "mask"
    identifiers: str = "mask"
    symbols: str = "mask"
    case: str = "keep"
    clitics: str = "keep"
    punctuation: str = "keep"
    whitespace: str = "keep"
    stopwords: str = "private"
    length: str = "declared"
    public: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if value not in choices:
                raise PolicyError(_refusal(f"policy {name}", str(value), choices))
        object.__setattr__(self, "public", _checked_public(self.public))
        check_length(length_of(self.length), vars(self))

    def to_dict(self) -> dict[str, str | list[str]]:
        """The settings as JSON holds them."""
        settings: dict[str, str | list[str]] = {name: getattr(self, name) for name in _CHOICES}
        return {**settings, "length": self.length, "public": sorted(self.public)}

    @classmethod
    def from_dict(cls, settings: Mapping[str, object]) -> Policy:
        """The policy of these settings; those that are missing have their defaults."""
        if not isinstance(settings, Mapping):
            raise PolicyError("a policy is an object of settings, such as {'case': 'lower'}")
        known = tuple(field.name for field in fields(cls))
        for name in settings:
            if name not in known:
                raise PolicyError(_refusal("policy setting", str(name), known))
        return cls(**settings)  # type: ignore[arg-type]  # each value is checked at construction

    def decide(self, token: str, index: Mapping[str, int]) -> Decision:
        """What to write for a token, whatever string it is."""
        if self.case == "lower":  # first, so that nothing below can depend on the capitals
            token = token.lower()
        declared = self._declared(token)
        if declared is not None:
            return declared
        kind = Kind.WORD if token.isalpha() else kind_of(token)
        if kind is Kind.NUMBER and self.numbers != "words":
            return self._number(token)
        if kind is not Kind.EMAIL and kind is not Kind.URL:
            found = self._known(token, index) or self._known_stem(token, index)
            if found is not None:
                return found
        if kind is Kind.WORD:
            return self._lone_clitic(token) or self._other("unknown word", self.unknown, token)
        if kind is Kind.NUMBER:
            return self._other("number", self.unknown, token)
        return self._other(kind.value, getattr(self, f"{kind.value}s"), token)

    def _declared(self, token: str) -> Decision | None:
        """A word that the policy itself declares public."""
        if not self.public and self.stopwords != "keep":
            return None
        form = token.lower().replace("’", "'")
        if form in self.public:
            return Decision("keep", "public word", text=token)
        if self.stopwords == "keep" and form in STOPWORDS:
            return Decision("keep", "stop word", text=token)
        return None

    def _known(self, token: str, index: Mapping[str, int]) -> Decision | None:
        """The token as a word of the space: as it stands, else by its lower case."""
        word = index.get(token)
        if word is not None:
            return Decision("draw", "word", word, "lower" if self.case == "lower" else "")
        lower, case = token.lower(), case_of(token)
        for form, pattern in ((lower, case.rstrip("’")), (lower.replace("’", "'"), case)):
            word = index.get(form)
            if word is not None and self.case == "lower":
                return Decision("draw", "word", word, "lower")
            if word is not None and apply_case(form, pattern) == token:
                return Decision("draw", "word", word, pattern)
        return None

    def _known_stem(self, token: str, index: Mapping[str, int]) -> Decision | None:
        """A word whose clitic is public and whose stem is known: alice's."""
        parts = split_clitic(token)
        if parts is None or not parts[0]:
            return None
        stem, clitic = parts
        found = self._declared(stem) or self._known(stem, index)
        if found is None:
            return None
        suffix = clitic if self.clitics == "keep" else ""
        return found._replace(suffix=suffix)

    def _lone_clitic(self, token: str) -> Decision | None:
        """A clitic that the text wrote as a word of its own, as tokenised corpora do."""
        if self.clitics == "drop" or token.lower().replace("’", "'") not in CLITICS:
            return None
        return Decision("keep", "lone clitic", text=token)

    def _number(self, token: str) -> Decision:
        if self.numbers == "digits":
            return Decision("digits", "number", text=token)
        return self._other("number", self.numbers, token)

    def _other(self, kind: str, treatment: str, token: str) -> Decision:
        """A token that is no word of the space."""
        if treatment == "keep":
            return Decision("keep", kind, text=token)
        if treatment == "mask":
            return Decision("mask", kind, text=_MASKS[kind])
        if self.case == "lower":
            return Decision("uniform", kind, case="lower")
        # A mixed pattern would tell more of an unknown word than its shape.
        case = case_of(token).rstrip("’") if kind == "unknown word" else ""
        return Decision("uniform", kind, case=case if case in ("title", "upper") else "")

    @property
    def even_gaps(self) -> bool:
        """Whether every gap is written alike, so that nothing of them is seen."""
        return self.punctuation == "drop" and self.whitespace == "collapse"

    def gap(self, gap: str) -> str:
        """What is written for a gap between two tokens; two words that it kept apart stay apart.

        A dropped mark takes the white space behind it along, or its place would show.

        >>> Policy(punctuation="drop").gap(", "), Policy(punctuation="drop").gap("-")
        (' ', ' ')
        """
        if self.even_gaps:
            return " "
        if self.punctuation == "drop" and _NOT_SPACE.search(gap):
            parts = _SPACES.findall(gap)
            gap = next((part for part in parts if "\n" in part), parts[0] if parts else " ")
        return _SPACES.sub(" ", gap) if self.whitespace == "collapse" else gap

    def gaps(self, gaps: list[str]) -> list[str]:
        """What is written for all gaps of a text; the first and the last part no two tokens.

        >>> Policy(punctuation="drop", whitespace="collapse").gaps(["(", " -- ", ")."])
        ['', ' ', '']
        """
        found = [self.gap(gap) for gap in gaps]
        for edge in {0, len(gaps) - 1}:
            bare = self.punctuation == "drop" and not _SPACES.search(gaps[edge])
            if self.even_gaps or bare:
                found[edge] = ""
        return found

    def gap_counts(self, gap: str) -> dict[str, int]:
        """How many characters of each sort a gap holds.

        >>> Policy().gap_counts(", $")
        {'white space': 1, 'punctuation': 1, 'signs': 1}
        """
        space = len(gap) - len(_NOT_SPACE.findall(gap))
        punctuation = len(_PUNCTUATION.findall(gap))
        return {
            "white space": space,
            "punctuation": punctuation,
            "signs": len(gap) - space - punctuation,
        }

    def leaks(self, counts: Mapping[str, int]) -> dict[str, dict[str, int | str]]:
        """Everything that an attacker sees unchanged, for a certificate.

        `counts` holds how many tokens had each key of `Decision.counted`, and how many characters
        each key of `gap_counts`.
        """
        return describe(self, counts)


def fresh_digits(token: str, randbelow_array: Callable[[int, int], Iterable[SupportsInt]]) -> str:
    """The token with fresh digits for its own, whatever their script; separators stay.

    `randbelow_array(10, n)` gives n independent uniform integers below 10.

    >>> fresh_digits("3.14", lambda bound, n: [7] * n)
    '7.77'
    """
    spots = len(_NUMBER_CHARACTER.findall(token))
    digits = iter(randbelow_array(10, spots))
    return _NUMBER_CHARACTER.sub(lambda _: str(int(next(digits))), token)


def _checked_public(words: object) -> frozenset[str]:
    """The public words, or the reason why they can't be; the words themselves stay unsaid."""
    if isinstance(words, str) or not isinstance(words, Iterable):
        raise PolicyError(
            "policy public must be a list of words (on the command line: --keep FILE)"
        )
    checked = list(words)
    for place, word in enumerate(checked, start=1):
        if not isinstance(word, str):
            raise PolicyError(f"policy public: word {place} is not a string")
        if word != word.lower() or [bool(part) for part in split(word)] != [False, True, False]:
            raise PolicyError(f"policy public: word {place} must be one token in lower case")
    return frozenset(word.replace("’", "'") for word in checked)


def _refusal(what: str, value: str, choices: tuple[str, ...]) -> str:
    near = get_close_matches(value, choices, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"{what} can't be {value!r}: choose from {', '.join(choices)}{hint}"
