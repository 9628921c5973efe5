"""Noise on a word's position in a sorted list: one integer table for all words and lists.

A word of rank i in a list of V becomes the word of rank j = i + k, cut off at the list's ends,
with k of the two-sided geometric distribution g(k) = tanh(eps / 2) exp(-eps |k|). One of L lists
is chosen first, uniformly, and rarely a uniform word is taken instead. What is sampled, and what
is certified, is

    P(y | x) = f + (1 - V f) (1 / L) sum over lists of T[i, j],   f = 2^-34

T holds integers of 2^-63. A row's entries, and the sums that fall on the ends, are off by at most
two units and a float's relative error; beside f that is a relative error of 2^-28 in each row.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from deniable import progress
from deniable.certify import Bound, Certification, brute_force, from_bound, is_small
from deniable.errors import ParameterError
from deniable.guarantee import METRIC, Guarantee, Relation
from deniable.mechanism import FiniteKernel, Mechanism
from deniable.sampling import (
    FLOOR,
    SLACK,
    TOTAL,
    WIDEST,
    Counts,
    Floats,
    Ids,
    float_slack,
    randomness,
)
from deniable.space import Space

# No loss is larger: ln of 1 over the uniform share.
LARGEST_LOSS = -math.log(FLOOR)


class ShiftedKernel(FiniteKernel):
    """`orders[l]` is list l: every word id once, sorted along something public."""

    def __init__(self, mechanism: Mechanism, space: Space, orders: Ids, metric: str) -> None:
        if len(space) > WIDEST:
            raise ParameterError(f"{len(space):,} words are more than the {WIDEST:,} allowed")
        self.mechanism, self.space, self._orders = mechanism, space, orders
        self.outputs = np.arange(len(space), dtype=np.int64)
        self._ranks = np.argsort(orders, axis=1).astype(np.int64)
        self._shifts = _shift_counts(float(mechanism.epsilon), len(space))
        self._sums = np.cumsum(self._shifts)
        # Beyond, the uniform share bounds the loss; a metric that is cut off is still one.
        farthest = min(float(len(space) - 1), LARGEST_LOSS / float(mechanism.epsilon))
        self.guarantee = Guarantee(
            unit="token",
            relation=Relation(METRIC, metric=f"{metric}, at most {farthest:g}", diameter=farthest),
            epsilon=float(mechanism.epsilon),
            slack=4.0 * SLACK + float_slack(LARGEST_LOSS),
        )

    def sample(self, ids: npt.ArrayLike) -> Ids:
        """Return one output for each id: a list, a shift, and rarely a uniform word."""
        wanted = np.asarray(ids, dtype=np.int64)
        words, count = wanted.ravel(), len(self.space)
        lists = randomness().below(len(self._orders), len(words))
        shifts = np.searchsorted(self._sums, randomness().points(len(words)), side="right")
        ranks = np.clip(self._ranks[lists, words] + shifts - (count - 1), 0, count - 1)
        drawn: Ids = self._orders[lists, ranks]
        free = np.flatnonzero(randomness().points(len(words)) < count * int(FLOOR * TOTAL))
        drawn[free] = randomness().below(count, len(free))
        return drawn.reshape(wanted.shape)

    def draws(self, words: Ids, how_many: Ids) -> Ids:
        """Return `how_many[i]` outputs of `words[i]`, one word after the other."""
        return self.sample(np.repeat(words, how_many))

    def log_probs(self, ids: npt.ArrayLike) -> Floats:
        """Return the log-probabilities of what `sample` draws."""
        return _mixed(self._average(ids, self._shifts / TOTAL, self._ends()), len(self.space))

    def formula(self, ids: npt.ArrayLike) -> Floats:
        """Return the log-probabilities before rounding, and without the uniform share."""
        epsilon, count = float(self.mechanism.epsilon), len(self.space)
        away = np.abs(np.arange(1 - count, count))
        end = np.exp(-epsilon * np.arange(count)) / (1.0 + math.exp(-epsilon))
        ends = np.stack([end, end]) if count > 1 else np.ones((2, 1))
        with np.errstate(divide="ignore"):
            found: Floats = np.log(
                self._average(ids, math.tanh(epsilon / 2.0) * np.exp(-epsilon * away), ends)
            )
        return found

    def _ends(self) -> Floats:
        """Return what falls on the first and on the last rank, by the distance to it."""
        down = self._sums[len(self.space) - 1 :: -1] / TOTAL
        up = np.cumsum(self._shifts[::-1])[len(self.space) - 1 :: -1] / TOTAL
        return np.stack([down, up])

    def _average(self, ids: npt.ArrayLike, shifts: Floats, ends: Floats) -> Floats:
        """Return the mean over the lists of the rows T[i, .], over the words."""
        words, count = np.asarray(ids, dtype=np.int64), len(self.space)
        total = np.zeros((len(words), count))
        for ranks in self._ranks:
            for row, rank in enumerate(ranks[words].tolist()):
                reached = shifts[count - 1 - rank : 2 * count - 1 - rank].copy()
                reached[-1] = ends[1, count - 1 - rank]
                # A list of one word has one end.
                reached[0] = ends[0, rank]
                total[row] += reached[ranks]
        total /= len(self._ranks)
        return total

    def promised(self, a: Ids, b: Ids) -> Floats:
        """Epsilon times the largest distance of ranks over the lists, cut off, and the slack."""
        apart = np.zeros((len(a), len(b)))
        for ranks in self._ranks:
            np.maximum(apart, np.abs(ranks[a][:, None] - ranks[b][None, :]), out=apart)
        np.minimum(apart, self.guarantee.relation.diameter, out=apart)
        found: Floats = apart * self.guarantee.epsilon
        found[apart > 0] += self.guarantee.slack
        return found

    def certify(self) -> Certification:
        """By brute force if the space is small; by distances of ranks otherwise."""
        return brute_force(self) if is_small(self) else from_bound(self, self.bound())

    def bound(self) -> Bound:
        """Bound the loss of any two words by that of their ranks in one list, from the table.

        A mean over lists loses at most what the worst of its lists loses.
        """
        count = len(self.space)
        inside = _mixed(self._shifts[1:-1] / TOTAL, count)
        ends = _mixed(self._ends(), count)
        # Beyond, more is promised than can ever be lost.
        most = min(count - 1, math.ceil(self.guarantee.relation.diameter) + 1)
        largest = worst = 0.0
        apart = 1
        for step in progress.track(range(1, most + 1), "certifying", total=most):
            found = max(_widest(inside, step), _widest(ends[0], step), _widest(ends[1], step))
            largest = max(largest, found)
            reach = min(float(step), self.guarantee.relation.diameter)
            ratio = largest / (self.guarantee.epsilon * reach + self.guarantee.slack)
            if ratio > worst:
                worst, apart = ratio, step
        first = self._orders[:, 0]
        pairs = np.stack([first, self._orders[:, apart % count]], axis=1)
        return Bound(worst, largest, count * (count - 1) // 2, pairs)


def _mixed(formula: Floats, count: int) -> Floats:
    return np.asarray(np.log(formula * (1.0 - count * FLOOR) + FLOOR), dtype=np.float64)


def _widest(logs: Floats, step: int) -> float:
    """Return the largest difference between entries that are `step` apart."""
    if len(logs) <= step:
        return 0.0
    gaps = logs[step:] - logs[:-step]
    return float(max(gaps.max(), -gaps.min()))


def _shift_counts(epsilon: float, count: int) -> Counts:
    """Return the integer table of shifts -(V - 1) .. V - 1; its ends hold all that is beyond.

    Fractions are carried along, so that sums are as exact as the entries are.
    """
    if count == 1:
        return np.array([TOTAL], dtype=np.uint64)
    away = np.arange(count - 1, 0, -1)
    half = math.tanh(epsilon / 2.0) * np.exp(-epsilon * away)
    half[0] = np.exp(-epsilon * (count - 1)) / (1.0 + math.exp(-epsilon))
    scaled = half * float(TOTAL)
    whole = np.floor(scaled)
    carried = np.floor(np.cumsum(scaled - whole)).astype(np.uint64)
    side = whole.astype(np.uint64) + np.diff(carried, prepend=np.uint64(0))
    counts = np.concatenate([side, [np.uint64(math.tanh(epsilon / 2.0) * TOTAL)], side[::-1]])
    # What rounding left over goes where it is least: to the largest entry.
    largest, rest = int(np.argmax(counts)), TOTAL - int(counts.sum(dtype=np.uint64))
    counts[largest] = int(counts[largest]) + rest
    return counts
