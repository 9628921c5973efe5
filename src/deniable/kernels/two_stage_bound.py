"""The bound on a two-stage kernel's loss for every pair.

For a pair, with A_x[C] = ln P1(C | x) - ln Z2(x, C) and y in C,

    ln P(y|x) - ln P(y|x') = A_x[C] - A_x'[C] - rate2 (d(x, y) - d(x', y))
    L(x, x') <= max_C |A_x[C] - A_x'[C]| + rate2 d(x, x')          (d a metric)

which is V^2 x clusters work. Two things make it affordable. The largest and the smallest A of
each cluster bound all pairs of two clusters at once, and clusters whose bound can't beat what was
found stay closed. Those that are opened are looked at in 16-bit integers, with the rounding added,
and only the few pairs that may still be the worst are computed in float64. The result is the
maximum over all pairs: nothing is sampled.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from deniable import parallel, progress
from deniable.certify import Bound
from deniable.sampling import Floats, Ids

if TYPE_CHECKING:
    from deniable.kernels.two_stage import TwoStageKernel

# Blocks of this many columns stay in a core's cache while all clusters are gone through.
COLUMNS = 512
# Differences of two integers of this size still fit into 16 bits.
STEPS = 16_383
# How many pairs are computed again in float64 at a time.
AGAIN = 256
KEPT = 50


def bound_all_pairs(kernel: TwoStageKernel) -> Bound:
    """Return the largest ratio of bounded loss to promise, and the largest bounded loss."""
    search = _Search(kernel)
    clusters = len(kernel.partition)
    inside = parallel.in_threads(lambda a: search.open(a, np.array([a])), range(clusters))
    for _ in progress.track(inside, "within clusters", clusters):
        pass
    across = parallel.in_threads(search.open_later, range(clusters))
    for _ in progress.track(across, "across clusters", clusters):
        pass
    count = len(kernel.space)
    pairs = np.array([(a, b) for _, a, b in search.pairs], dtype=np.int64).reshape(-1, 2)
    return Bound(search.ratio, search.loss, count * (count - 1) // 2, pairs)


class _Search:
    """The largest ratio and loss so far, and what is needed to look for larger ones."""

    def __init__(self, kernel: TwoStageKernel) -> None:
        self.kernel = kernel
        self.ratio, self.loss = 0.0, 0.0
        self.pairs: list[tuple[float, int, int]] = []
        self._lock = Lock()
        members, starts = kernel.partition.members, kernel.partition.starts[:-1]
        profile = kernel.log_p1[kernel.labels] - kernel.log_z2()
        # Words with equal vectors in one cluster share one row, hence one profile.
        profile = profile[kernel.representatives(np.arange(len(profile), dtype=np.int64))]
        self.profile: Floats = profile[members]
        # What all words have in common cancels in differences; without it the steps are finer.
        spread = self.profile - (self.profile.max(axis=0) + self.profile.min(axis=0)) / 2.0
        self.step = max(float(np.abs(spread).max()) / STEPS, 1e-300)
        self.rough = np.ascontiguousarray(np.rint(spread / self.step).T.astype(np.int16))
        self.highest = np.maximum.reduceat(self.profile, starts, axis=0)
        self.lowest = np.minimum.reduceat(self.profile, starts, axis=0)
        diameter = kernel.space.diameter if kernel.space.is_metric else kernel.delta
        self.stage2 = kernel.rate2 * diameter

    def open_later(self, a: int) -> None:
        """Open those later clusters whose bound with cluster `a` beats what was found."""
        kernel = self.kernel
        later = np.arange(a + 1, len(kernel.partition))
        up = (self.highest[a] - self.lowest[later]).max(axis=1, initial=-np.inf)
        down = (self.highest[later] - self.lowest[a]).max(axis=1, initial=-np.inf)
        losses = np.maximum(up, down) + self.stage2
        promise = kernel.guarantee.epsilon / 2.0 * kernel.k * kernel.between[a, later]
        ratios = (losses + kernel.rounding) / (promise + kernel.guarantee.slack)
        # The widest first, so that the rest have more to beat.
        for b in later[np.argsort(-ratios)][:1]:
            self.open(a, np.array([b]))
        self.open(a, later[(ratios > self.ratio) | (losses > self.loss)])

    def open(self, a: int, others: Ids) -> None:
        """Look at all pairs of a word of cluster `a` and a word of the other clusters."""
        starts = self.kernel.partition.starts
        rows = np.arange(starts[a], starts[a + 1])
        runs = [np.arange(starts[b], starts[b + 1]) for b in others]
        columns = np.concatenate(runs) if runs else np.empty(0, dtype=np.int64)
        for start in range(0, len(columns), COLUMNS):
            self._look(rows, columns[start : start + COLUMNS])

    def _look(self, rows: Ids, columns: Ids) -> None:
        kernel = self.kernel
        a, b = kernel.partition.members[rows], kernel.partition.members[columns]
        rest = self._second(a, b)
        same = kernel.representatives(a)[:, None] == kernel.representatives(b)[None, :]
        promise = kernel.promised(a, b)
        loss = self._rough_gaps(rows, columns) + (rest + self.step * (1.0 + 1e-9))
        loss[same] = 0.0
        ratio = (loss + kernel.rounding) / promise
        ratio[same] = 0.0
        with self._lock:
            self.loss = max(self.loss, float(loss.max()))
        self._again(rows, columns, ratio, rest, promise)

    def _second(self, a: Ids, b: Ids) -> Floats:
        """rate2 d(x, x'), or its largest value where d is no metric."""
        if not self.kernel.space.is_metric:
            return np.full((len(a), len(b)), self.stage2)
        distances: Floats = self.kernel.space.distances(a, b)
        distances *= self.kernel.rate2
        return distances

    def _rough_gaps(self, rows: Ids, columns: Ids) -> Floats:
        """max over C of |A_x[C] - A_x'[C]|; each of the two is rounded by at most half a step."""
        left, right = self.rough[:, rows], self.rough[:, columns]
        gap = np.zeros((len(rows), len(columns)), dtype=np.int16)
        one = np.empty_like(gap)
        for x, y in zip(left, right, strict=True):
            np.subtract(x[:, None], y[None, :], out=one)
            np.abs(one, out=one)
            np.maximum(gap, one, out=gap)
        return gap.astype(np.float64) * self.step

    def _again(self, rows: Ids, columns: Ids, ratio: Floats, rest: Floats, promise: Floats) -> None:
        """Compute in float64 the pairs that may be worse than the worst found, worst first."""
        at = np.flatnonzero(ratio > self.ratio)
        at = at[np.argsort(-ratio.ravel()[at])]
        for start in range(0, len(at), AGAIN):
            some = at[start : start + AGAIN]
            if ratio.ravel()[some[0]] <= self.ratio:
                return
            i, j = np.divmod(some, len(columns))
            gap = np.abs(self.profile[rows[i]] - self.profile[columns[j]]).max(axis=1)
            exact = (gap + rest[i, j] + self.kernel.rounding) / promise[i, j]
            self._keep(exact, rows[i], columns[j])

    def _keep(self, exact: Floats, rows: Ids, columns: Ids) -> None:
        members = self.kernel.partition.members
        worst = np.argsort(-exact)[:KEPT]
        found = [(float(exact[k]), int(members[rows[k]]), int(members[columns[k]])) for k in worst]
        with self._lock:
            self.pairs = sorted(self.pairs + found, reverse=True)[:KEPT]
            self.ratio = max(self.ratio, found[0][0])
