"""Multivariate Laplace noise on a word's vector, then the nearest word, or one of the two nearest.

With the words scaled to at most 1 from their centre, and epsilon with them, a noisy point is

    x + (G / epsilon) A u        G ~ Gamma(d, 1), u uniform on the unit sphere

whose density is exp(-epsilon |A^-1 (z - x)|) up to a factor, so that two words' densities differ
by at most exp(epsilon |A^-1 (x - x')|) everywhere (the triangle inequality). Which word is near a
point is post-processing. The point is kept multiplied by min(1, epsilon / G): noise of any size.
"""

from __future__ import annotations

import numpy as np

from deniable.geometry import Geometry
from deniable.guarantee import AUDITED, METRIC, Guarantee, Relation
from deniable.kernels.noisy import Noisy, NoisyKernel
from deniable.mechanism import Ids, Mechanism
from deniable.nearest import NearestWords
from deniable.noise import directions, gammas, uniforms
from deniable.sampling import Floats
from deniable.space import Space

REAL_NUMBERS = "noise is a real number: what float64 rounds away is not covered"


class LaplaceKernel(NoisyKernel):
    """Noise of the shape A in its metric `measured`; t > 0 lets the second nearest word win."""

    def __init__(
        self,
        mechanism: Mechanism,
        space: Space,
        shape: Floats | None = None,
        measured: Geometry | None = None,
        relation: Relation | None = None,
        t: float = 0.0,
    ) -> None:
        self.mechanism, self.space = mechanism, space
        self.outputs = np.arange(len(space), dtype=np.int64)
        self._shape, self._t = shape, t
        self._measured = space.geometry if measured is None else measured
        reach = float(np.sqrt(space.geometry.squares.max())) or 1.0
        self._words = NearestWords(space.geometry.points / reach)
        self._epsilon = float(mechanism.epsilon) * reach
        euclidean = Relation(METRIC, metric=space.metric, diameter=space.diameter)
        self.guarantee = Guarantee(
            unit="token",
            relation=euclidean if relation is None else relation,
            epsilon=float(mechanism.epsilon),
            assumptions=(REAL_NUMBERS,),
            basis=AUDITED,
        )

    def noisy_points(self, words: Ids) -> Noisy:
        """Return noisy points, what each and its words are multiplied by, and chances."""
        radius = gammas(len(words), self._words.points.shape[1])
        with np.errstate(over="ignore"):
            scales = np.minimum(1.0, self._epsilon / radius)
            lengths = np.minimum(1.0, radius / max(self._epsilon, np.finfo(np.float64).tiny))
        noise = directions(len(words), self._words.points.shape[1])
        if self._shape is not None:
            noise = noise @ self._shape
        noise *= lengths[:, None]
        noise += scales[:, None] * self._words.points[words]
        return noise, scales, uniforms(len(words) if self._t else 0)

    def settle(self, points: Noisy) -> Ids:
        """Return the nearest word of each point, or where t is above 0 one of the two nearest."""
        noise, scales, chances = points
        if self._t == 0.0:
            return self._words.first(noise, scales)
        nearest, distances = self._words.first_two(noise, scales)
        first, second = self._t * distances[:, 0], (1.0 - self._t) * distances[:, 1]
        # The second wins with chance t d1 / (t d1 + (1 - t) d2); two distances of 0 are one word.
        takes_second = chances * (first + second) <= first
        return np.where(takes_second & (first > 0), nearest[:, 1], nearest[:, 0])

    def promised(self, a: Ids, b: Ids) -> Floats:
        """Epsilon times the distance in the metric of the noise."""
        return self._measured.distances(a, b) * self.guarantee.epsilon
