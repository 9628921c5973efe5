"""Choose the words of the embedded default space, most frequent first.

What is a word comes from SCOWL (Debian package `scowl`), the United States census names (PyPI
`names`) and `extra_words.txt`; how frequent it is comes from the web counts in PyPI `wordsegment`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container, Iterator
from importlib.util import find_spec
from pathlib import Path

SCOWL_LEVELS = {
    "words": 70,
    "upper": 70,
    "proper-names": 70,
    "contractions": 60,
    "abbreviations": 35,
}
SCOWL_REGIONS = ("english", "american", "british", "british_z")
# How many names of each census list are taken, and how many of those count as common.
NAMES = 6000
COMMON_NAMES = 600
# A word of a low SCOWL level is known to more people, so it goes before a rarer name or word of a
# somewhat higher count: level -> factor on the count, for the choice only, not for the order.
FACTORS = {10: 4, 20: 4, 35: 4, 40: 2, 50: 2}
WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*")
JUNK = frozenset(["www", "http", "https", "href"])

# The web counts split words at the apostrophe and end in 2006, so contractions and newer words are
# each placed beside a word of about the same frequency today; which one is our own judgement.
PLACED = {
    "there": "it's don't i'm",
    "never": "that's can't you're i've didn't he's i'll there's we're they're doesn't isn't let's",
    "himself": "won't wasn't she's what's couldn't wouldn't we've you've you'll i'd haven't "
    "aren't weren't we'll he'd who's they've shouldn't hasn't they'll here's it'll she'd hadn't",
    "vacuum": "covid coronavirus facebook twitter instagram youtube iphone smartphone tweet tweets",
    "violin": "whatsapp bitcoin airbnb ipad selfie emoji hashtag brexit blockchain cryptocurrency",
    "somewhat": "where's how's o'clock you'd we'd they'd he'll she'll ain't who've that'll "
    "would've could've should've ma'am y'all when's why's there'd there'll must've might've",
    "hither": "needn't mustn't shan't mightn't oughtn't daren't it'd who'd who'll who're what're "
    "what've what'll what'd how'd how'll how're why'd why're where'd where'll where're how've "
    "there've there're that'd that've these're someone's somebody's something's everyone's "
    "everybody's everything's nobody's anyone's nothing's one's other's today's tomorrow's "
    "couldn't've shouldn't've wouldn't've i'd've",
}


def web_counts() -> dict[str, int]:
    """Counts of 333,333 words on the web, from PyPI `wordsegment`."""
    lines = (package_folder("wordsegment") / "unigrams.txt").read_text("utf-8").splitlines()
    return {word: int(count) for word, count in (line.split("\t") for line in lines)}


def package_folder(name: str) -> Path:
    """Where an installed package keeps its files, without importing it."""
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise SystemExit(f"{name} is not installed: pip install --group space")
    return Path(spec.origin).parent


def scowl_words(folder: Path) -> Iterator[tuple[str, int]]:
    """Words of SCOWL up to the level of each class, without possessives, each with its factor.

    Level 80 and the accents come from a list with a licence of its own, so neither is taken.
    """
    for kind, level in SCOWL_LEVELS.items():
        for region in SCOWL_REGIONS:
            for path in sorted(folder.glob(f"{region}-{kind}.*")):
                at = int(path.suffix[1:])
                factor = FACTORS.get(at, 1) if kind == "words" else 1
                words = path.read_text("latin-1").splitlines() if at <= level else []
                yield from ((word.lower(), factor) for word in words if keeps(word))


def keeps(word: str) -> bool:
    """Whether a word of SCOWL is taken: no possessives and no accents."""
    return word.isascii() and not word.endswith("'s")


def census_names() -> Iterator[tuple[str, int]]:
    """First names and surnames of the United States census of 1990, each with its factor."""
    folder = package_folder("names")
    for kind in ("female.first", "male.first", "all.last"):
        lines = (folder / f"dist.{kind}").read_text("ascii").splitlines()
        for rank, line in enumerate(lines[:NAMES]):
            yield line.split()[0].lower(), FACTORS[10] if rank < COMMON_NAMES else 1


def file_words(path: Path) -> Iterator[str]:
    """The words of a file whose comment lines start with #."""
    for line in path.read_text("utf-8").splitlines():
        if not line.startswith("#"):
            yield from line.split()


def is_word(word: str) -> bool:
    """Letters with inner apostrophes, and no lone letter but a and i."""
    return bool(WORD.fullmatch(word)) and word not in JUNK and (len(word) > 1 or word in "ai")


def plain(word: str) -> str:
    """Without accents and apostrophes, as the web counts spell it."""
    letters = unicodedata.normalize("NFD", word)
    return "".join(c for c in letters if c.isascii() and c != "'")


def choose(scowl: Path, extra: Path, size: int, left_out: Container[str] = ()) -> list[str]:
    """The `size` most frequent words; every word of PLACED and `extra` is among them.

    Words of `left_out` that would have been chosen are replaced by the next most frequent.
    """
    counts = web_counts()
    placed = {w: counts[near] for near, group in PLACED.items() for w in group.split()}
    wanted = {w.lower() for w in file_words(extra) if is_word(w.lower())} - placed.keys()

    def count(word: str) -> int:
        if word in placed:
            return placed[word]
        if word == plain(word):
            return counts.get(word, 0)
        return counts.get(plain(word), 0) // 10  # most people leave the accent out

    factors: dict[str, int] = {}
    for word, factor in (*scowl_words(scowl), *census_names()):
        factors[word] = max(factor, factors.get(word, 1))
    others = {w for w in factors if is_word(w) and count(w)} - placed.keys() - wanted
    room = size - len(placed) - len(wanted)
    ranked = sorted(others, key=lambda w: (-count(w) * factors[w], w))
    kept = [w for w in ranked if w not in left_out][:room]
    print(f"left out: {sum(w in left_out for w in ranked[:room])}")
    return sorted({*kept, *placed, *wanted}, key=lambda w: (-count(w), w))
