"""Gaussian trade-offs: mu, the distance of two unit normals, and the (epsilon, delta) it means.

    delta(epsilon; mu) = Phi(-epsilon / mu + mu / 2) - exp(epsilon) Phi(-epsilon / mu - mu / 2)

(Balle and Wang 2018; Dong, Roth, Su 2022.) With a = epsilon / mu - mu / 2 and b = a + mu the second
term is phi(a) Phi(-b) / phi(b), so nothing overflows, and far in the tail nothing cancels. For a
small mu the two terms do: with m(x) = Phi(-x) / phi(x), whose slope is x m(x) - 1, delta is phi(a)
times the integral of 1 - x m(x) from a to b.
"""

from __future__ import annotations

from math import erfc, exp, inf, isfinite, log, pi, sqrt
from statistics import NormalDist

import numpy as np

from deniable.errors import ParameterError

# Beyond this the complementary error function has few digits left, and a fraction has many.
FAR = 4.0
TERMS = 80
BISECTIONS = 200
# Up to this mu delta is integrated, by Gauss and Legendre; these points are exact to rounding.
NEAR = 0.5
NODES, WEIGHTS = (each.tolist() for each in np.polynomial.legendre.leggauss(8))
# Below these floats lose digits; a series takes over, and a simpler bound.
TINY_EPSILON = 1e-3
TINY_DELTA = 1e-290
# What is rounded away is added again: delta is known to so many parts of itself.
ROUNDING = 1e-12


def mills(x: float) -> float:
    """Return Phi(-x) / phi(x) for x >= 0, by Laplace's continued fraction where x is large."""
    if x < FAR:
        return 0.5 * erfc(x / sqrt(2.0)) / _density(x)
    return 1.0 / (x + _fraction(x))


def _fraction(x: float) -> float:
    """Return 1 / mills(x) - x."""
    tail = x
    for k in range(TERMS, 1, -1):
        tail = x + k / tail
    return 1.0 / tail


def _fall(x: float) -> float:
    """Return how steeply mills falls, 1 - x mills(x)."""
    if x < FAR:
        return 1.0 - x * mills(x)
    rest = _fraction(x)
    return rest / (x + rest)


def _density(x: float) -> float:
    return exp(-x * x / 2.0) / sqrt(2.0 * pi)


def delta_of(epsilon: float, mu: float) -> float:
    """Return the delta at an epsilon.

    >>> round(delta_of(1.0, 1.0), 6)
    0.126937
    """
    if mu == 0:
        return 0.0
    a = epsilon / mu - mu / 2.0
    b = a + mu
    if mu <= NEAR:
        falls = (w * _fall(a + mu * (1.0 + x) / 2.0) for x, w in zip(NODES, WEIGHTS, strict=True))
        return _density(a) * mu / 2.0 * sum(falls)
    second = _density(a) * mills(b) if b >= 0 else exp(epsilon) * 0.5 * erfc(b / sqrt(2.0))
    first = _density(a) * mills(a) if a >= 0 else 0.5 * erfc(a / sqrt(2.0))
    return max(0.0, first - second)


def epsilon_of(delta: float, mu: float) -> float:
    """Return the least epsilon at a delta, from above.

    >>> round(epsilon_of(1e-5, 1.0), 4)
    4.3772
    """
    if mu == 0 or delta >= 1:
        return 0.0
    if not (isfinite(mu) and delta > 0):
        return inf
    surely = delta * (1.0 - ROUNDING)
    if delta_of(0.0, mu) <= surely:
        return 0.0
    low, high = 0.0, mu * (mu / 2.0 + sqrt(-2.0 * log(delta)))
    while delta > TINY_DELTA:
        middle = (low + high) / 2.0
        if not low < middle < high:
            break
        low, high = (middle, high) if delta_of(middle, mu) > surely else (low, middle)
    return high * (1.0 + 1e-15)


def mu_of(epsilon: float, delta: float) -> float:
    """Return the largest mu that is within (epsilon, delta), from below."""
    if not (0 <= epsilon < inf and 0 < delta < 1):
        raise ParameterError(f"no Gaussian noise gives epsilon {epsilon} at delta {delta}")
    low, high = 0.0, 1.0
    while epsilon_of(delta, high) <= epsilon:
        low, high = high, 2.0 * high
    for _ in range(BISECTIONS):
        middle = (low + high) / 2.0
        if not low < middle < high:
            break
        low, high = (low, middle) if epsilon_of(delta, middle) > epsilon else (middle, high)
    return low


def mu_of_pure(epsilon: float) -> float:
    """Return the mu whose trade-off lies below that of every epsilon-private release.

    Both are convex and meet at slope -1, where each error is 1 / (1 + exp(epsilon)).
    """
    if epsilon < TINY_EPSILON:
        mu = epsilon * sqrt(pi / 2.0) * (1.0 - epsilon * epsilon * (1.0 / 12.0 - pi / 48.0))
    else:
        error = 1.0 / (1.0 + exp(epsilon)) if epsilon < 700 else 0.0
        mu = -2.0 * NormalDist().inv_cdf(error) if error > 0 else inf
    return mu * (1.0 + ROUNDING)
