"""TEM: the truncated exponential mechanism (Carvalho et al. 2021, Algorithm 1).

Words within gamma of x compete one by one; all others are one candidate, from which a word is
drawn uniformly if it wins. Scores, with Gumbel noise of scale 2 / eps:

    y in L_x = {y : d(x, y) <= gamma}      -d(x, y)
    the rest, W - L_x                      -gamma + (2 / eps) ln |W - L_x|

The rest's second term gives each of its words the weight exp(-eps gamma / 2), so that

    P(y | x) = exp(-s eps min(d(x, y), gamma) / 2) / Z_x         s = 1 ("paper"), or "tight"
    gamma    = (2 / eps) ln((1 - beta) (|W| - 1) / beta)

with which an output is within gamma of x with a chance of at least 1 - beta.

Promise: eps min(d(x, x'), gamma) for every pair: min(d, gamma) is a metric, and the mechanism is
the exponential one with it as its score (the proof is santext's). The paper states eps d(x, x').
With ln(|W| / |L_x|) in place of ln |W - L_x| there is no such promise: the number of words near x
then decides how much a far word weighs (tests/test_counterexamples.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import MappingProxyType

from deniable.errors import ParameterError
from deniable.kernels.dense import DenseKernel
from deniable.kernels.exponential import ExponentialKernel, Measure, tight_scale
from deniable.mechanism import (
    CALIBRATE,
    CALIBRATIONS,
    EPSILON,
    Mechanism,
    check_choice,
    check_positive,
    register,
)
from deniable.space import Space


@register
@dataclass(frozen=True)
class Tem(Mechanism):
    """The truncated exponential mechanism."""

    name = "tem"
    summary = "santext with a threshold: all words beyond it are equally likely"
    promise = "epsilon x the distance, or the threshold where that is less, between all pairs"
    source = "Carvalho et al., 2021, TEM: High Utility Metric Differential Privacy on Text, Alg. 1"
    cost = "one row of V distances for each distinct word, as santext"
    accepts = ("euclidean", "angular", "poincare")
    explains = MappingProxyType(
        {
            "epsilon": EPSILON,
            "beta": "the chance, at most, that an output is farther than the threshold; between "
            "0 and 1",
            "calibrate": CALIBRATE,
        }
    )

    beta: float = 0.001
    calibrate: str = "paper"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("beta", self.beta)
        if self.beta >= 1:
            raise ParameterError(f"beta is a chance below 1, got {self.beta}")
        check_choice("calibrate", self.calibrate, CALIBRATIONS)

    def bind(self, space: Space) -> DenseKernel:
        """Make the sampler."""
        self.check_space(space)
        measure = Measure(space, self.threshold(len(space)))
        scale = 1.0 if self.calibrate == "paper" else tight_scale(measure, self.epsilon)
        return ExponentialKernel(self, measure, scale)

    def threshold(self, words: int) -> float:
        """Return gamma for a space of that many words."""
        odds = (1.0 - self.beta) * (words - 1) / self.beta
        # A space so small that any output will do still needs distances that aren't all 0.
        return 2.0 / self.epsilon * math.log(max(odds, math.e))
