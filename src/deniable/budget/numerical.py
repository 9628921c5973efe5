"""Renyi accounting and privacy-loss distributions, through dp-accounting (an extra, pinned).

The library's own accountants of 0.6.0 forget how often a randomised response was done, call NaN
private, and lose rates and releases that are very small. Here counting is left to sums of curves
(see renyi.py) and to `self_compose`, and what isn't finite was refused before.

Losses are kept on a grid, each as two points of it so that no epsilon has less delta than before
("connect the dots", Doroshenko et al. 2022). Releases of one epsilon need no grid: how many of
their losses are negative is binomial (Kairouz, Oh, Viswanath 2017), which is exact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from math import ceil, exp, expm1, floor, inf, log, log1p, sqrt
from typing import Any

import numpy as np

from deniable.budget.release import Approximate, Composition, Gaussian
from deniable.budget.renyi import curve
from deniable.errors import MissingExtraError

# Sums are kept on a grid of about this many points, and what is computed point by point on fewer.
POINTS, ONCE = 250_000, 100_000
FINEST = 1e-5
TAIL = 1e-15
# What a sum without a grid leaves out.
LEFT_OUT = 1e-307
# A Fourier transform's power is rounded by less than this for each release; it is taken off delta.
NOISE = 1e-15
# So much of delta may be rounded away elsewhere.
ROUNDING = 1e-9
# exp of more than this is infinite; such a release is left to the closed forms.
LARGEST = 700.0
# More releases than this would take minutes to convolve.
MOST = 10_000_000
STAGE = 256
# More different epsilons than this are rounded up to so many; more kinds of sampling are left out.
KINDS, SAMPLED = 64, 8
# What is smaller is rounded up to these; all of it would be rounding.
LEAST_MU, LEAST_RATE, LEAST_EPSILON = 1e-6, 1e-12, 1e-100
# No epsilon that anyone asks for.
BEYOND = 1e12
# The library's orders, and some near 1, where large sums have their best one.
NEAR_ONE = tuple((1.0 + np.geomspace(0.0101, 0.095, 24)).tolist())


@cache
def library() -> Any:
    """Return dp-accounting, or print how to get it."""
    try:
        return import_module("dp_accounting")
    except ImportError:
        raise MissingExtraError("dp-accounting", "accounting") from None


def renyi(composition: Composition, delta: float) -> float:
    """Return the epsilon that Renyi differential privacy gives."""
    releases = [(one, count) for one, count in composition.items() if count]
    beside = [(one, count) for one, count in releases if isinstance(one, Approximate)]
    left = delta - sum(one.delta * count for one, count in beside)
    if left <= 0:
        return inf if releases else 0.0
    orders = np.array([*NEAR_ONE, *library().rdp.rdp_privacy_accountant.DEFAULT_RDP_ORDERS])
    total = np.zeros(len(orders))
    for release, count in releases:
        if not isinstance(release, Approximate):
            with np.errstate(over="ignore"):
                total += float(count) * curve(release, orders)
    found = library().rdp.compute_epsilon(orders, total, left)[0]
    return float(found) + sum(one.epsilon * count for one, count in beside)


def distribution_of(composition: Composition, delta: float) -> float:
    """Return the epsilon that the composed privacy-loss distribution gives."""
    releases = {one: count for one, count in composition.items() if count}
    if sum(releases.values()) > MOST or any(one.scale > LARGEST for one in releases):
        return inf
    parts = _parts(releases)
    if parts.alike:
        return _solve(_binomial(parts), delta)
    if parts.mu_squares > LARGEST**2 or len(parts.sampled) > SAMPLED:
        return inf
    powers = parts.responses.total() + parts.sampled.total()
    return _solve(_on_grid(parts).get_delta_for_epsilon, delta - NOISE * (powers + 10))


@dataclass(frozen=True)
class _Parts:
    """A composition, put together as far as that loses nothing."""

    responses: Counter[float]  # how many, by epsilon
    sampled: Counter[Gaussian]
    mu_squares: float  # of all noise without sampling
    lost: float  # the delta of releases of which not more is known

    @property
    def alike(self) -> bool:
        """Whether all of them have one epsilon."""
        return len(self.responses) < 2 and not self.sampled and not self.mu_squares


def _parts(releases: Composition) -> _Parts:
    responses, sampled = Counter[float](), Counter[Gaussian]()
    mu_squares = kept = 0.0
    for one, count in releases.items():
        if isinstance(one, Gaussian):
            mu, rate = max(one.mu, LEAST_MU), max(one.sample_rate, LEAST_RATE)
            if rate < 1:
                sampled[Gaussian(1.0, mu, rate)] += count
            else:
                mu_squares += count * mu * mu
        else:
            responses[max(one.scale, LEAST_EPSILON) if one.scale else 0.0] += count
        if isinstance(one, Approximate):
            kept += count * log1p(-one.delta)
    del responses[0.0]
    return _Parts(_fewer(responses), sampled, mu_squares, -expm1(kept))


def _fewer(responses: Counter[float]) -> Counter[float]:
    """Round epsilons up to a few of them."""
    found = Counter[float]()
    ordered = sorted(responses)
    size = max(1, ceil(len(ordered) / KINDS))
    for start in range(0, len(ordered), size):
        some = ordered[start : start + size]
        found[some[-1]] = sum(responses[epsilon] for epsilon in some)
    return found


def _solve(delta_at: Callable[[float], float], delta: float) -> float:
    """Return the least epsilon, from above, at which a falling function is at most delta."""
    left = delta * (1.0 - ROUNDING)
    low, high = 0.0, 1.0
    if delta_at(low) <= left:
        return low
    if delta_at(BEYOND) > left:
        return inf
    while delta_at(high) > left:
        low, high = high, 2.0 * high
    while high > low * (1.0 + ROUNDING):
        middle = (low + high) / 2.0
        low, high = (middle, high) if delta_at(middle) > left else (low, middle)
    return high


def _binomial(parts: _Parts) -> Callable[[float], float]:
    """Return delta by epsilon for responses that are alike."""
    [(epsilon, count)] = parts.responses.items() or [(0.0, 0)]
    # Hoeffding: fewer or more than these are negative with a chance of at most LEFT_OUT.
    middle, reach = count / (1.0 + exp(epsilon)), sqrt(count * log(2.0 / LEFT_OUT) / 2.0)
    first, last = max(0, floor(middle - reach)), min(count, ceil(middle + reach))
    negative = np.arange(first, last + 1.0)
    # How much likelier each number is than the one before.
    ratios = np.log((count + 1.0 - negative[1:]) / negative[1:]) - epsilon
    logs = np.concatenate([[0.0], np.cumsum(ratios)])
    chances = np.exp(logs - logs.max())
    chances *= (1.0 - parts.lost) / chances.sum()
    losses = (count - 2.0 * negative) * epsilon

    def delta_at(at: float) -> float:
        above = losses > at
        rest = float(chances[above] @ -np.expm1(at - losses[above]))
        return parts.lost + rest + (LEFT_OUT if last < count or first else 0.0)

    return delta_at


def _on_grid(parts: _Parts) -> Any:
    """Return the privacy-loss distribution of everything."""
    interval = _interval(parts)
    kind = library().pld.privacy_loss_distribution
    create = kind.PrivacyLossDistribution.create_from_rounded_probability
    found = create({0: 1.0 - parts.lost}, parts.lost, interval)
    for epsilon, count in parts.responses.items():
        found = found.compose(_power(_response(epsilon, interval), count))
    make = partial(kind.from_gaussian_mechanism, value_discretization_interval=interval)
    if parts.mu_squares:
        found = found.compose(make(1.0 / sqrt(parts.mu_squares)))
    for one, count in parts.sampled.items():
        once = make(1.0 / one.mu, sampling_prob=one.sample_rate)
        found = found.compose(_power(once, count))
    return found


def _power(once: Any, count: int) -> Any:
    """Compose a distribution with itself, in stages: the library cuts off the tails of a huge
    power of a few points only when there are more points.
    """
    rest, often = count % STAGE, count // STAGE
    if not often:
        return once.self_compose(count, TAIL)
    found = _power(once.self_compose(STAGE, TAIL / often), often)
    return found.compose(once.self_compose(rest, TAIL)) if rest else found


def _interval(parts: _Parts) -> float:
    """Return how finely losses are told apart, so that their sums fit on a grid."""
    squares = parts.mu_squares
    squares += sum(epsilon * epsilon * count for epsilon, count in parts.responses.items())
    squares += sum(count * one.scale**2 for one, count in parts.sampled.items())
    least = 2.0 * sqrt(2.0 * log(1.0 / TAIL) * squares) / POINTS
    if not parts.sampled and not parts.mu_squares:
        return least
    reaches = [one.mu * (10.0 + one.mu / 2.0) for one in parts.sampled]
    return max(least, max([*reaches, 20.0 * sqrt(parts.mu_squares)]) / ONCE, FINEST)


def _response(epsilon: float, interval: float) -> Any:
    """Return the distribution of one randomised response, on a grid."""
    steps = {floor(epsilon / interval), ceil(epsilon / interval)}
    points = sorted(steps | {-step for step in steps})
    deltas = [_response_delta(epsilon, point * interval) for point in points]
    kind = library().pld.privacy_loss_distribution.PrivacyLossDistribution
    dots = library().pld.pld_pmf.create_pmf_pessimistic_connect_dots
    return kind(dots(interval, points, [*deltas[:-1], 0.0]))


def _response_delta(epsilon: float, at: float) -> float:
    """Return the delta of one randomised response."""
    if abs(at) < epsilon:
        return -expm1(at - epsilon) / (1.0 + exp(-epsilon))
    return max(0.0, -expm1(at))
