"""Kernels that add continuous noise: nothing finite to recompute, so the theorem is audited."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from deniable import parallel
from deniable.audit import audit
from deniable.certify import Certification
from deniable.mechanism import Ids, Kernel
from deniable.sampling import Floats

# A block of noisy points is compared with every word at once; this many numbers fill 32 MB.
BLOCK = 8_000_000
MOST_ROWS = 8192
# Points, their scales, and the uniform numbers that a choice between words needs.
Noisy = tuple[Floats, Floats, Floats]


class NoisyKernel(Kernel):
    """A kernel that is given by what it does to a block of words."""

    @abstractmethod
    def noisy_points(self, words: Ids) -> Noisy:
        """Return a noisy point for each word, and whatever else is random about it.

        This is called in the caller's own thread, where the source of randomness is known.
        """

    @abstractmethod
    def settle(self, points: Noisy) -> Ids:
        """Return the word that each point becomes; any thread may do that."""

    def draws(self, words: Ids, how_many: Ids) -> Ids:
        """Return `how_many[i]` outputs of `words[i]`, one word after the other."""
        every = np.repeat(words, how_many)
        step = max(1, min(MOST_ROWS, BLOCK // sum(self.space.vectors.shape)))
        runs = (self.noisy_points(every[i : i + step]) for i in range(0, len(every), step))
        found = list(parallel.in_threads(self.settle, runs))
        return np.concatenate(found) if found else np.empty(0, dtype=np.int64)

    def certify(self) -> Certification:
        """Audit the theorem with samples of this very kernel."""
        return audit(self)
