"""Hyperbolic space: points on the hyperboloid, noise by its distance from a point.

A point p of the Poincare ball is (1 + |p|^2, 2 p) / (1 - |p|^2) on the hyperboloid, where the
distance of y and z is arcosh(y0 z0 - y.z): the nearest word y of z has the least y0 z0 - y.z, and
the rest is one matrix product. Points may lie so far out that cosh overflows, so a noisy point is
kept divided by its first coordinate: z / z0 lies in the unit ball (on its edge when it is far).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from deniable.noise import uniforms
from deniable.sampling import Floats

STEPS = 20_001
# Where a log-concave density has fallen this far, what is beyond doesn't count.
NEGLIGIBLE = 40.0
# Keeps the envelope above the density although its height is computed by quadrature.
SAFETY = 0.99
LARGEST_EXPONENT = 700.0


def lifted(points: Floats) -> tuple[Floats, Floats]:
    """Return the first coordinate and the others of points of the ball, on the hyperboloid."""
    squares = np.einsum("ij,ij->i", points, points)
    return (1.0 + squares) / (1.0 - squares), 2.0 * points / (1.0 - squares)[:, None]


def moved(first: Floats, rest: Floats, directions: Floats, distances: Floats) -> Floats:
    """Return where one gets from each point in a direction (given at the origin), over z0.

    The direction is carried from the origin to the point along the line between them, which turns
    it evenly: a uniform direction stays uniform.
    """
    along = np.einsum("ij,ij->i", rest, directions)
    aside = rest - along[:, None] * directions
    squares = np.einsum("ij,ij->i", aside, aside)
    # Noise that points back through the centre would cancel: first + along is small there, and
    # its product with first - along is 1 + |aside|^2.
    both = np.where(along < 0, (1.0 + squares) / (first - along), first + along)
    missing = 2.0 / (np.exp(np.minimum(2.0 * distances, LARGEST_EXPONENT)) + 1.0)  # 1 - tanh
    height = both - missing * along
    forward = both - squares / (1.0 + first) - missing * (1.0 + along**2 / (1.0 + first))
    sideways = (1.0 + height) / (1.0 + first)
    found: Floats = forward[:, None] * directions + sideways[:, None] * aside
    found /= height[:, None]
    return found


@dataclass(frozen=True)
class RadialLaw:
    """A density on [0, inf) whose logarithm is concave; drawn from by exact rejection.

    With its mode m and its height M there (of the normalised density), such a density is nowhere
    above M min(1, exp(1 - M |x - m|)) (Devroye 1986, VII.2), so every fourth draw is taken or so.
    """

    log_density: Callable[[Floats], Floats]
    slope: Callable[[float], float]

    def draw(self, count: int) -> Floats:
        """Return that many draws."""
        mode, height = self._mode, SAFETY / self._mass
        top = float(self._at(np.array([mode]))[0])
        found, missing = np.empty(count), np.arange(count)
        while len(missing):
            inside, beyond, sign, taken = (uniforms(len(missing)) for _ in range(4))
            # Half of the envelope is flat, half falls exponentially.
            far = 1.0 - np.log(inside)
            away = np.where(beyond <= 0.5, inside, far) / height
            bound = np.where(beyond <= 0.5, 0.0, 1.0 - away * height)
            point = mode + np.where(sign <= 0.5, away, -away)
            possible = point >= 0.0
            level = np.full(len(missing), -np.inf)
            level[possible] = self._at(point[possible]) - top
            accepted = np.log(taken) + bound <= level
            found[missing[accepted]] = point[accepted]
            missing = missing[~accepted]
        return found

    @cached_property
    def _mode(self) -> float:
        """Where the density is largest, by bisection of its logarithm's slope."""
        low, high = -700.0, 25.0  # exponents: the mode is at 0, or in between
        if self.slope(np.exp(low)) <= 0.0:
            return 0.0
        for _ in range(200):
            middle = (low + high) / 2.0
            low, high = (middle, high) if self.slope(np.exp(middle)) > 0 else (low, middle)
        return float(np.exp(low))

    def _at(self, points: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return self.log_density(points)

    @cached_property
    def _mass(self) -> float:
        """The integral of the density over its largest value."""
        mode = self._mode
        top = float(self._at(np.array([mode]))[0])

        def width(sign: float, most: float) -> float:
            wide = 1e-300
            while wide < most and self._at(np.array([mode + sign * wide]))[0] > top - NEGLIGIBLE:
                wide *= 2.0
            return min(wide, most)

        parts = [(mode, mode + width(1.0, 1e300)), (mode - width(-1.0, mode), mode)]
        total = 0.0
        for start, end in parts:
            grid = np.linspace(start, end, STEPS)
            values = np.exp(self._at(grid) - top)
            total += float((values[1:] + values[:-1]).sum()) / 2.0 * (end - start) / (STEPS - 1)
        return total


def published(epsilon: float, dimensions: int) -> RadialLaw:
    """Return the law of the distance for density exp(-eps d) in the ball's own volume.

    In the ball's radius r = tanh(d / 2) that is ((1 - r) / (1 + r))^eps r^(n - 1) dr.
    """
    n = float(dimensions)

    def log_density(d: Floats) -> Floats:
        # ln sinh(h) and ln cosh(h) without overflow, up to the same constant.
        h = d / 2.0
        fall = np.exp(-2.0 * h)
        rise = (n - 1.0) * np.log(-np.expm1(-2.0 * h)) if n > 1 else np.zeros_like(d)
        found: Floats = -epsilon * d - 2.0 * h + rise - (n + 1.0) * np.log1p(fall)
        return found

    def slope(d: float) -> float:
        rise = (n - 1.0) / 2.0 / np.tanh(d / 2.0) if n > 1 else 0.0
        return float(-epsilon + rise - (n + 1.0) / 2.0 * np.tanh(d / 2.0))

    return RadialLaw(log_density, slope)


def volumetric(epsilon: float, dimensions: int) -> RadialLaw:
    """Return the law of the distance for density exp(-eps d) in hyperbolic volume.

    The volume between d and d + dd grows as sinh(d)^(n - 1), so epsilon must be above n - 1.
    """
    n = float(dimensions)

    def log_density(d: Floats) -> Floats:
        rise = (n - 1.0) * np.log(-np.expm1(-2.0 * d)) if n > 1 else np.zeros_like(d)
        found: Floats = (n - 1.0 - epsilon) * d + rise
        return found

    def slope(d: float) -> float:
        return float(-epsilon + ((n - 1.0) / np.tanh(d) if n > 1 else 0.0))

    return RadialLaw(log_density, slope)
