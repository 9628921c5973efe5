"""Length: what the number of tokens of a text tells, and how it is hidden.

    declared    the output has as many tokens as the text: that is seen
    bucketed    texts are filled up to the next power of two (8 at least): only that is seen
    padded:N    texts are filled up to N tokens; a longer one is refused
    fixed:N     texts are filled up to N tokens, and what is beyond is left out

What fills a text are draws of one public word, which nothing tells from draws of the text's own:
they are paid for like those, and the promise is about all texts of one shown length.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from deniable.errors import InputError, PolicyError

LEAST = 8
LONGEST = 1_000_000
_FORM = re.compile(r"(declared|bucketed)|(padded|fixed):([1-9]\d{0,6})")
# What shows where a text ends whatever its length is, unless it is treated so.
NEEDED = {"punctuation": "drop", "whitespace": "collapse", "case": "lower", "clitics": "drop"}


class Length(NamedTuple):
    """One way to show the length of texts."""

    kind: str
    size: int = 0

    @property
    def is_declared(self) -> bool:
        """Whether texts keep their lengths."""
        return self.kind == "declared"

    def shown(self, tokens: int) -> int:
        """Return how many tokens the output of a text has.

        >>> [Length("bucketed").shown(n) for n in (0, 8, 9)], Length("fixed", 5).shown(7)
        ([8, 8, 16], 5)
        """
        if self.is_declared:
            return tokens
        if self.kind == "bucketed":
            return max(LEAST, 1 << (tokens - 1).bit_length()) if tokens else LEAST
        if self.kind == "padded" and tokens > self.size:
            raise InputError(
                f"a text has more than {self.size:,} tokens: raise policy length=padded:N, or use "
                "fixed:N, which leaves the rest out"
            )
        return self.size

    def fit(self, piece: list[str], filler: Callable[[], str]) -> int:
        """Fill up (or cut) gap, token, gap, ..., gap; return how many tokens are the text's own."""
        tokens = len(piece) // 2
        shown = self.shown(tokens)
        if shown < tokens:
            piece[2 * shown :] = [""]
        elif shown > tokens:
            piece += [filler(), ""] * (shown - tokens)
        return min(tokens, shown)

    def seen(self) -> str:
        """Say what is seen of the length."""
        return _SEEN[self.kind].format(self.size)

    def neighbours(self) -> str:
        """Say which texts the promise for a document is about."""
        return _NEIGHBOURS[self.kind].format(self.size)


_SEEN = {
    "declared": "the number of tokens of each text is seen",
    "bucketed": "only the next power of two to the number of tokens of each text is seen",
    "padded": "every text has {} tokens: nothing is seen of its own length",
    "fixed": "every text has {} tokens, the rest left out: nothing is seen of its own length",
}
_SAME = "the same things in clear, any of the tokens changed"
_NEIGHBOURS = {
    "declared": f"texts of as many tokens and {_SAME}",
    "bucketed": f"texts of one bucket of lengths and {_SAME}",
    "padded": f"texts of up to {{}} tokens and {_SAME}",
    "fixed": f"texts of any length (their first {{}} tokens) and {_SAME}",
}


def length_of(text: object) -> Length:
    """Return the way that a policy names."""
    found = _FORM.fullmatch(text) if isinstance(text, str) else None
    if found is None or int(found[3] or 0) > LONGEST:
        raise PolicyError(
            f"policy length is declared, bucketed, padded:N or fixed:N, with N at most {LONGEST:,}"
        )
    return Length(found[1] or found[2], int(found[3] or 0))


def check_covered(length: str, covered: float) -> None:
    """Refuse to fill texts by a mechanism that promises nothing between some words.

    It would show which output set the filling is from, and so where the text ends.
    """
    if not length_of(length).is_declared and covered < 1.0:
        raise PolicyError(
            f"policy length={length} needs a mechanism that promises between all words; this "
            f"covers {covered:.2%} of the pairs, and shows where the text ends"
        )


def check_length(length: Length, settings: Mapping[str, object]) -> None:
    """Refuse to hide a length that other settings show."""
    if length.is_declared:
        return
    wrong = [f"{name}={value}" for name, value in NEEDED.items() if settings[name] != value]
    if wrong:
        raise PolicyError(
            f"policy length={length.kind} needs {', '.join(wrong)} too: what is kept of them shows "
            "where the text ends"
        )
