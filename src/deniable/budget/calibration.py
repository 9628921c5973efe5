"""How much Gaussian noise a method needs for an epsilon: the inverse of accounting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from math import inf, isfinite, log, sqrt

from deniable.budget.methods import Method
from deniable.budget.release import Gaussian
from deniable.errors import ParameterError

# Noise is found to this share of itself, from above.
TOLERANCE = 1e-3
LEAST, MOST = 1e-9, 1e9


def noise_needed(method: Method, once: Gaussian, steps: int, epsilon: float, delta: float) -> float:
    """Return the least sigma with which `steps` such releases stay within epsilon, by a method.

    Infinite where the method never gets there; almost none where it is there without.
    """
    if not (isfinite(epsilon) and epsilon > 0):
        raise ParameterError(f"a target epsilon must be a finite number above 0, got {epsilon}")
    if steps < 1:
        raise ParameterError(f"noise is for at least one step, got {steps}")

    @cache
    def excess(sigma: float) -> float:
        found = method.compute({replace(once, sigma=sigma): steps}, delta)
        return log(max(found, 1e-300)) - log(epsilon) if isfinite(found) else inf

    low = high = once.sigma
    while excess(high) > 0:
        low, high = high, 2.0 * high
        if high > MOST:
            return inf
    while low == high or excess(low) <= 0:
        low, high = low / 2.0, low
        if high < LEAST:
            return high
    return _between(excess, low, high)


def _between(excess: Callable[[float], float], low: float, high: float) -> float:
    """Return the end of a small interval at which a falling function is not above 0."""
    above, below = excess(low), excess(high)
    while high > low * (1.0 + TOLERANCE):
        middle = sqrt(low * high)
        if isfinite(above):
            # In logarithms the function is nearly a line; a little towards the safe side.
            share = above / (above - below)
            middle = low * (high / low) ** min(max(share + 0.25 * TOLERANCE, 0.02), 0.98)
        found = excess(middle)
        if found > 0:
            low, above = middle, found
        else:
            high, below = middle, found
            # Mostly only one end moves; a look just below it ends the search.
            probe = high / (1.0 + TOLERANCE)
            if probe > low and (at := excess(probe)) > 0:
                low, above = probe, at
    return high
