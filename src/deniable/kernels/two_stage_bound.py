"""The bound on a two-stage kernel's loss for every pair, without looking at every pair.

For a pair, with A_x[C] = ln P1(C | x) - ln Z2(x, C) and y in C,

    ln P(y|x) - ln P(y|x') = A_x[C] - A_x'[C] - rate2 (d(x, y) - d(x', y))
    L(x, x') <= max_C |A_x[C] - A_x'[C]| + rate2 d(x, x')          (d a metric)

which is V^2 x clusters work. Words of one cluster have nearly the same A, so the largest and
smallest A of each cluster bound all pairs of two clusters at once. Pairs of clusters are opened
in the order of that bound, until no unopened one can beat what was found: the maximum over all
pairs, exactly. Pairs inside one cluster are all looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deniable import parallel, progress
from deniable.certify import Bound
from deniable.sampling import Floats, Ids

if TYPE_CHECKING:
    from deniable.kernels.two_stage import TwoStageKernel

# How many pairs of clusters are opened at a time.
BATCH = 64


@dataclass
class _Best:
    """The largest ratio and the largest loss so far, and the pairs that had large ratios."""

    ratio: float = 0.0
    loss: float = 0.0

    def __post_init__(self) -> None:
        self.pairs: list[tuple[float, int, int]] = []

    def add(self, found: tuple[float, float, int, int]) -> None:
        ratio, loss, a, b = found
        self.ratio, self.loss = max(self.ratio, ratio), max(self.loss, loss)
        self.pairs = sorted([*self.pairs, (ratio, a, b)], reverse=True)[:50]


def bound_all_pairs(kernel: TwoStageKernel) -> Bound:
    """Return the largest ratio of bounded loss to promise, and the largest bounded loss."""
    search = _Search(kernel)
    best = _Best()
    clusters = len(kernel.partition)
    inside = [(i, i) for i in range(clusters) if kernel.partition.sizes[i] > 1]
    opened = parallel.in_threads(search.open, inside)
    for found in progress.track(opened, "within clusters", len(inside)):
        best.add(found)
    ratios, losses = search.envelopes()
    _open_while(search, best, ratios, lambda: best.ratio)
    _open_while(search, best, losses, lambda: best.loss)
    pairs = np.array([(a, b) for _, a, b in best.pairs if a >= 0], dtype=np.int64).reshape(-1, 2)
    count = len(kernel.space)
    return Bound(best.ratio, best.loss, count * (count - 1) // 2, pairs)


def _open_while(search: _Search, best: _Best, bounds: Floats, target: Callable[[], float]) -> None:
    """Open pairs of clusters, the largest bound first, while one may still beat the target."""
    order = np.argsort(-bounds)
    for start in range(0, len(order), BATCH):
        batch = [i for i in order[start : start + BATCH].tolist() if bounds[i] > target()]
        if not batch:
            return
        for found in parallel.in_threads(search.open, [search.apart[i] for i in batch]):
            best.add(found)


class _Search:
    def __init__(self, kernel: TwoStageKernel) -> None:
        self.kernel = kernel
        members, starts = kernel.partition.members, kernel.partition.starts[:-1]
        profile = kernel.log_p1[kernel.labels] - kernel.log_z2()
        # Words with equal vectors in one cluster share one row, hence one profile.
        profile = profile[kernel.representatives(np.arange(len(profile), dtype=np.int64))]
        self.profile: Floats = profile[members]
        self.highest = np.maximum.reduceat(self.profile, starts, axis=0)
        self.lowest = np.minimum.reduceat(self.profile, starts, axis=0)
        diameter = kernel.space.diameter
        self.stage2 = kernel.rate2 * (diameter if kernel.space.is_metric else kernel.delta)

    def open(self, pair: tuple[int, int]) -> tuple[float, float, int, int]:
        """Return the largest ratio, the largest loss and the worst pair of two clusters."""
        kernel = self.kernel
        starts, members = kernel.partition.starts, kernel.partition.members
        rows = np.arange(starts[pair[0]], starts[pair[0] + 1])
        columns = np.arange(starts[pair[1]], starts[pair[1] + 1])
        a, b = members[rows], members[columns]
        promise = kernel.promised(a, b)
        loss = self._losses(rows, columns, a, b)
        ratio = (loss + kernel.rounding) / promise
        same = kernel.representatives(a)[:, None] == kernel.representatives(b)[None, :]
        loss[same], ratio[same] = 0.0, 0.0
        i, j = np.unravel_index(int(ratio.argmax()), ratio.shape)
        return float(ratio[i, j]), float(loss.max()), int(a[i]), int(b[j])

    def _losses(self, rows: Ids, columns: Ids, a: Ids, b: Ids) -> Floats:
        loss = np.empty((len(rows), len(columns)))
        others = self.profile[columns]
        for i, row in enumerate(rows):
            loss[i] = np.abs(self.profile[row] - others).max(axis=1)
        if self.kernel.space.is_metric:
            loss += self.kernel.rate2 * self.kernel.space.distances(a, b)
        else:
            loss += self.stage2
        return loss

    def envelopes(self) -> tuple[Floats, Floats]:
        """Bound the ratio and the loss of all pairs of words, for each two clusters in `apart`."""
        left, right = np.triu_indices(len(self.kernel.partition), 1)
        self.apart = list(zip(left.tolist(), right.tolist(), strict=True))
        losses = np.empty(len(left))
        for start in range(0, len(left), 4096):
            a, b = left[start : start + 4096], right[start : start + 4096]
            up = (self.highest[a] - self.lowest[b]).max(axis=1)
            down = (self.highest[b] - self.lowest[a]).max(axis=1)
            losses[start : start + 4096] = np.maximum(up, down)
        losses += self.stage2
        kernel = self.kernel
        least = kernel.guarantee.epsilon / 2.0 * kernel.k * kernel.between[left, right]
        ratios = (losses + kernel.rounding) / (least + kernel.guarantee.slack)
        return ratios, losses
