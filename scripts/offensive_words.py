"""Which words the embedded default space leaves out: slurs against groups, and obscene words.

A mechanism may draw any word of the space for any other, so a slur in it ends up in someone's
letter. The lists are those of PyPI `better-profanity` (MIT) and `profanityfilter` (BSD). They name
many ordinary, clinical and mild words too: `kept_words.txt` takes those back. What the lists miss
stands in `more_offensive.txt` as the start of a hash, so that no slur is spelled out here.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from default_words import file_words, package_folder

HERE = Path(__file__).parent
LISTS = {
    "better_profanity": "profanity_wordlist.txt",
    "profanityfilter": "data/badwords.txt",
}
HASH_DIGITS = 16
DOUBLED = re.compile(r".*[aeiou][bdgklmnprt]")


def inflections(word: str) -> Iterator[str]:
    """The word, and what it may become with an ending: more than is English, which does no harm."""
    stems = {word, word.removesuffix("e")}
    if DOUBLED.fullmatch(word):
        stems.add(word + word[-1])
    if word.endswith("y"):
        stems.add(word[:-1] + "i")
    yield from (word, word + "s", word + "z")
    for stem in stems:
        yield from (stem + end for end in ("es", "er", "ers", "ed", "ing", "ings", "y"))


def listed_words() -> set[str]:
    """The single words of the two packages that are not kept, with their inflections."""
    kept = set(file_words(HERE / "kept_words.txt"))
    listed: set[str] = set()
    for package, name in LISTS.items():
        lines = (package_folder(package) / name).read_text("utf-8").lower().splitlines()
        listed.update(line.strip() for line in lines)
    return {form for word in listed - kept for form in inflections(word)} - kept


class Offensive:
    """Says of a word whether it is left out."""

    def __init__(self) -> None:
        self.listed = listed_words()
        self.hashes = set(file_words(HERE / "more_offensive.txt"))

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and (
            word in self.listed
            or any(start_of_hash(w) in self.hashes for w in (word, word.removesuffix("s")))
        )


def start_of_hash(word: str) -> str:
    """The first digits of a word's SHA-256, as in more_offensive.txt."""
    return hashlib.sha256(word.encode()).hexdigest()[:HASH_DIGITS]
