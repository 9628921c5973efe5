"""Every method of composition by name, and the best valid one of them.

A method is a bound (what it says holds) or an approximation (it may be too low, and is never
chosen). Methods named `paper:` are as Mo (2022) states them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from math import inf, isfinite

from deniable.budget import numerical, paper
from deniable.budget.cost import Cost
from deniable.budget.release import Approximate, Composition, Gaussian, compose
from deniable.errors import ParameterError

BOUND = "bound"
APPROXIMATION = "approximation"
NEARLY = 1.0 + 1e-9
# Shares of delta sum up to a little less than it.
ROUNDING = 1e-12
Compute = Callable[[Composition, float], float]


@dataclass(frozen=True)
class Method:
    """One way to compose: (composition, delta) -> epsilon, infinite where it has no answer."""

    name: str
    kind: str
    about: str
    compute: Compute
    needs_library: bool = False

    @property
    def available(self) -> bool:
        """Whether what it needs is installed."""
        return not self.needs_library or find_spec("dp_accounting") is not None


@dataclass(frozen=True)
class Account:
    """What one method says; `best` marks the least bound."""

    method: Method
    epsilon: float
    best: bool


def total(composition: Composition) -> Cost:
    """Return the sums that closed forms are computed from."""
    return sum((one.cost() * count for one, count in composition.items()), Cost())


def _closed(name: str, composition: Composition, delta: float) -> float:
    if any(isinstance(one, Gaussian) and one.sample_rate < 1 for one in composition):
        return inf
    return float(getattr(total(composition), name)(delta))


def _shared(name: str, composition: Composition, delta: float) -> float:
    """Give every release that needs one an even share of delta (of half of it, for advanced)."""
    chooses = sum(count for one, count in composition.items() if isinstance(one, Gaussian))
    if not chooses:
        return _closed(name, composition, delta)
    beside = sum(n * one.delta for one, n in composition.items() if isinstance(one, Approximate))
    shared = delta - beside if name == "basic" else (delta - beside) / 2.0
    each = shared / chooses * (1.0 - ROUNDING)
    if each <= 0:
        return inf
    found = Cost()
    for one, count in composition.items():
        epsilon = one.at(each)[0]
        if not isfinite(epsilon):
            return inf
        found += (Cost.pure(epsilon) if isinstance(one, Gaussian) else one.cost()) * count
    return float(getattr(found, name)(delta if name == "basic" else delta - shared))


METHODS = (
    Method("basic", BOUND, "the sum of all epsilons", partial(_shared, "basic")),
    Method("advanced", BOUND, "advanced composition", partial(_shared, "advanced")),
    Method("zcdp", BOUND, "zero-concentrated DP, bounded range", partial(_closed, "zcdp")),
    Method("rdp", BOUND, "Renyi DP", numerical.renyi, needs_library=True),
    Method("gdp", BOUND, "Gaussian DP", partial(_closed, "gdp")),
    Method("pld", BOUND, "privacy-loss distribution", numerical.distribution_of, True),
    Method("paper:basic", BOUND, "Theorem 1", paper.basic),
    Method("paper:advanced", BOUND, "equation 2.3.3", paper.advanced),
    Method("paper:rdp", BOUND, "Lemmas 1 to 4, equation 2.3.4", paper.renyi),
    Method("paper:gdp-clt", APPROXIMATION, "what 4.3.7 is the inverse of", paper.clt),
    Method("paper:gdp-clt-as-printed", APPROXIMATION, "4.3.7 as printed", paper.clt_as_printed),
)


def methods() -> Mapping[str, Method]:
    """Return every method by name."""
    return {one.name: one for one in METHODS}


def account(
    composition: Composition, delta: float, names: tuple[str, ...] | None = None
) -> list[Account]:
    """Return what every method says that has an answer; the least bound is marked.

    Methods that need dp-accounting are left out where it isn't installed.

    >>> [(a.method.name, round(a.epsilon, 2)) for a in account({Gaussian(2.0): 4}, 1e-5, ("gdp",))]
    [('gdp', 4.38)]
    """
    if not 0.0 <= delta < 1.0:
        raise ParameterError(f"delta must be at least 0 and below 1, got {delta}")
    if names is not None and (unknown := sorted(set(names) - set(methods()))):
        raise ParameterError(f"no method {', '.join(unknown)}; there are {', '.join(methods())}")
    chosen = [one for one in METHODS if one.available and (names is None or one.name in names)]
    composition = {one: count for one, count in compose(composition).items() if count}
    found = [(one, one.compute(composition, delta)) for one in chosen]
    answers = [(one, epsilon) for one, epsilon in found if isfinite(epsilon)]
    valid = [epsilon for one, epsilon in answers if one.kind == BOUND]
    least = min(valid, default=inf)
    # Of equals the simplest is chosen, and the last digits of a numerical one decide nothing.
    equal = (one for one, epsilon in answers if one.kind == BOUND and epsilon <= least * NEARLY)
    first = next(equal, None)
    return [Account(one, epsilon, one is first) for one, epsilon in answers]
