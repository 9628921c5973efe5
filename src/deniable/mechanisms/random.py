"""Uniform replacement: every word becomes a word drawn uniformly from the space.

    P(y | x) = 1 / V

The output is independent of the input, so the loss of every pair is 0 for any epsilon: the floor
that every other mechanism is measured against (Yue et al. 2021, Table 1, row `Random`).
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from deniable.certify import Certification, losses_between
from deniable.geometry import METRICS
from deniable.guarantee import ALL_PAIRS, Guarantee, Relation
from deniable.kernels.dense import DenseKernel
from deniable.mechanism import Ids, Mechanism, register
from deniable.sampling import Floats
from deniable.space import Space


@register
@dataclass(frozen=True)
class Random(Mechanism):
    """Uniform replacement."""

    name = "random"
    summary = "every word becomes a uniformly drawn word"
    promise = "epsilon = 0 between all pairs, whatever is asked for"
    source = "baseline of Yue et al., ACL Findings 2021"
    cost = "one random number for each token"
    accepts = METRICS
    explains = MappingProxyType({"epsilon": "not used: the loss is 0 whatever is asked for"})

    epsilon: float = 1.0

    def bind(self, space: Space) -> RandomKernel:
        """Make the sampler."""
        self.check_space(space)
        return RandomKernel(self, space)


class RandomKernel(DenseKernel):
    """One uniform row for all words."""

    def __init__(self, mechanism: Random, space: Space) -> None:
        self.mechanism, self.space = mechanism, space
        self.outputs = np.arange(len(space), dtype=np.int64)
        self.guarantee = Guarantee("token", Relation(ALL_PAIRS), epsilon=0.0)

    def representatives(self, ids: Ids) -> Ids:
        """Every word shares the first word's row."""
        return np.zeros_like(ids)

    def log_weights(self, ids: Ids) -> Floats:
        """Equal weights."""
        return np.zeros((len(ids), len(self.outputs)))

    def promised(self, a: Ids, b: Ids) -> Floats:
        """Promise no loss at all."""
        return np.zeros((len(a), len(b)))

    def sample(self, ids: npt.ArrayLike) -> Ids:
        """Draw one table for all, instead of one for each word."""
        wanted = np.asarray(ids, dtype=np.int64)
        return self.draws(np.zeros(1, dtype=np.int64), np.array([wanted.size])).reshape(
            wanted.shape
        )

    def certify(self) -> Certification:
        """Compare the first row with every other: they are one row, so no pair loses anything."""
        count = len(self.space)
        ends = self.log_probs([0, count - 1])
        loss = float(losses_between(ends[:1], ends[1:])[0, 0])
        one_row = not self.representatives(np.arange(count)).any()
        return Certification(
            holds=one_row and loss == 0.0,
            worst=loss,
            worst_pair=None,
            max_loss=loss,
            covered=1.0,
            method="recomputed",
            pairs=count * (count - 1) // 2,
            epsilon_diameter=0.0,
        )
