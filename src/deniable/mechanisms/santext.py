"""SanText: the exponential mechanism over the whole vocabulary (Yue et al. 2021, Algorithm 1).

    P(y | x) = exp(-s eps d(x, y) / 2) / Z_x        s = 1 ("paper"), or s in [1, 2] ("tight")

Promise: eps d(x, x') for every pair, d the metric of the space. Proof: by the triangle
inequality d(x', y) - d(x, y) <= d(x, x'), so the ratio of the numerators is at most
exp(s eps d(x, x') / 2) and, summed over y, so is Z_x' / Z_x. With s = 1 both halves together
give eps d. The true loss of a pair is

    L(x, x') = s (eps / 2) d(x, x') + |ln Z_x - ln Z_x'|

(equality at y = x or y = x', since every input is an output), which on real spaces is well below
eps d. `tight` finds the largest s with L(x, x') <= eps d(x, x') for all pairs: the same promise,
less noise. `certify` evaluates L for all pairs, in blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeVar

import numpy as np

from deniable import cache, parallel, progress
from deniable.certify import Bound, Certification, brute_force, from_bound, is_small, tighten
from deniable.geometry import blocks
from deniable.guarantee import METRIC, Guarantee, Relation
from deniable.kernels.dense import DenseKernel
from deniable.mechanism import (
    CALIBRATE,
    CALIBRATIONS,
    EPSILON,
    Ids,
    Mechanism,
    check_choice,
    register,
)
from deniable.sampling import Floats, promised_slack, rounding
from deniable.space import Space

T = TypeVar("T")


@register
@dataclass(frozen=True)
class SanText(Mechanism):
    """The exponential mechanism over the whole vocabulary."""

    name = "santext"
    summary = "a near word is drawn more often: exponential mechanism over all words"
    promise = "epsilon x distance, between all pairs"
    source = "Yue et al., ACL Findings 2021, Algorithm 1"
    accepts = ("euclidean", "angular")
    explains = MappingProxyType({"epsilon": EPSILON, "calibrate": CALIBRATE})

    calibrate: str = "paper"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("calibrate", self.calibrate, CALIBRATIONS)

    def bind(self, space: Space) -> DenseKernel:
        """Make the sampler."""
        self.check_space(space)
        scale = 1.0 if self.calibrate == "paper" else tight_scale(space, self.epsilon)
        return SanTextKernel(self, space, scale)


class SanTextKernel(DenseKernel):
    """Rows exp(-rate d(x, y)) with rate = scale epsilon / 2."""

    def __init__(self, mechanism: SanText, space: Space, scale: float) -> None:
        self.mechanism, self.space = mechanism, space
        self.rate = scale * mechanism.epsilon / 2.0
        self.outputs = np.arange(len(space), dtype=np.int64)
        self.guarantee = Guarantee(
            unit="token",
            relation=Relation(METRIC, metric=space.metric, diameter=space.diameter),
            epsilon=float(mechanism.epsilon),
            slack=promised_slack(self.rate * space.diameter, len(space)),
        )

    def log_weights(self, ids: Ids) -> Floats:
        """-rate d(x, y)."""
        distances = self.space.distances(ids)
        distances *= -self.rate
        return distances

    def promised(self, a: Ids, b: Ids) -> Floats:
        """Epsilon times the distance, and the slack."""
        loss = self.space.distances(a, b)
        loss *= self.guarantee.epsilon
        loss += self.guarantee.slack
        return loss

    def certify(self) -> Certification:
        """By brute force if the space is small; by the closed form for all pairs otherwise."""
        if is_small(self):
            return brute_force(self)
        return from_bound(self, closed_form(self.space, self.rate, self.guarantee.epsilon))


def closed_form(
    space: Space,
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
    drawn = len(space) if outputs is None else len(outputs)
    added = rounding(rate * space.diameter, drawn, share)
    slack = promised_slack(rate * space.diameter, drawn, share)
    normaliser = log_normalisers(space, rate, outputs)
    count = len(space)

    def block(rows: Ids) -> tuple[float, Floats, Ids]:
        rest = np.arange(rows[0], count, dtype=np.int64)
        distance = space.distances(rows, rest)
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


def log_normalisers(space: Space, rate: float, outputs: Ids | None = None) -> Floats:
    """Return ln Z_x for every word: ln of the sum over y of exp(-rate d(x, y))."""

    def block(rows: Ids) -> Floats:
        distance = space.distances(rows, outputs)
        distance *= -rate
        # Without the largest term taken out, the far words of a wide space would sum to 0.
        largest = distance.max(axis=1, keepdims=True)
        distance -= largest
        total: Floats = np.log(np.exp(distance, out=distance).sum(axis=1)) + largest[:, 0]
        return total

    found = np.concatenate(list(_over_rows(block, len(space), "normalising")))
    return found[space.twins]


def _over_rows(block: Callable[[Ids], T], count: int, what: str) -> Iterator[T]:
    runs = list(blocks(count, count))
    return progress.track(parallel.in_threads(block, runs), what, total=len(runs))


def tight_scale(space: Space, epsilon: float, outputs: Ids | None = None) -> float:
    """Return the largest s for which L(x, x') <= eps d(x, x') holds for every pair."""
    key = ("tight-santext", space.hash, epsilon, 0 if outputs is None else len(outputs))
    found = cache.load_number(key, 1.0, 2.0)
    if found is None:

        def worst_at(scale: float) -> float:
            return closed_form(space, scale * epsilon / 2.0, epsilon, outputs).worst

        # The first half of L alone makes s <= 2; the proof makes s = 1 safe.
        found = tighten(worst_at, 1.0, 2.0, tolerance=1e-6 if len(space) < 2000 else 1e-4)
        cache.save_number(key, found)
    return found
