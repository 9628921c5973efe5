"""Renyi divergences of one release, by order: each kind's curve, without cancellation.

A randomised response at epsilon, the worst of all epsilon-private releases, has

    (a - 1) D(a) = ln cosh((a - 1/2) epsilon) - ln cosh(epsilon / 2)
                 = ln(1 + 2 sinh(a epsilon / 2) sinh((a - 1) epsilon / 2) / cosh(epsilon / 2))

Gaussian noise has D(a) = a mu^2 / 2. Sampled with a rate q, for x from a standard normal and
u = q (exp(mu x - mu^2 / 2) - 1), whose mean is 0 (Mironov, Talwar, Zhang 2019),

    exp((a - 1) D(a)) = E (1 + u)^a = 1 + E [(1 + u)^a - 1 - a u]

in which nothing is negative: for a whole a it is a binomial sum, otherwise a sum over a grid of x.
With rates and releases so small that a float can't tell 1 from what is computed, sums of the
first kind are all noise, and so is what many releases cost together.
"""

from __future__ import annotations

from functools import singledispatch
from math import log, log1p, pi

import numpy as np
import numpy.typing as npt

from deniable.budget.release import Gaussian, Pure, Release

Floats = npt.NDArray[np.float64]
# Beyond this mu the grid would be long; sampling is then left to the whole orders.
LARGEST_MU = 25.0
# Outside of these nothing is gained by sampling that anyone could use.
LEAST_MU, HOPELESS_MU = 1e-100, 1e6
# The grid reaches so far beyond where the sum has its mass.
REACH = 40.0
# Below this u a series is more exact than the difference.
SMALL = 1e-2
SERIES = 12
# What the grid may lose, of (a - 1) D(a).
LOST = 1e-10


@singledispatch
def curve(release: Release, orders: Floats) -> Floats:  # noqa: ARG001 (the kinds below use it)
    """Return the Renyi divergence that a release keeps below, for each order above 1."""
    raise TypeError(f"no Renyi curve for {type(release).__name__}")


@curve.register
def _(release: Pure, orders: Floats) -> Floats:
    spread = release.spread * release.spread / 8.0 * orders
    return np.minimum(np.minimum(release.epsilon, spread), _response(release.epsilon, orders))


@curve.register
def _(release: Gaussian, orders: Floats) -> Floats:
    with np.errstate(over="ignore"):
        plain: Floats = np.asarray(release.mu * release.mu / 2.0 * orders, dtype=np.float64)
    if release.sample_rate == 1.0 or not LEAST_MU < release.mu < HOPELESS_MU:
        return plain
    whole = orders == np.floor(orders)
    found = plain.copy()
    found[whole] = [_binomial(release, int(order)) / (order - 1.0) for order in orders[whole]]
    if release.mu <= LARGEST_MU:
        found[~whole] = _integral(release, orders[~whole]) / (orders[~whole] - 1.0)
    # Sampling never hurts.
    return np.minimum(found, plain)


def _response(epsilon: float, orders: Floats) -> Floats:
    """Return the divergence of a randomised response."""
    with np.errstate(divide="ignore", over="ignore"):
        a, b = orders * epsilon, (orders - 1.0) * epsilon
        # Of sinh x = exp(x) (1 - exp(-2 x)) / 2 the exponents are added up by themselves.
        share = np.expm1(-a) * np.expm1(-b) / (1.0 + np.exp(-epsilon))
        found: Floats = np.logaddexp(0.0, b + np.log(share)) / (orders - 1.0)
    return found


def _binomial(release: Gaussian, order: int) -> float:
    """Return (a - 1) D(a) for a whole order."""
    j = np.arange(1.0, order + 1.0)
    rate, exponents = release.sample_rate, j * (j - 1.0) / 2.0 * release.mu * release.mu
    choose = np.cumsum(np.log((order - j + 1.0) / j))
    logs = choose + j * log(rate) + (order - j) * log1p(-rate) + exponents
    # No draw, or one, is in the mean.
    return _log_one_plus(logs[1:] + np.log(-np.expm1(-exponents[1:])))


def _integral(release: Gaussian, orders: Floats) -> Floats:
    """Return (a - 1) D(a) for any order above 1."""
    mu, rate = release.mu, release.sample_rate
    step = min(0.2, 0.5 / mu)
    x = np.arange(-REACH, orders.max(initial=1.0) * mu + REACH, step)
    gain = mu * x - mu * mu / 2.0
    u = rate * np.expm1(np.minimum(gain, 700.0))
    logs = np.logaddexp(log1p(-rate), log(rate) + gain)
    weights = -x * x / 2.0 + log(step / (2.0 * pi) ** 0.5)
    found = [_log_one_plus(weights + _log_excess(order, u, logs)) for order in orders]
    return np.array(found) * (1.0 + LOST)


def _log_excess(order: float, u: Floats, logs: Floats) -> Floats:
    """Return ln((1 + u)^a - 1 - a u), with logs = ln(1 + u)."""
    most = np.maximum(order * logs, 0.0)
    excess = np.exp(order * logs - most) + (order - 1.0) * np.exp(-most)
    excess -= order * np.exp(logs - most)
    near = np.abs(u) < SMALL
    term = order * (order - 1.0) / 2.0 * u[near] ** 2
    total = term.copy()
    for k in range(3, SERIES):
        term = term * (order - k + 1.0) / k * u[near]
        total += term
    excess[near] = total
    most[near] = 0.0
    with np.errstate(divide="ignore"):
        return np.asarray(most + np.log(np.maximum(excess, 0.0)), dtype=np.float64)


def _log_one_plus(logs: Floats) -> float:
    """Return ln(1 + sum of exp(logs))."""
    most = float(logs.max())
    if most == -np.inf:
        return 0.0
    return float(np.logaddexp(0.0, most + log(float(np.exp(logs - most).sum()))))
