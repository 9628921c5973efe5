"""Derive src/deniable/spaces/kinds.json: what parts of speech each word of the embedded space is.

    pip install lemminflect==0.2.3
    python scripts/build_kinds.py

The lexicon of lemminflect (MIT licence; from the public SPECIALIST lexicon) lists for each word
what it can be and of which base form. A kind is the set of all that: 'noun' and 'verb' as base
forms, 'noun s' for a plural in -s, and so on.
"""

from __future__ import annotations

import csv
import gzip
import json
from collections import defaultdict
from importlib.resources import files
from pathlib import Path

from deniable import Space
from deniable.kinds import EMBEDDED
from deniable.stopwords import STOPWORDS

SUFFIXES = ("s", "ing", "ed", "er", "est")
OPEN_CLASSES = {"noun", "verb", "adj", "adv"}


def main() -> None:
    """Write the kinds of the embedded space's words, as positions in its list of words."""
    possible = lexicon()
    kinds: dict[str, list[int]] = defaultdict(list)
    for number, word in enumerate(Space.default().words):
        found = possible.get(word, set())
        if word in STOPWORDS:
            found = {"function word"}
        if found:
            kinds[", ".join(sorted(found))].append(number)
    ordered = dict(sorted(kinds.items(), key=lambda item: -len(item[1])))
    text = {"space": Space.default().hash, "kinds": ordered}
    EMBEDDED.write_text(json.dumps(text, separators=(",", ":")) + "\n", "utf-8")
    print(f"{sum(map(len, kinds.values())):,} words of {len(kinds)} kinds")
    for name, words in list(ordered.items())[:20]:
        print(f"{len(words):7,}  {name}")


def lexicon() -> dict[str, set[str]]:
    """What each word can be."""
    found: dict[str, set[str]] = defaultdict(set)
    path = Path(str(files("lemminflect"))) / "resources" / "lemma_lu.csv.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for word, part, bases in csv.reader(file):
            if part in OPEN_CLASSES:
                for base in bases.split("/"):
                    found[word.lower()].add(form(word, part, base))
    return found


def form(word: str, part: str, base: str) -> str:
    """The part of speech, and how the word is inflected."""
    if word == base:
        return part
    return f"{part} {next((s for s in SUFFIXES if word.endswith(s)), 'irregular')}"


if __name__ == "__main__":
    main()
