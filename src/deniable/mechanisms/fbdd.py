"""FBDD: multivariate Laplace noise on the vector, then the nearest word (Feyisetan et al. 2020).

    z = G u        G ~ Gamma(d, 1 / eps), u uniform on the unit sphere: density ~ exp(-eps |z|)
    y = the word nearest to x + z

Promise: eps |x - x'|, Euclidean, for every pair. Proof: the densities of the two noisy points
differ by at most exp(eps |x - x'|) everywhere, by the triangle inequality, and taking the nearest
word is post-processing. The radius is about d / eps: in 300 dimensions a word's own vector drowns
unless eps is some tens, which is why these mechanisms are compared by what an attacker achieves.

Continuous noise has no table, so the promise is this theorem, and `certify` audits the sampler.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

from deniable.kernels.laplace import LaplaceKernel
from deniable.mechanism import EPSILON, Mechanism, register
from deniable.space import Space


@register
@dataclass(frozen=True)
class Fbdd(Mechanism):
    """Laplace noise, then the nearest word."""

    name = "fbdd"
    summary = "adds Laplace noise to the word's vector and takes the nearest word"
    promise = "epsilon x distance, between all pairs; by theorem, audited"
    source = "Feyisetan et al., WSDM 2020, Algorithm 1"
    cost = "a product of one noisy vector with all V words, for each occurrence"
    accepts = ("euclidean",)
    explains = MappingProxyType({"epsilon": EPSILON})

    def bind(self, space: Space) -> LaplaceKernel:
        """Make the sampler."""
        self.check_space(space)
        return LaplaceKernel(self, space)
