"""K-ary randomised response inside small output sets (Warner 1965; Kairouz et al. 2014).

    P(x | x) = e^eps / (e^eps + m - 1)      m the size of the set of x
    P(y | x) = 1 / (e^eps + m - 1)          for every other y of the set

Promise: eps between words that share one output set, and exactly that: the two numbers differ by
the factor e^eps. No mechanism keeps a word more often at that eps; but which word it becomes
otherwise doesn't depend on what is near.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from deniable.geometry import Floats
from deniable.mapped import MappedMechanism
from deniable.mechanism import register


@register
@dataclass(frozen=True)
class RandomisedResponse(MappedMechanism):
    """The word itself with one chance, every other word of its set with another."""

    name = "randomised-response"
    summary = "keeps a word with a fixed chance, else any other word of its set"
    promise = "epsilon, between words of one output set only; the set is revealed"
    source = "Kairouz et al., NeurIPS 2014, K-ary randomised response, in Chen et al.'s sets"
    cost = "as custext"

    def rows(
        self,
        closeness: Floats,
        own: npt.NDArray[np.int64],
        hidden: npt.NDArray[np.bool_],  # noqa: ARG002 (all rows are alike)
    ) -> Floats:
        """Return epsilon for the word itself and 0 for the others."""
        logs = np.zeros_like(closeness)
        logs[np.arange(len(logs)), own] = self.epsilon
        return logs
