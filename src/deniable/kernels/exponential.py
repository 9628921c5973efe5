"""The exponential mechanism over the whole vocabulary, with a metric as its score.

    P(y | x) = exp(-rate d(x, y)) / Z_x

d is a space's distance, or that distance capped (min(d, c) is a metric too). When every input is
an output the loss of a pair has a closed form, because both halves of

    L(x, x') = rate d(x, x') + |ln Z_x - ln Z_x'|

are attained at y = x or at y = x'. The same two outputs are the ends of what the ratio spreads
over, 2 rate d(x, x') in all. All pairs are looked at in blocks, without a V x V array.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from deniable import cache, parallel, progress
from deniable.certify import Bound, Certification, brute_force, from_bound, is_small, tighten
from deniable.geometry import blocks
from deniable.guarantee import METRIC, Guarantee, Relation
from deniable.kernels.dense import DenseKernel
from deniable.mechanism import Ids, Mechanism
from deniable.sampling import Floats, promised_slack, rounding
from deniable.space import Space

T = TypeVar("T")


@dataclass(frozen=True)
class Measure:
    """A space's distance, nowhere more than `cap`."""

    space: Space
    cap: float = math.inf

    def between(self, a: Ids, b: Ids | None = None) -> Floats:
        """Return the distance of the words `a` (rows) to the words `b` (columns; all if None)."""
        distances = self.space.distances(a, b)
        return np.minimum(distances, self.cap, out=distances) if self.capped else distances

    @property
    def capped(self) -> bool:
        """Whether the cap is ever reached."""
        return self.cap < self.space.diameter

    @property
    def diameter(self) -> float:
        """The largest distance."""
        return min(self.cap, self.space.diameter)

    @property
    def name(self) -> str:
        """What a promise calls it."""
        return f"min({self.space.metric}, {self.cap:.6g})" if self.capped else self.space.metric


class ExponentialKernel(DenseKernel):
    """Rows exp(-rate d(x, y)) with rate = scale epsilon / 2, d a measure."""

    def __init__(
        self, mechanism: Mechanism, measure: Measure, scale: float, reveals: tuple[str, ...] = ()
    ) -> None:
        self.mechanism, self.space, self.measure = mechanism, measure.space, measure
        self.rate = scale * mechanism.epsilon / 2.0
        self.outputs = np.arange(len(self.space), dtype=np.int64)
        slack = promised_slack(self.rate * measure.diameter, len(self.space))
        self.guarantee = Guarantee(
            unit="token",
            relation=Relation(METRIC, metric=measure.name, diameter=measure.diameter),
            epsilon=float(mechanism.epsilon),
            slack=slack,
            reveals=reveals,
            spread=2.0 * (self.rate * measure.diameter + slack),
        )

    def log_weights(self, ids: Ids) -> Floats:
        """-rate d(x, y)."""
        distances = self.measure.between(ids)
        distances *= -self.rate
        return distances

    def promised(self, a: Ids, b: Ids) -> Floats:
        """Epsilon times the distance, and the slack."""
        loss = self.measure.between(a, b)
        loss *= self.guarantee.epsilon
        loss += self.guarantee.slack
        return loss

    def certify(self) -> Certification:
        """By brute force if the space is small; by the closed form for all pairs otherwise."""
        if is_small(self):
            return brute_force(self)
        return from_bound(self, closed_form(self.measure, self.rate, self.guarantee.epsilon))


def closed_form(
    measure: Measure,
    rate: float,
    epsilon: float,
    outputs: Ids | None = None,
    share: float = 1.0,
    keep: int = 50,
) -> Bound:
    """Evaluate L(x, x') for every pair: two passes over the distances, and no V x V array.

    The loss of the integer tables is at most L + rounding, and the promise is eps d + slack. With
    fewer `outputs` (santext+) the triangle inequality makes L an upper bound.
    """
    space = measure.space
    drawn = len(space) if outputs is None else len(outputs)
    added = rounding(rate * measure.diameter, drawn, share)
    slack = promised_slack(rate * measure.diameter, drawn, share)
    normaliser = log_normalisers(measure, rate, outputs)
    count = len(space)

    def block(rows: Ids) -> tuple[float, Floats, Ids]:
        rest = np.arange(rows[0], count, dtype=np.int64)
        distance = measure.between(rows, rest)
        loss = np.abs(normaliser[rows, None] - normaliser[rest])
        loss += rate * distance
        # Words with equal vectors share one row, whose loss is 0 and not even rounded.
        loss[distance == 0] = -added
        distance *= epsilon
        most = float(loss.max())
        loss += added
        distance += slack
        loss /= distance
        worst = np.argmax(loss, axis=1)
        pairs = np.stack([rows, rest[worst]], axis=1)
        return most, loss[np.arange(len(rows)), worst], pairs

    found = list(_over_rows(block, count, "certifying"))
    ratios = np.concatenate([row for _, row, _ in found])
    pairs = np.concatenate([pair for _, _, pair in found])
    order = np.argsort(-ratios)[:keep]
    most = max(0.0, *(most for most, _, _ in found))
    return Bound(float(max(0.0, ratios.max())), most, count * (count - 1) // 2, pairs[order])


def log_normalisers(measure: Measure, rate: float, outputs: Ids | None = None) -> Floats:
    """Return ln Z_x for every word: ln of the sum over y of exp(-rate d(x, y))."""

    def block(rows: Ids) -> Floats:
        distance = measure.between(rows, outputs)
        distance *= -rate
        # Without the largest term taken out, the far words of a wide space would sum to 0.
        largest = distance.max(axis=1, keepdims=True)
        distance -= largest
        total: Floats = np.log(np.exp(distance, out=distance).sum(axis=1)) + largest[:, 0]
        return total

    found = np.concatenate(list(_over_rows(block, len(measure.space), "normalising")))
    return found[measure.space.twins]


def _over_rows(block: Callable[[Ids], T], count: int, what: str) -> Iterator[T]:
    runs = list(blocks(count, count))
    return progress.track(parallel.in_threads(block, runs), what, total=len(runs))


def tight_scale(measure: Measure, epsilon: float, outputs: Ids | None = None) -> float:
    """Return the largest s for which L(x, x') <= eps d(x, x') holds for every pair."""
    space, fewer = measure.space, 0 if outputs is None else len(outputs)
    key = ("tight-exponential", space.hash, repr(measure.cap), epsilon, fewer)
    found = cache.load_number(key, 1.0, 2.0)
    if found is None:

        def worst_at(scale: float) -> float:
            return closed_form(measure, scale * epsilon / 2.0, epsilon, outputs).worst

        # The first half of L alone makes s <= 2; the proof makes s = 1 safe.
        found = tighten(worst_at, 1.0, 2.0, tolerance=1e-6 if len(space) < 2000 else 1e-4)
        cache.save_number(key, found)
    return found
