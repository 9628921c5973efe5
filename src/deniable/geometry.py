"""Distances between the words of a space: float64, in blocks, exact where it matters.

Euclidean distances come from |x|^2 + |y|^2 - 2xy, which one matrix product computes fast but
which cancels where x and y are close. Those few entries are computed again from x - y, so that
equal vectors are at distance exactly 0 and near ones keep all their digits. The other metrics
are functions of the chord between unit vectors:

    cosine    1 - cos(x, y)          = chord^2 / 2                    (not a metric)
    angular   angle(x, y) / pi       = 2 atan2(|u - v|, |u + v|) / pi (a metric, in [0, 1])

and distances in the Poincare ball (all points inside the unit ball) of |x - y|^2 and the norms:

    poincare  arcosh(1 + t) = ln(1 + t + sqrt(t (t + 2))),
              t = 2 |x - y|^2 / ((1 - |x|^2) (1 - |y|^2))              (a metric)
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]

METRICS = ("euclidean", "cosine", "angular", "poincare")

# Below this share of |x|^2 + |y|^2 the fast formula has lost over four of its sixteen digits.
CANCELLED = 1e-4
# How many float64 numbers one block of distances may hold (64 MB).
BLOCK = 8_000_000
# How many of them fit into a core's own cache beside what is computed from them.
CACHED = 32_768


class Geometry:
    """The points of a space, ready for fast and exact distances."""

    def __init__(self, vectors: npt.NDArray[np.float32], metric: str) -> None:
        self.metric = metric
        points = vectors.astype(np.float64)
        if metric == "euclidean":
            # The median, unlike the mean, stays among the crowd when one word is far away.
            points -= np.median(points, axis=0)
        elif metric != "poincare":
            points /= np.linalg.norm(points, axis=1, keepdims=True)
        self.points: Floats = points
        self.squares: Floats = np.einsum("ij,ij->i", points, points)

    def distances(self, a: Ids, b: Ids | None = None) -> Floats:
        """The distances of the words `a` (rows) to the words `b` (columns; all when None)."""
        others = self.points if b is None else self.points[b]
        norms = self.squares if b is None else self.squares[b]
        return self._finish(self.points[a], self.squares[a], others, norms)

    def _finish(self, x: Floats, nx: Floats, y: Floats, ny: Floats) -> Floats:
        out = _products(x, y)
        for rows in cached_runs(*out.shape):
            self._finish_rows(out[rows], x[rows], nx[rows], y, ny)
        return out

    def _finish_rows(self, out: Floats, x: Floats, nx: Floats, y: Floats, ny: Floats) -> None:
        """Turn -2xy into distances, in place."""
        scale = nx[:, None] + ny[None, :]
        out += scale
        _repair(out, scale, x, y)
        if self.metric == "euclidean":
            np.sqrt(out, out=out)
        elif self.metric == "cosine":
            out *= 0.5
        elif self.metric == "poincare":
            out *= 2.0 / ((1.0 - nx)[:, None] * (1.0 - ny)[None, :])
            out += np.sqrt(out * (out + 2.0))
            np.log1p(out, out=out)
        else:
            away = 2.0 * scale - out
            _repair(away, scale, x, -y)
            np.arctan2(np.sqrt(out, out=out), np.sqrt(away, out=away), out=out)
            out *= 2.0 / np.pi


def euclidean(x: Floats, y: Floats) -> Floats:
    """Euclidean distances between the rows of x and of y."""
    nx, ny = np.einsum("ij,ij->i", x, x), np.einsum("ij,ij->i", y, y)
    out = _products(x, y)
    scale = nx[:, None] + ny[None, :]
    out += scale
    _repair(out, scale, x, y)
    return np.sqrt(out, out=out)


def _products(x: Floats, y: Floats) -> Floats:
    found: Floats = (-2.0 * x) @ y.T
    return found


def _repair(squared: Floats, scale: Floats, x: Floats, y: Floats) -> None:
    """Compute the cancelled entries again, from x - y."""
    rows, columns = np.nonzero(squared <= scale * CANCELLED)
    for start in range(0, len(rows), 100_000):
        r, c = rows[start : start + 100_000], columns[start : start + 100_000]
        difference = x[r] - y[c]
        squared[r, c] = np.einsum("ij,ij->i", difference, difference)


def cached_runs(rows: int, columns: int) -> Iterator[slice]:
    """Yield runs of rows that fit into a core's own cache, where passes are cheap."""
    step = max(1, CACHED // max(1, columns))
    for start in range(0, rows, step):
        yield slice(start, start + step)


def blocks(count: int, width: int, multiple: int = 1) -> Iterator[Ids]:
    """Consecutive runs of 0..count-1, each small enough for a block of the given width."""
    step = max(1, BLOCK // max(1, width))
    step = max(multiple, step - step % multiple)
    for start in range(0, count, step):
        yield np.arange(start, min(count, start + step), dtype=np.int64)


def diameter(geometry: Geometry) -> float:
    """The largest distance between two words, exactly; far pairs are tried first.

    No pair is farther apart than the sum of its two radii, so once the radii left can't beat
    the best pair found, the search ends (only in euclidean spaces; elsewhere all pairs are
    looked at).
    """
    count = len(geometry.points)
    euclidean = geometry.metric == "euclidean"
    radius = np.sqrt(geometry.squares) if euclidean else np.full(count, np.inf)
    order: Ids = np.argsort(-radius, kind="stable").astype(np.int64)
    best = 0.0
    for run in blocks(count, count):
        rows = order[run]
        rest = order[run[0] :]
        # Rounding in the radii must not hide a pair, hence the small allowance.
        rest = rest[radius[rest] + radius[rows[0]] >= best * (1 - 1e-12)]
        if radius[rows[0]] * 2 < best * (1 - 1e-12) or len(rest) == 0:
            break
        best = max(best, float(geometry.distances(rows, rest).max()))
    return best
