"""Partitions: disjoint sets of words that cover a space, made from public data only.

`nearest_first` is the mapping of Chen et al. 2023, Algorithm 1: take the most frequent word that
has no set yet, put it and its K - 1 nearest unassigned words into one set, and go on. Fewer than
K words left over form the last set; a single word left over joins the last full set instead,
because a set of one would be a deterministic map.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from deniable import cache, progress
from deniable.errors import ParameterError
from deniable.geometry import Floats, Ids
from deniable.similarity import Closeness
from deniable.space import Space

# How many words are ranked in one matrix product, and how many sets of neighbours each keeps.
AHEAD = 128
SPARE = 6


@dataclass(frozen=True)
class Partition:
    """Words sorted by set: set i is `members[starts[i]:starts[i + 1]]`."""

    members: Ids
    starts: Ids

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, i: int) -> Ids:
        return self.members[self.starts[i] : self.starts[i + 1]]

    @property
    def sizes(self) -> Ids:
        """How many words each set has."""
        return np.diff(self.starts)

    @property
    def labels(self) -> Ids:
        """The set of each word."""
        labels = np.empty(len(self.members), dtype=np.int64)
        labels[self.members] = np.repeat(np.arange(len(self), dtype=np.int64), self.sizes)
        return labels

    @property
    def bits(self) -> float:
        """What knowing the set reveals of a uniformly chosen word, in bits."""
        count = len(self.members)
        return float((self.sizes / count * np.log2(count / self.sizes)).sum())

    @classmethod
    def of(cls, sets: Sequence[npt.ArrayLike]) -> Partition:
        """Make a partition from one array of ids for each set."""
        arrays = [np.asarray(one, dtype=np.int64) for one in sets]
        starts = np.concatenate([[0], np.cumsum([len(one) for one in arrays])]).astype(np.int64)
        return cls(np.concatenate(arrays), starts)


@dataclass(frozen=True)
class Kinds:
    """Words by kind (a public property of words, such as their part of speech)."""

    groups: tuple[Ids, ...]
    label: str


def lists_of_words(value: Any, wanted: str) -> tuple[tuple[str, ...], ...]:
    """Return a user's lists of words; refuse anything else, saying what is wanted."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ParameterError(wanted)
    for words in value:
        if isinstance(words, str) or not isinstance(words, Sequence):
            raise ParameterError(wanted)
        if not all(isinstance(word, str) for word in words):
            raise ParameterError(wanted)
    return tuple(tuple(words) for words in value)


def from_words(space: Space, sets: Sequence[Sequence[str]], what: str) -> Partition:
    """Make a partition from a user's lists of words; refuse overlaps, gaps and unknown words."""
    found: list[list[int]] = []
    seen: set[str] = set()
    for number, words in enumerate(sets):
        for word in words:
            if word not in space.index:
                raise ParameterError(f"{what}: {word!r} (list {number}) is not in the space")
            if word in seen:
                raise ParameterError(f"{what}: {word!r} is in two lists; they must be disjoint")
            seen.add(word)
        if words:
            found.append([space.index[word] for word in words])
    if len(seen) != len(space):
        raise ParameterError(
            f"{what}: {len(space) - len(seen):,} of the space's {len(space):,} words are in no "
            "list; add them, or build a space of these words only"
        )
    return Partition.of(found)


def nearest_first(
    space: Space, size: int, closeness: Closeness, kinds: Kinds | None = None
) -> Partition:
    """Return Algorithm 1's partition into sets of `size` words, from the cache if it is there.

    With `kinds` (parts of speech) no set mixes words of two kinds.
    """
    saved = not callable(closeness.similarity)
    key = ("partition", space.hash, size, closeness.label, "" if kinds is None else kinds.label)
    found = cache.load_array(key) if saved else None
    if found is not None and _is_partition(found, len(space)):
        return Partition(found[0].astype(np.int64), _starts(found[1], len(space)))
    parts = [np.arange(len(space), dtype=np.int64)] if kinds is None else kinds.groups
    partition = Partition.of([s for ids in parts for s in _nearest_first(ids, size, closeness)])
    if saved:
        marks = np.zeros((2, len(space)), dtype=np.int64)
        marks[0] = partition.members
        marks[1, partition.starts[:-1]] = 1
        cache.save_array(key, marks)
    return partition


