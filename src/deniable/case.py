"""Case patterns and English clitics: what is taken off a word before it is looked up.

A pattern is a string: `""` (as it stands), `lower`, `title`, `upper` or `mixed:0,2` (the places
of the capitals). A trailing `’` says that the word's apostrophes are curly.
"""

from __future__ import annotations

import re

#: The endings that may be kept in clear when the word before them is replaced.
CLITICS = ("'s", "n't", "'re", "'ve", "'ll", "'d", "'m")

_CLITIC = re.compile(r"(.*?)(n['’]t|['’](?:s|re|ve|ll|d|m)|N['’]T|['’](?:S|RE|VE|LL|D|M))", re.S)


def split_clitic(word: str) -> tuple[str, str] | None:
    """The word without its clitic, and the clitic as written; None where there is none.

    >>> split_clitic("Alice’s"), split_clitic("isn't"), split_clitic("glass")
    (('Alice', '’s'), ('is', "n't"), None)
    """
    found = _CLITIC.fullmatch(word)
    return (found[1], found[2]) if found else None


def _title(word: str) -> str:
    return word[:1].title() + word[1:]


def _mixed(word: str, pattern: str) -> str:
    """The word with capitals at the places that the pattern names, where it has such places."""
    places = {int(place) for place in pattern[len("mixed:") :].split(",") if place}
    return "".join(c.upper() if at in places else c for at, c in enumerate(word))


def case_of(word: str) -> str:
    """The case pattern of a word.

    >>> [case_of(word) for word in ("home", "Paris", "I", "USA", "McCoy", "Don’t")]
    ['lower', 'title', 'title', 'upper', 'mixed:0,2', 'title’']
    """
    curly = "’" if "’" in word else ""
    lower = word.lower()
    if word == lower:
        return "lower" + curly
    if word == _title(lower):
        return "title" + curly
    if word == lower.upper():
        return "upper" + curly
    capitals = [str(at) for at, (a, b) in enumerate(zip(word, lower, strict=False)) if a != b]
    return f"mixed:{','.join(capitals)}{curly}"


def apply_case(word: str, pattern: str) -> str:
    """The word written with a pattern that `case_of` gave.

    >>> [apply_case("can't", pattern) for pattern in ("lower", "title", "upper", "mixed:1", "’")]
    ["can't", "Can't", "CAN'T", "cAn't", 'can’t']
    """
    if pattern.endswith("’"):
        word, pattern = word.replace("'", "’"), pattern[:-1]
    if not pattern:
        return word
    if pattern == "lower":
        return word.lower()
    if pattern == "title":
        return _title(word)
    return word.upper() if pattern == "upper" else _mixed(word, pattern)
