"""Exact nearest words of points: a fast pass in float32 whose error is bounded, then float64.

The nearest word y of a point q has the largest q.y - o(y), with an offset o of its own: |y|^2 / 2
for Euclidean distances, the first coordinate on the hyperboloid for hyperbolic ones. In float32
each of these is off by at most some units of |q| |y| + o(y), so a word whose value is below
the best by more than twice that can't be the nearest. The few that are left are compared in
float64. No approximate index is used: what it answers depends on more than the noisy point, and
the promise is about the noisy point.

Points come scaled: q = a x + t with a in (0, 1], and offsets as a o(y), so that noise of any size
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
    """The words of a space, of a size near 1, ready to be searched."""

    def __init__(self, points: Floats, offsets: Floats | None = None) -> None:
        self.points = points
        squares: Floats = np.einsum("ij,ij->i", points, points)
        self._offsets: Floats = squares / 2.0 if offsets is None else offsets
        # The last column takes the offset into the matrix product.
        table = np.concatenate([points, -self._offsets[:, None]], axis=1)
        self._table: Singles = np.ascontiguousarray(table.T, dtype=np.float32)
        self._reach = float(np.sqrt(squares.max()))
        self._most = float(np.abs(self._offsets).max())

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
            exact[run] -= scales[r] * self._offsets[w]
        order = np.lexsort((-exact, rows))
        starts = np.searchsorted(rows, np.arange(len(points)))
        found: Ids = words[order[starts[:, None] + np.arange(k)]]
        return found

    def _rough(self, points: Floats, scales: Floats) -> Singles:
        """Return q.y - a o(y) for every point and word, in float32."""
        extended = np.concatenate([points, scales[:, None]], axis=1).astype(np.float32)
        values: Singles = extended @ self._table
        return values

    def _slack(self, points: Floats, scales: Floats) -> Singles:
        """Return how far below the best a nearest word may come out."""
        steps = self.points.shape[1] + SPARE_STEPS
        length = np.linalg.norm(points, axis=1) * self._reach + scales * self._most
        # float32 cannot round numbers below 2^-126 to their last digits.
        slack: Singles = (4.0 * steps * UNIT * length + steps * 2.0**-120).astype(np.float32)
        return slack


def _kth_largest(values: Singles, k: int) -> Singles:
    if k == 1:
        best: Singles = values.max(axis=1)
        return best
    kth: Singles = np.partition(values, values.shape[1] - k, axis=1)[:, -k]
    return kth