def _is_partition(found: npt.NDArray[np.generic], count: int) -> bool:
    """Whether a cached array is what it should be: a damaged file is as good as none."""
    if found.shape != (2, count) or found.dtype != np.int64:
        return False
    return bool(found[1, 0] == 1 and (np.sort(found[0]) == np.arange(count)).all())


def _starts(marks: npt.NDArray[np.generic], count: int) -> Ids:
    return np.append(np.flatnonzero(marks), count).astype(np.int64)


def _nearest_first(ids: Ids, size: int, closeness: Closeness) -> list[Ids]:
    search = _Search(ids, size, closeness)
    sets: list[Ids] = []
    steps = max(1, len(ids) // size)
    for _ in progress.track(range(steps), "mapping", total=steps):
        if search.left < size:
            break
        sets.append(search.take())
    rest = search.rest()
    if len(rest) == 1 and sets:
        sets[-1] = np.append(sets[-1], rest)
    elif len(rest):
        sets.append(rest)
    return sets


class _Search:
    """Takes one set after the other; distances are computed for many words to come at a time.

    The next words in order are ranked against all free words in one matrix product, and the
    nearest few of each are kept. When a word's turn comes, those of its nearest that are still
    free are its set; only if too few are left is its whole row looked at again.
    """

    def __init__(self, ids: Ids, size: int, closeness: Closeness) -> None:
        self._closeness, self._size = closeness, size
        self._free = np.zeros(len(closeness.space), dtype=np.bool_)
        self._free[ids] = True
        self._ids = ids
        self._ranked: dict[int, tuple[Ids, bool]] = {}
        self._first = 0
        self.left = len(ids)

    def take(self) -> Ids:
        """Remove the first free word and its nearest free ones, nearest first."""
        self._first += int(np.argmax(self._free[self._first :]))
        if self._first not in self._ranked:
            self._rank_ahead()
        ranked, complete = self._ranked.pop(self._first)
        near = ranked[self._free[ranked]][: self._size]
        if len(near) < self._size and not complete:
            near = self._rank(np.array([self._first]), self._size)[0]
        self._free[near] = False
        self.left -= len(near)
        return near

    def rest(self) -> Ids:
        """Return what is left, nearest to the first of it first."""
        left = np.flatnonzero(self._free).astype(np.int64)
        if len(left) == 0:
            return left
        distance = _growing(self._closeness, left[:1], left)[0]
        distance[0] = -np.inf
        return left[np.argsort(distance, kind="stable")]

    def _rank_ahead(self) -> None:
        self._ids = np.flatnonzero(self._free).astype(np.int64)
        words = self._ids[:AHEAD]
        keep = min(len(self._ids), SPARE * self._size)
        found = self._rank(words, keep)
        complete = keep == len(self._ids)
        self._ranked = {int(w): (near, complete) for w, near in zip(words, found, strict=True)}

    def _rank(self, words: Ids, keep: int) -> list[Ids]:
        """Return the `keep` nearest free words of each word, itself first."""
        return nearest(self._closeness, words, self._ids[self._free[self._ids]], keep)


def nearest(closeness: Closeness, words: Ids, ids: Ids, keep: int) -> list[Ids]:
    """Return the `keep` nearest of `ids` (sorted) for each word (one of them), itself first."""
    distance = _growing(closeness, words, ids)
    distance[np.arange(len(words)), np.searchsorted(ids, words)] = -np.inf
    return [ids[_smallest(row, keep)] for row in distance]


def _growing(closeness: Closeness, words: Ids, ids: Ids) -> Floats:
    """Return something that grows with the distance of each word to each id."""
    if callable(closeness.similarity):
        return -closeness.between(words, ids)
    geometry = closeness.geometry
    # All three metrics grow with |x - y|^2, of which |x|^2 is the same for all y.
    found: Floats = geometry.points[words] @ geometry.points[ids].T
    found *= -2.0
    found += geometry.squares[ids]
    return found


def _smallest(values: Floats, size: int) -> Ids:
    """Return where the `size` smallest values are, in order; ties go to the more frequent word."""
    if size < len(values):
        limit = np.partition(values, size - 1)[size - 1]
        near = np.flatnonzero(values <= limit)
        return near[np.argsort(values[near], kind="stable")][:size].astype(np.int64)
    return np.argsort(values, kind="stable").astype(np.int64)
