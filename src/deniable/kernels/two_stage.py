"""A kernel of two stages, cluster and word, as one row over all words; and its certification."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from deniable import parallel, progress
from deniable.certify import Bound, Certification, brute_force, from_bound, is_small
from deniable.geometry import blocks, euclidean
from deniable.guarantee import METRIC, Guarantee, Relation
from deniable.kernels.dense import DenseKernel
from deniable.mechanism import Mechanism
from deniable.partition import Partition
from deniable.sampling import Floats, Ids, promised_slack, rounding
from deniable.space import Space


class TwoStageKernel(DenseKernel):
    """Stage one by centroids, stage two by words; `outputs` are the words sorted by cluster."""

    def __init__(
        self, mechanism: Mechanism, space: Space, partition: Partition, scale: float, k: float
    ) -> None:
        self.mechanism, self.space, self.partition, self.k = mechanism, space, partition, k
        self.outputs = partition.members
        self.labels = partition.labels
        self.centroids = _centroids(space, partition)
        self.between = euclidean(self.centroids, self.centroids)
        self.delta = max(1.0, space.diameter)
        self.rate1 = scale * mechanism.epsilon * k / 4.0
        self.rate2 = scale * mechanism.epsilon / (4.0 * self.delta)
        self.log_p1 = _log_softmax(-self.rate1 * self.between)
        largest = float(self.between.max(initial=0.0))
        self.exponent = self.rate1 * largest + self.rate2 * space.diameter
        self.rounding = rounding(self.exponent, len(space))
        self._slack = promised_slack(self.exponent, len(space))
        self.guarantee = self._promise()

    def _promise(self) -> Guarantee:
        metric = f"(k |centroids| + min(1, {self.space.metric} / {self.delta:.4g})) / 2"
        if not self.space.is_metric:
            metric = "(k |centroids| + 1 if different) / 2"
        largest = float(self.between.max(initial=0.0))
        diameter = (self.k * largest + 1.0) / 2.0
        return Guarantee(
            unit="token",
            relation=Relation(METRIC, metric=f"{metric}, k = {self.k:g}", diameter=diameter),
            epsilon=float(self.mechanism.epsilon),
            slack=self._slack,
            paper="Theorem 5 claims epsilon |f'(x) - f'(x')| under assumptions that may fail; "
            "certify counts the pairs for which they do",
            spread=self._spread(largest),
        )

    def _spread(self, largest: float) -> float:
        """Stage one spreads as an exponential mechanism does; stage two twice as far, because
        its normaliser differs from cluster to cluster."""
        words = self.rate2 * self.space.diameter
        return 2.0 * self.rate1 * largest + 4.0 * words + 2.0 * self._slack

    def representatives(self, ids: Ids) -> Ids:
        """Words share a row only if their vectors and their clusters are the same."""
        twins = self.space.twins[ids]
        return np.where(self.labels[twins] == self.labels[ids], twins, ids)

    def log_weights(self, ids: Ids) -> Floats:
        """ln P1(C_y | x) + ln P2(y | x, C_y), columns sorted by cluster."""
        logs = self.space.distances(ids, self.outputs)
        logs *= -self.rate2
        stage = self.log_p1[self.labels[ids]] - self._log_z2(logs)
        logs += np.repeat(stage, self.partition.sizes, axis=1)
        return logs

    def _log_z2(self, logs: Floats) -> Floats:
        """ln of the sum over each cluster of exp(logs); where exp might come to 0, the largest
        term is taken out first."""
        starts = self.partition.starts[:-1]
        if self.rate2 * self.space.diameter < 700:
            return np.log(np.add.reduceat(np.exp(logs), starts, axis=1))
        largest = np.maximum.reduceat(logs, starts, axis=1)
        shifted = np.exp(logs - np.repeat(largest, self.partition.sizes, axis=1))
        return np.log(np.add.reduceat(shifted, starts, axis=1)) + largest

    def promised(self, a: Ids, b: Ids) -> Floats:
        """(eps / 2) (k |C_x - C_x'| + min(1, d / Delta)), and the slack."""
        words = _second_term(self.space, self.delta, a, b)
        return self._promise_of(self.between[np.ix_(self.labels[a], self.labels[b])], words)

    def _promise_of(self, between: Floats, words: Floats) -> Floats:
        epsilon = self.guarantee.epsilon
        return epsilon / 2.0 * (self.k * between + words) + self.guarantee.slack

    def certify(self) -> Certification:
        """By brute force if the space is small; by the bound for all pairs otherwise."""
        found = brute_force(self) if is_small(self) else from_bound(self, self.bound())
        return replace(found, notes=(*found.notes, self.theorem5().describe()))

    def bound(self) -> Bound:
        """Bound the loss of every pair: see TwoStageBound."""
        from deniable.kernels.two_stage_bound import bound_all_pairs  # noqa: PLC0415 (a cycle)

        return bound_all_pairs(self)

    def log_z2(self) -> Floats:
        """Return ln Z2(x, C) for every word and cluster."""

        def block(rows: Ids) -> Floats:
            logs = self.space.distances(rows, self.outputs)
            logs *= -self.rate2
            return self._log_z2(logs)

        runs = list(blocks(len(self.space), len(self.space)))
        found = progress.track(parallel.in_threads(block, runs), "normalising", len(runs))
        return np.concatenate(list(found))

    def theorem5(self) -> Theorem5:
        """Count the pairs for which the paper's assumptions hold."""
        space, labels = self.space, self.labels
        points = space.geometry.points
        pushed = points + (self.k - 1.0) * self.centroids[labels]

        def block(rows: Ids) -> tuple[float, ...]:
            rest = np.arange(rows[0], len(space), dtype=np.int64)
            later = rest[None, :] > rows[:, None]
            apart = euclidean(pushed[rows], pushed[rest])
            first = (apart >= 1) | (apart >= space.distances(rows, rest))
            second = self.between[np.ix_(labels[rows], labels[rest])] * self.k + 1 <= 2 * apart
            second |= labels[rows][:, None] == labels[rest][None, :]
            return (later & ~first).sum(), (later & ~second).sum(), apart.max(initial=0.0)

        runs = list(blocks(len(space), 2 * len(space)))
        found = np.array(list(parallel.in_threads(block, runs)), dtype=np.float64)
        pairs = len(space) * (len(space) - 1) // 2
        first, second = found[:, :2].sum(axis=0).astype(int).tolist()
        return Theorem5(pairs, first, second, self.guarantee.epsilon * float(found[:, 2].max()))


@dataclass(frozen=True)
class Theorem5:
    """How many pairs break the assumptions under which the paper's claim is proved."""

    pairs: int
    first: int
    second: int
    claim: float

    def describe(self) -> str:
        """Say what the paper claims, and whether that is proved here."""
        claim = f"the paper's Theorem 5 claims epsilon |f'(x) - f'(x')|, at most {self.claim:.4g}"
        if not self.first and not self.second:
            return f"{claim}; its assumptions hold for every pair"
        return (
            f"{claim}; it does not apply: assumption 1 fails for {self.first:,} and assumption 2 "
            f"for {self.second:,} of {self.pairs:,} pairs"
        )


def _centroids(space: Space, partition: Partition) -> Floats:
    points = space.geometry.points[partition.members]
    sums: Floats = np.add.reduceat(points, partition.starts[:-1], axis=0)
    return sums / partition.sizes[:, None]


def _log_softmax(logs: Floats) -> Floats:
    logs = logs - logs.max(axis=1, keepdims=True)
    return np.asarray(logs - np.log(np.exp(logs).sum(axis=1, keepdims=True)))


def _second_term(space: Space, delta: float, a: Ids, b: Ids) -> Floats:
    """min(1, d / Delta) for a metric; 1 for different words otherwise."""
    if space.is_metric:
        share: Floats = np.minimum(space.distances(a, b) / delta, 1.0)
        return share
    different: Floats = (a[:, None] != b[None, :]).astype(np.float64)
    return different
