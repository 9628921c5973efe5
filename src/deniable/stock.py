"""Draws made ahead, in memory, for words that come again and again in a long stream.

A row over V outputs costs far more to compute than to draw from. So when a word comes back in a
later batch, more draws than needed are made while its row is at hand; the number of times a row
is computed then grows with the logarithm of how often the word occurs. Draws are independent,
each is handed out once, and nothing is ever written to disk or carried over a fork.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock

import numpy as np

from deniable.forks import in_every_child
from deniable.mechanism import Kernel
from deniable.sampling import Ids, randomness

# How many draws are kept at most, over all words (16 bytes each, and as much in bookkeeping).
LARGEST = 20_000_000
NOTHING = np.empty(0, dtype=np.int64)


@dataclass
class _Shelf:
    """What is left of one word's draws, and how many were ever made."""

    left: Ids = field(repr=False)
    made: int = 0


class Stock:
    """Samples a kernel like `kernel.sample`, and remembers the draws that it made ahead."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._start()
        in_every_child(self._start)

    def _start(self) -> None:
        # A child may inherit the lock from a thread that it doesn't have.
        self._lock = Lock()
        self._empty()

    def _empty(self) -> None:
        self._shelves: dict[int, _Shelf] = {}
        self._owner = randomness()
        self._size = 0

    def sample(self, ids: Ids) -> Ids:
        """Return one output for each id."""
        with self._lock:
            # What one source of randomness drew must not be handed out under another.
            if self._owner is not randomness() or self._size > LARGEST:
                self._empty()
            words, inverse, wanted = np.unique(ids, return_inverse=True, return_counts=True)
            self._refill(words, wanted)
            drawn = np.empty(len(ids), dtype=np.int64)
            taken = [self._take(w, n) for w, n in zip(words.tolist(), wanted.tolist(), strict=True)]
            if taken:
                drawn[np.argsort(inverse, kind="stable")] = np.concatenate(taken)
            return drawn

    def _refill(self, words: Ids, wanted: Ids) -> None:
        shelves = [self._shelves.setdefault(word, _Shelf(NOTHING)) for word in words.tolist()]
        short = wanted - np.array([len(shelf.left) for shelf in shelves], dtype=np.int64)
        made = np.array([shelf.made for shelf in shelves], dtype=np.int64)
        rows = np.flatnonzero(short > 0)
        if len(rows) == 0:
            return
        extra = np.maximum(short[rows], 2 * made[rows])
        drawn = self._kernel.draws(words[rows], extra)
        for row, part in zip(rows.tolist(), np.split(drawn, np.cumsum(extra)[:-1]), strict=False):
            shelf = shelves[row]
            shelf.left = np.concatenate([shelf.left, part])
            shelf.made += len(part)
        self._size += len(drawn)

    def _take(self, word: int, count: int) -> Ids:
        shelf = self._shelves[word]
        taken, shelf.left = shelf.left[:count], shelf.left[count:]
        self._size -= count
        return taken
