"""What Mo (2022), the thesis with GauDP, states of composition; equations are numbered as there.

    paper:basic                 Theorem 1: the sum                                        a bound
    paper:advanced              (2.3.3): sqrt(2 k ln(1/delta')) e + k e (exp(e) - 1)      a bound
    paper:rdp                   Lemmas 1 to 4: Gaussian, sampled without replacement by
                                (2.3.4) as printed                                        a bound
    paper:gdp-clt               the central limit theorem whose inverse (2.3.13) and (4.3.7)
                                print: mu = p sqrt(T (exp(mu^2) - 1))             an approximation
    paper:gdp-clt-as-printed    (4.3.7) and (4.3.8) as printed: the inverse, used as if it were
                                the formula                                              false

Where the thesis leaves a choice: delta is shared out evenly, and half of it is delta' in (2.3.3);
orders are whole, from 2 to 256; (4.3.7) knows steps of one kind only, so of several kinds those
that lose most come first, which gives the most; and mu of a step is that of one record (4.3.5),
not of a whole batch (4.3.6), whose records are different people's.

The approximations can be far below what is truly lost (see docs/what-a-budget-means.md), so they
never decide anything.
"""

from __future__ import annotations

from math import expm1, inf, isfinite, log, log1p, sqrt

import numpy as np
import numpy.typing as npt

from deniable.budget.gaussian import epsilon_of
from deniable.budget.release import Composition, Gaussian, Release

Floats = npt.NDArray[np.float64]
ORDERS = np.arange(2, 257)
# So many terms are added up one by one, the rest are an integral.
TERMS = 100_000
# Shares of delta sum up to a little less than it.
ROUNDING = 1e-12


def basic(composition: Composition, delta: float) -> float:
    """Theorem 1, with delta shared out evenly."""
    return sum(count * epsilon for epsilon, count in _at(composition, delta))


def advanced(composition: Composition, delta: float) -> float:
    """Equation 2.3.3, with half of delta for the steps and half for delta'."""
    steps = _at(composition, delta / 2.0)
    if not steps:
        return 0.0
    if delta <= 0 or any(epsilon > 700 for epsilon, _ in steps):
        return inf
    spread = sqrt(2.0 * log(2.0 / delta) * sum(count * e * e for e, count in steps))
    return spread + sum(count * e * expm1(e) for e, count in steps)


def renyi(composition: Composition, delta: float) -> float:
    """Lemmas 1 to 4."""
    steps = _gaussian(composition)
    if not steps:
        return inf if steps is None else 0.0
    if delta <= 0:
        return inf
    with np.errstate(over="ignore"):
        total = sum((float(n) * _curve(one) for one, n in steps), np.zeros(len(ORDERS)))
    return float((total - log(delta) / (ORDERS - 1.0)).min())


def _curve(release: Gaussian) -> Floats:
    """Lemma 2, and Lemma 4 if it is sampled."""
    rdp: Floats = np.asarray(ORDERS * _half(release), dtype=np.float64)
    if release.sample_rate == 1.0:
        return rdp
    return np.array([_sampled(release, int(order)) for order in ORDERS])


def _half(release: Gaussian) -> float:
    # Not a power: that of a huge number would raise an error.
    return release.mu * release.mu / 2.0


def _sampled(release: Gaussian, order: int) -> float:
    """Equation 2.3.4 as printed; no order's divergence is bounded by e(infinity), so min is 2."""
    rate, half = release.sample_rate, _half(release)
    pairs = order * (order - 1) / 2.0
    if 2.0 * half > 700:
        return inf
    second = min(4.0 * expm1(2.0 * half), 2.0 * (expm1(2.0 * half) + 1.0))
    first = log1p(rate**2 * pairs * second) / (order - 1.0)
    j = np.arange(3, order + 1)
    # ln of the binomial coefficients, one from the other.
    choose = log(pairs) + np.cumsum(np.log((order - j + 1.0) / j))
    logs = j * log(rate) + choose + (j - 1.0) * j * half + log(2.0)
    if len(j) and logs.max() > 700:
        return inf
    return first + float(np.exp(logs).sum())


def clt(composition: Composition, delta: float) -> float:
    """The central limit theorem of Bu, Dong, Long and Su (2020), which the thesis means."""
    steps = _gaussian(composition)
    if steps is None or any(_half(one) > 350 for one, _ in steps):
        return inf
    squares = sum(n * one.sample_rate**2 * expm1(one.mu**2) for one, n in steps)
    return epsilon_of(delta, sqrt(squares))


def clt_as_printed(composition: Composition, delta: float) -> float:
    """Equations 4.3.7 and 4.3.8: every step t adds ln(mu^2 / (p^2 t) + 1)."""
    steps = _gaussian(composition)
    if steps is None:
        return inf
    ratios = sorted(((one.mu / one.sample_rate, count) for one, count in steps), reverse=True)
    squares, done = 0.0, 0
    for ratio, count in ratios:
        squares += _logs(ratio * ratio, done, done + count)
        done += count
    return epsilon_of(delta, sqrt(squares))


def _logs(a: float, done: int, until: int) -> float:
    """Return the sum of ln(1 + a / t) over the steps t after `done`, and until the last one."""
    if not isfinite(a):
        return inf
    near = min(until, done + TERMS)
    found = float(np.log1p(a / np.arange(done + 1.0, near + 1.0)).sum())
    if near == until:
        return found
    # Each term is the integral over its middle, to one part in 24 near^2.
    x, y = near + 0.5, until + 0.5
    return found + y * log1p(a / y) - x * log1p(a / x) + a * log1p((y - x) / (x + a))


def _at(composition: Composition, delta: float) -> list[tuple[float, int]]:
    """Return every release's epsilon at an even share of delta; infinite if they need more."""
    releases = [(one, count) for one, count in composition.items() if count]
    share = delta / max(1, sum(composition.values())) * (1.0 - ROUNDING)
    found = [(*one.at(share), count) for one, count in releases]
    if sum(used * count for _, used, count in found) > delta:
        return [(inf, 1)]
    return [(epsilon, count) for epsilon, _, count in found]


def _gaussian(composition: Composition) -> list[tuple[Gaussian, int]] | None:
    """Return the releases if all of them are Gaussian."""
    found: list[tuple[Release, int]] = [(one, n) for one, n in composition.items() if n]
    gaussian = [(one, n) for one, n in found if isinstance(one, Gaussian)]
    return gaussian if len(gaussian) == len(found) else None
