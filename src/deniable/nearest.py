"""Exact nearest words of points: a fast pass in float32 whose error is bounded, then float64.

The nearest word y of a point q has the largest q.y - |y|^2 / 2. In float32 each of these is off
by at most ERROR (|q| |y| + |y|^2 / 2), so a word whose value is below the best by more than twice
that can't be the nearest. The few that are left are compared in float64. No
approximate index is used: what it answers depends on more than the noisy point, and the promise
is about the noisy point.

Points come scaled: q = a x + t with a in (0, 1], and words as a y, so that noise of any size
(a is tiny then) neither overflows nor swallows the words.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from deniable.geometry import blocks
from deniable.sampling import Floats, Ids

Singles = npt.NDArray[np.float32]

# Half a unit of float32, for the two roundings of the inputs and each step of a sum over d.
UNIT = 2.0**-24
SPARE_STEPS = 16


class NearestWords:
    """The words of a space, at most 1 from the origin, ready to be searched."""

    def __init__(self, points: Floats) -> None:
        self.points = points
        self._halves: Floats = np.einsum("ij,ij->i", points, points) / 2.0
        # The last column takes |y|^2 / 2 into the matrix product.
        table = np.concatenate([points, -self._halves[:, None]], axis=1)
        self._table: Singles = np.ascontiguousarray(table.T, dtype=np.float32)
        self._reach = float(np.sqrt(2.0 * self._halves.max()))

    def first(self, points: Floats, scales: Floats) -> Ids:
        """Return the nearest word of each scaled point; of equal vectors the first."""
        return self._nearest(points, scales, 1)[:, 0]

    def first_two(self, points: Floats, scales: Floats) -> tuple[Ids, Floats]:
        """Return the two nearest words of each point and their distances (scaled as the points)."""
        count = min(2, len(self.points))
        words = self._nearest(points, scales, count)
        gaps = points[:, None, :] - scales[:, None, None] * self.points[words]
        distances = np.linalg.norm(gaps, axis=2)
        # Where there is one word only, it is its own second.
        return words[:, [0, count - 1]], distances[:, [0, count - 1]]

    def _nearest(self, points: Floats, scales: Floats, k: int) -> Ids:
        """Return the k nearest words of each point, the nearest first."""
        values = self._rough(points, scales)
        least = _kth_largest(values, k) - self._slack(points, scales)
        rows, words = np.nonzero(values >= least[:, None])
        exact = np.empty(len(rows))
        for run in blocks(len(rows), points.shape[1]):
            r, w = rows[run], words[run]
            exact[run] = np.einsum("ij,ij->i", points[r], self.points[w])
            exact[run] -= scales[r] * self._halves[w]
        order = np.lexsort((-exact, rows))
        starts = np.searchsorted(rows, np.arange(len(points)))
        found: Ids = words[order[starts[:, None] + np.arange(k)]]
        return found

    def _rough(self, points: Floats, scales: Floats) -> Singles:
        """Return q.y - a |y|^2 / 2 for every point and word, in float32."""
        extended = np.concatenate([points, scales[:, None]], axis=1).astype(np.float32)
        values: Singles = extended @ self._table
        return values

    def _slack(self, points: Floats, scales: Floats) -> Singles:
        """Return how far below the best a nearest word may come out."""
        steps = self.points.shape[1] + SPARE_STEPS
        length = np.linalg.norm(points, axis=1) * self._reach + scales * self._reach**2 / 2.0
        # float32 cannot round numbers below 2^-126 to their last digits.
        slack: Singles = (4.0 * steps * UNIT * length + steps * 2.0**-120).astype(np.float32)
        return slack


def _kth_largest(values: Singles, k: int) -> Singles:
    if k == 1:
        best: Singles = values.max(axis=1)
        return best
    kth: Singles = np.partition(values, values.shape[1] - k, axis=1)[:, -k]
    return kth
