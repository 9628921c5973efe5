"""Hyperbolic: noise in the Poincare ball, then the nearest word (Feyisetan et al. 2019).

Words are points of the Poincare ball, where general words lie near the centre and special ones
near its edge. A noisy point z is drawn around the word x, and the word nearest to z in hyperbolic
distance d is written. The direction is uniform; the law of the distance rho = d(x, z) is

    published   e^(-eps rho) in the ball's own (Euclidean) volume around the centre, moved to x:
                in the radius r = tanh(rho / 2), ((1 - r) / (1 + r))^eps r^(n - 1) dr
    volume      e^(-eps rho) in hyperbolic volume: e^(-eps rho) sinh(rho)^(n - 1) d rho; eps > n - 1

Promise: `volume` gives eps d(x, x') for every pair. Proof: hyperbolic volume is the same seen
from every point, so densities differ by exp(eps (d(x, z) - d(x', z))) at most, which the triangle
inequality bounds; the nearest word is post-processing.

`published` gives (eps + n) d(x, x'), not eps d: moving the noise from the centre to x keeps
distances but not Euclidean volume, and in hyperbolic volume its density is e^(-eps rho) times
cosh(rho / 2)^(-2n), whose logarithm falls by up to eps + n for each unit of distance. That is what
the guarantee states. In one dimension and on the paper's own scale the difference is 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from deniable.errors import ParameterError
from deniable.guarantee import AUDITED, METRIC, Guarantee, Relation
from deniable.hyperbolic import lifted, moved, published, volumetric
from deniable.kernels.laplace import REAL_NUMBERS
from deniable.kernels.noisy import Noisy, NoisyKernel
from deniable.mechanism import Ids, Mechanism, check_choice, register
from deniable.nearest import NearestWords
from deniable.noise import directions
from deniable.sampling import Floats
from deniable.space import Space

DENSITIES = ("published", "volume")


@register
@dataclass(frozen=True)
class Hyperbolic(Mechanism):
    """Noise in the Poincare ball, then the nearest word."""

    name = "hyperbolic"
    summary = "moves a word in the Poincare ball, often to one that is more general"
    promise = (
        "(epsilon + dimensions) x distance as published, epsilon x distance with density=volume, "
        "between all pairs; by theorem, audited"
    )
    source = "Feyisetan, Diethe, Drake, ICDM 2019; promise of this project"
    cost = "as fbdd"
    accepts = ("poincare",)
    explains = MappingProxyType(
        {
            "epsilon": "how fast the density falls with hyperbolic distance; above 0, and with "
            "density=volume above the number of dimensions less 1",
            "density": "published (the paper's noise) or volume (the noise that keeps the "
            "paper's promise)",
        }
    )

    density: str = "published"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("density", self.density, DENSITIES)

    def bind(self, space: Space) -> HyperbolicKernel:
        """Make the sampler."""
        self.check_space(space)
        dimensions = space.vectors.shape[1]
        if self.density == "volume" and self.epsilon <= dimensions - 1:
            raise ParameterError(
                f"density=volume needs an epsilon above {dimensions - 1} in {dimensions} "
                f"dimensions, got {self.epsilon:g}: the volume grows faster than the density falls"
            )
        return HyperbolicKernel(self, space)


class HyperbolicKernel(NoisyKernel):
    """Noise of a radial law around a word."""

    def __init__(self, mechanism: Hyperbolic, space: Space) -> None:
        self.mechanism, self.space = mechanism, space
        self.outputs = np.arange(len(space), dtype=np.int64)
        dimensions, epsilon = space.vectors.shape[1], float(mechanism.epsilon)
        as_published = mechanism.density == "published"
        self.law = (published if as_published else volumetric)(epsilon, dimensions)
        self._first, self._rest = lifted(space.vectors.astype(np.float64))
        largest = self._first.max()
        self._words = NearestWords(self._rest / largest, self._first / largest)
        self.guarantee = Guarantee(
            unit="token",
            relation=Relation(METRIC, metric=space.metric, diameter=space.diameter),
            epsilon=epsilon + dimensions if as_published else epsilon,
            assumptions=(REAL_NUMBERS,),
            paper="epsilon x distance" if as_published else "",
            basis=AUDITED,
        )

    def noisy_points(self, words: Ids) -> Noisy:
        """Return noisy points, divided by their first coordinate."""
        toward = directions(len(words), self.space.vectors.shape[1])
        distances = self.law.draw(len(words))
        points = moved(self._first[words], self._rest[words], toward, distances)
        return points, np.ones(len(words)), np.empty(0)

    def settle(self, points: Noisy) -> Ids:
        """Return the nearest word of each point."""
        return self._words.first(points[0], points[1])

    def promised(self, a: Ids, b: Ids) -> Floats:
        """The guarantee's epsilon times the distance."""
        found: Floats = self.space.distances(a, b) * self.guarantee.epsilon
        return found
