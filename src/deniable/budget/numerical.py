"""Renyi accounting and privacy-loss distributions, through dp-accounting (an extra, pinned).

Each kind of release says here which curve and which distribution stand for it. The library's own
accountants of 0.6.0 forget how often a randomised response was done and call NaN private; here
counting is left to sums of curves and to `self_compose`, and what isn't finite was refused before.
"""

from __future__ import annotations

from functools import cache, singledispatch
from importlib import import_module
from math import ceil, exp, inf, log, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from deniable.budget.release import Approximate, Composition, Gaussian, Pure, Release
from deniable.errors import MissingExtraError

Floats = npt.NDArray[np.float64]
# A distribution is kept on a grid of at most about this many points.
POINTS = 250_000
FINEST = 1e-4
# An epsilon is cut into at most so many steps of the grid, to find one that fits all of them.
STEPS = 3_000
FITS = 1.0 + 1e-7
TAIL = 1e-15
# exp of more than this is infinite; such a release is left to the closed forms.
LARGEST = 700.0
# More releases than this would take minutes to convolve.
MOST = 10_000_000
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
    beside, rest = _split(composition)
    left = delta - sum(one.delta * count for one, count in beside)
    if left <= 0:
        return inf
    orders = np.array([*NEAR_ONE, *library().rdp.rdp_privacy_accountant.DEFAULT_RDP_ORDERS])
    total = np.zeros(len(orders))
    for release, count in rest:
        total += count * curve(release, orders)
    convert = library().rdp.compute_epsilon
    return float(convert(orders, total, left)[0]) + sum(one.epsilon * n for one, n in beside)


def distribution_of(composition: Composition, delta: float) -> float:
    """Return the epsilon that the composed privacy-loss distribution gives."""
    releases = [(one, count) for one, count in composition.items() if count]
    if any(one.scale > LARGEST for one, _ in releases) or sum(n for _, n in releases) > MOST:
        return inf
    interval, total = grid(releases), library().pld.privacy_loss_distribution.identity
    found = total(value_discretization_interval=interval)
    for release, count in releases:
        found = found.compose(distribution(release, count, interval))
    return float(found.get_epsilon_for_delta(delta))


def grid(releases: list[tuple[Release, int]]) -> float:
    """Return how finely losses are told apart, so that their sums fit on a grid.

    Losses are rounded up to it: a coarse grid costs epsilon, never privacy. Of the grids that are
    coarse enough the one is taken that rounds least; one that divides every epsilon costs nothing.
    """
    squares = sum(count * one.scale**2 for one, count in releases)
    least = max(FINEST, 2.0 * sqrt(2.0 * log(1.0 / TAIL) * squares) / POINTS)
    if any(isinstance(one, Gaussian) for one, _ in releases):
        return least
    epsilons = np.array([one.scale for one, _ in releases])
    counts = np.array([count for _, count in releases], dtype=np.float64)
    tried = np.concatenate([one / np.arange(1.0, STEPS + 1.0) * FITS for one in epsilons[:20]])
    tried = np.append(tried[tried >= least], least)
    rounded = np.zeros(len(tried))
    for epsilon, count in zip(epsilons, counts, strict=True):
        rounded += count * (np.ceil(epsilon / tried) * tried - epsilon)
    return float(tried[np.argmin(rounded)])


@singledispatch
def curve(release: Release, orders: Floats) -> Floats:  # noqa: ARG001 (the kinds below use it)
    """Return the Renyi divergence that a release keeps below, for each order."""
    raise TypeError(f"no Renyi curve for {type(release).__name__}")


@curve.register
def _(release: Pure, orders: Floats) -> Floats:
    known = np.minimum(release.epsilon, release.spread**2 / 8.0 * orders)
    if release.epsilon > LARGEST:
        return known
    lies = library().dp_event.RandomizedResponseDpEvent(2.0 / (1.0 + exp(release.epsilon)), 2)
    return np.minimum(known, _curve_of(lies, orders, "REPLACE_ONE"))


@curve.register
def _(release: Gaussian, orders: Floats) -> Floats:
    events = library().dp_event
    once = events.GaussianDpEvent(1.0 / release.mu)
    if release.sample_rate == 1.0:
        return _curve_of(once, orders, "ADD_OR_REMOVE_ONE")
    sampled = events.PoissonSampledDpEvent(release.sample_rate, once)
    return _curve_of(sampled, orders, "ADD_OR_REMOVE_ONE")


@singledispatch
def distribution(release: Release, count: int, interval: float) -> Any:
    """Return the privacy-loss distribution of that many such releases."""
    raise TypeError(
        f"no privacy-loss distribution for {type(release).__name__}, {count}, {interval}"
    )


@distribution.register
def _(release: Pure, count: int, interval: float) -> Any:
    return _from_parameters(release.epsilon, 0.0, count, interval)


@distribution.register
def _(release: Approximate, count: int, interval: float) -> Any:
    return _from_parameters(release.epsilon, release.delta, count, interval)


@distribution.register
def _(release: Gaussian, count: int, interval: float) -> Any:
    make = library().pld.privacy_loss_distribution.from_gaussian_mechanism
    if release.sample_rate == 1.0:
        return make(1.0 / (release.mu * sqrt(count)), value_discretization_interval=interval)
    rate = release.sample_rate
    once = make(1.0 / release.mu, value_discretization_interval=interval, sampling_prob=rate)
    return once.self_compose(count, TAIL)


def _from_parameters(epsilon: float, delta: float, count: int, interval: float) -> Any:
    """Return what the library's from_privacy_parameters does for the epsilon that is rounded up to
    the grid: there -epsilon is on the grid too, and isn't rounded up by itself."""
    steps = ceil(epsilon / interval)
    up = (1.0 - delta) / (1.0 + exp(-steps * interval))
    kind = library().pld.privacy_loss_distribution.PrivacyLossDistribution
    losses = {steps: up, -steps: 1.0 - delta - up} if steps else {0: 1.0 - delta}
    once = kind.create_from_rounded_probability(losses, delta, interval)
    return once.self_compose(count, TAIL) if count > 1 else once


def _curve_of(event: Any, orders: Floats, neighbours: str) -> Floats:
    relation = library().NeighboringRelation[neighbours]
    accountant = library().rdp.RdpAccountant(orders, relation)
    found: Floats = accountant.compose(event).rdp
    return found


def _split(
    composition: Composition,
) -> tuple[list[tuple[Approximate, int]], list[tuple[Release, int]]]:
    """Part the releases of which only (epsilon, delta) is known from the others."""
    beside = [(one, n) for one, n in composition.items() if isinstance(one, Approximate)]
    return beside, [(o, n) for o, n in composition.items() if not isinstance(o, Approximate)]
