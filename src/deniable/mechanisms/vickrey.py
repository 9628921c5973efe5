"""Vickrey: a noisy vector, then its nearest or its second nearest word (Xu et al. 2021).

    z = S_lam^(1/2) G u                          as in `mahalanobis`; lam = 0 as in `fbdd`
    y1, y2 = the two words nearest to x + z      d1 <= d2 their distances from x + z
    y = y2 with chance t d1 / (t d1 + (1 - t) d2), y1 otherwise

t = 0 always takes the nearest, t = 1 always the second; 1/2 favours the nearer by the distances.

Promise: as `mahalanobis`, eps |x - x'|_M for every pair. Proof: y1, y2, d1, d2 are functions of
the noisy point, so the choice is post-processing. That holds only because the word itself is
never looked at again: a variant that drops x from the candidates tells which word it was not,
and promises nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

from deniable.kernels.laplace import LaplaceKernel
from deniable.mechanism import EPSILON, Mechanism, check_share, register
from deniable.mechanisms.mahalanobis import LAM, check_lam, shaped_kernel
from deniable.space import Space


@register
@dataclass(frozen=True)
class Vickrey(Mechanism):
    """Laplace noise, then one of the two nearest words."""

    name = "vickrey"
    summary = "fbdd or mahalanobis that sometimes takes the second nearest word"
    promise = "as mahalanobis with the same lam; by theorem, audited"
    source = "Xu et al., 2021, On a Utilitarian Approach to Privacy Preserving Text Generation"
    cost = "as fbdd"
    accepts = ("euclidean",)
    explains = MappingProxyType(
        {
            "epsilon": EPSILON,
            "lam": LAM,
            "t": "how much the second nearest is favoured: 0 never takes it, 1 always",
        }
    )

    lam: float = 0.0
    t: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_lam(self.lam)
        check_share("t", self.t)

    def bind(self, space: Space) -> LaplaceKernel:
        """Make the sampler."""
        self.check_space(space)
        return shaped_kernel(self, space, self.lam, self.t)
