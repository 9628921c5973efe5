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

from dataclasses import dataclass
from types import MappingProxyType

from deniable.kernels.dense import DenseKernel
from deniable.kernels.exponential import ExponentialKernel, Measure, tight_scale
from deniable.mechanism import (
    CALIBRATE,
    CALIBRATIONS,
    EPSILON,
    Mechanism,
    check_choice,
    register,
)
from deniable.space import Space


@register
@dataclass(frozen=True)
class SanText(Mechanism):
    """The exponential mechanism over the whole vocabulary."""

    name = "santext"
    summary = "a near word is drawn more often: exponential mechanism over all words"
    promise = "epsilon x distance, between all pairs"
    source = "Yue et al., ACL Findings 2021, Algorithm 1"
    cost = "one row of V distances for each distinct word; never a V x V matrix"
    accepts = ("euclidean", "angular", "poincare")
    explains = MappingProxyType({"epsilon": EPSILON, "calibrate": CALIBRATE})

    calibrate: str = "paper"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("calibrate", self.calibrate, CALIBRATIONS)

    def bind(self, space: Space) -> DenseKernel:
        """Make the sampler."""
        self.check_space(space)
        measure = Measure(space)
        scale = 1.0 if self.calibrate == "paper" else tight_scale(measure, self.epsilon)
        return ExponentialKernel(self, measure, scale)
