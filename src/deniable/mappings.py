"""Which words share an output set: the mappings of Chen et al. 2023 and of F. Mo's thesis.

(Local Differentially Private Mechanisms for Text Privacy Protection, Montreal 2022, Algorithm 1.)

    partition     disjoint sets of K (Chen et al., Algorithm 1); one word left over joins a set
    conservative  the same, but one word left over is a set of its own: it stays what it is
    balanced      the first word without a set takes its K nearest words *of all* as outputs, and
                  those of them that have no set yet share it; outputs overlap
    aggressive    every word takes its K nearest words of all; few words share a set

Between words whose output sets differ nothing is promised: an output of one may be impossible
for the other. A word that shares its set with nobody has no promise at all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from deniable import cache, progress
from deniable.geometry import Ids, blocks
from deniable.partition import Kinds, Partition, nearest, nearest_first
from deniable.similarity import Closeness
from deniable.space import Space

MAPPINGS = ("partition", "aggressive", "balanced", "conservative")
AHEAD = 128


@dataclass(frozen=True)
class Mapping:
    """Groups of words, and the outputs that the words of each group share."""

    groups: Partition
    outputs: tuple[Ids, ...]

    @classmethod
    def closed(cls, partition: Partition) -> Mapping:
        """Return the mapping whose groups are their own outputs."""
        return cls(partition, tuple(partition[i] for i in range(len(partition))))

    @property
    def is_closed(self) -> bool:
        """Whether outputs of different groups never overlap."""
        return sum(map(len, self.outputs)) == len(self.groups.members)

    @property
    def left_alone(self) -> float:
        """The share of words that share their output set with no other word."""
        return float((self.groups.sizes == 1).sum() / len(self.groups.members))


def mapping_of(
    name: str, space: Space, size: int, closeness: Closeness, kinds: Kinds | None = None
) -> Mapping:
    """Return the mapping of that name with output sets of `size` words."""
    if name in ("partition", "conservative"):
        found = nearest_first(space, size, closeness, kinds)
        return Mapping.closed(found if name == "partition" else _without_guests(found, size))
    groups = [np.arange(len(space), dtype=np.int64)] if kinds is None else list(kinds.groups)
    key = (name, space.hash, size, closeness.label, "" if kinds is None else kinds.label)
    saved = not callable(closeness.similarity)
    found_sets = cache.load_array(key) if saved else None
    if found_sets is None or not _is_sets(found_sets, len(space)):
        find = _aggressive if name == "aggressive" else _balanced
        found_sets = _padded([one for ids in groups for one in find(ids, size, closeness)], space)
        if saved:
            cache.save_array(key, found_sets)
    return _grouped(found_sets.astype(np.int64))


def _without_guests(partition: Partition, size: int) -> Partition:
    """Take the word that was left over out of the set that it joined."""
    sets: list[Ids] = []
    for i in range(len(partition)):
        one = partition[i]
        sets += [one[:size], one[size:]] if len(one) == size + 1 else [one]
    return Partition.of(sets)


def _aggressive(ids: Ids, size: int, closeness: Closeness) -> list[tuple[Ids, Ids]]:
    """Return each word with its nearest words."""
    found: list[tuple[Ids, Ids]] = []
    runs = list(blocks(len(ids), len(ids)))
    for run in progress.track(runs, "mapping", total=len(runs)):
        near = nearest(closeness, ids[run], ids, min(size, len(ids)))
        found += [(ids[i : i + 1], one) for i, one in zip(run, near, strict=True)]
    return found


def _balanced(ids: Ids, size: int, closeness: Closeness) -> list[tuple[Ids, Ids]]:
    """Return groups: the words that were free when an output set was made, with that set."""
    free = np.zeros(len(closeness.space), dtype=np.bool_)
    free[ids] = True
    found: list[tuple[Ids, Ids]] = []
    bar = progress.track(range(len(ids)), "mapping", total=len(ids))
    ahead: dict[int, Ids] = {}
    for position in bar:
        word = int(ids[position])
        if not free[word]:
            continue
        if word not in ahead:
            words = ids[position:][free[ids[position:]]][:AHEAD]
            near = nearest(closeness, words, ids, min(size, len(ids)))
            ahead = dict(zip(words.tolist(), near, strict=True))
        outputs = ahead[word]
        members = outputs[free[outputs]]
        free[members] = False
        found.append((members, outputs))
    return found


def _padded(found: list[tuple[Ids, Ids]], space: Space) -> npt.NDArray[np.int32]:
    """Return one row of outputs for each word, sorted, padded with -1 on the left."""
    width = max(len(outputs) for _, outputs in found)
    rows = np.full((len(space), width), -1, dtype=np.int32)
    for members, outputs in found:
        rows[members, width - len(outputs) :] = np.sort(outputs)
    return rows


def _is_sets(found: npt.NDArray[np.generic], count: int) -> bool:
    """Whether a cached array is what it should be: a damaged file is as good as none."""
    if found.ndim != 2 or len(found) != count or found.dtype != np.int32:
        return False
    own = (found == np.arange(count)[:, None]).any(axis=1).all()
    return bool(own and found.min() >= -1 and found.max() < count)


def _grouped(rows: Ids) -> Mapping:
    """Put the words together whose rows of outputs are equal."""
    sets, labels = np.unique(rows, axis=0, return_inverse=True)
    groups = np.split(
        np.argsort(labels.ravel(), kind="stable"), np.cumsum(np.bincount(labels.ravel()))[:-1]
    )
    return Mapping(Partition.of(groups), tuple(one[one >= 0] for one in sets))
