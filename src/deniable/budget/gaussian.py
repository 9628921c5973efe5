"""Gaussian trade-offs: mu, the distance of two unit normals, and the (epsilon, delta) it means.

    delta(epsilon; mu) = Phi(-epsilon / mu + mu / 2) - exp(epsilon) Phi(-epsilon / mu - mu / 2)

(Balle and Wang 2018; Dong, Roth, Su 2022.) With a = epsilon / mu - mu / 2 and b = a + mu the second
term is phi(a) Phi(-b) / phi(b), so nothing overflows, and far in the tail nothing cancels.
"""

from __future__ import annotations

from math import erfc, exp, inf, isfinite, log, pi, sqrt
from statistics import NormalDist

from deniable.errors import ParameterError

# Beyond this the complementary error function has few digits left, and a fraction has many.
FAR = 4.0
TERMS = 80
BISECTIONS = 200


def mills(x: float) -> float:
    """Return Phi(-x) / phi(x) for x >= 0, by Laplace's continued fraction where x is large."""
    if x < FAR:
        return 0.5 * erfc(x / sqrt(2.0)) / _density(x)
    tail = x
    for k in range(TERMS, 0, -1):
        tail = x + k / tail
    return 1.0 / tail


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
    if not isfinite(mu) or delta <= 0:
        return inf
    if delta_of(0.0, mu) <= delta:
        return 0.0
    low, high = 0.0, mu * mu / 2.0 + mu * sqrt(2.0 * log(1.0 / delta)) + 1e-9
    for _ in range(BISECTIONS):
        middle = (low + high) / 2.0
        if not low < middle < high:
            break
        low, high = (middle, high) if delta_of(middle, mu) > delta else (low, middle)
    return high


def mu_of(epsilon: float, delta: float) -> float:
    """Return the largest mu that is within (epsilon, delta), from below."""
    if epsilon < 0 or not 0 < delta < 1:
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
    error = 1.0 / (1.0 + exp(epsilon)) if epsilon < 700 else 0.0
    return -2.0 * NormalDist().inv_cdf(error) if error > 0 else inf
