"""Cost: what releases cost together, as numbers that add up; and the bounds with a closed form.

All bounds say: everything together is (epsilon, delta)-private, for the delta that is asked for.

    basic       the sum of all epsilons
    advanced    sum of e tanh(e / 2) + sqrt(2 ln(1 / delta) sum of e^2)   (Kairouz et al. 2017)
    zcdp        rho = sum of spread^2 / 8 (bounded range, Cesar and Rogers 2021; with spread = 2 e
                the e^2 / 2 of Bun and Steinke 2016; a Gaussian has mu^2 / 2), turned into epsilon
                by the least over orders a > 1 of
                    rho a + ln(1 - 1 / a) - ln(delta a) / (a - 1)
                (Canonne, Kamath, Steinke 2020, Proposition 12)
    gdp         mu^2 adds up; epsilon from the Gaussian trade-off (Dong, Roth, Su 2022)

Releases of which only (epsilon, delta) is known stand beside the rest: both their sums are added.

    >>> hundred = Cost.pure(1.0, spread=1.0) * 100
    >>> epsilon, _, method = hundred.best(1e-5)
    >>> method, round(epsilon, 2)
    ('zcdp', 35.07)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite, log, sqrt, tanh
from typing import NamedTuple

import numpy as np

from deniable.budget.gaussian import epsilon_of, mu_of_pure
from deniable.errors import ParameterError

# The first of equals is chosen: the simplest.
CLOSED_FORMS = ("basic", "advanced", "zcdp", "gdp")


class Spent(NamedTuple):
    """An (epsilon, delta) that holds, and the method that shows it."""

    epsilon: float
    delta: float
    method: str


# Orders around the one that is best for the simpler conversion; every order gives a valid bound.
_AROUND = np.geomspace(0.4, 1.6, 121)
# A smaller rho is taken for this one, so that nothing overflows.
LEAST_RHO = 1e-300


@dataclass(frozen=True)
class Cost:
    """Sums over releases. What doesn't apply to one of them is infinite from then on.

    A cost that is not negative can only grow by adding another.
    """

    count: int = 0
    epsilon: float = 0.0
    squares: float = 0.0
    drift: float = 0.0
    rho: float = 0.0
    mu_squares: float = 0.0
    epsilon_beside: float = 0.0
    delta_beside: float = 0.0

    def __post_init__(self) -> None:
        # So written, it refuses NaN too.
        if not all(one >= 0.0 for one in self._sums()):
            raise ParameterError(f"a cost can't be negative, nor not a number: {self._sums()}")

    @classmethod
    def pure(cls, epsilon: float, spread: float = inf) -> Cost:
        """Return the cost of one release that loses at most epsilon."""
        if not (0.0 <= epsilon < inf and spread >= 0.0):
            raise ParameterError(f"no release loses epsilon {epsilon} with spread {spread}")
        spread = min(spread, 2.0 * epsilon)
        return cls(
            count=1,
            epsilon=epsilon,
            squares=epsilon * epsilon,
            drift=epsilon * tanh(epsilon / 2.0),
            rho=spread * spread / 8.0,
            mu_squares=mu_of_pure(epsilon) ** 2,
        )

    @classmethod
    def gaussian(cls, mu: float) -> Cost:
        """Return the cost of one release with Gaussian noise."""
        if not mu >= 0.0:
            raise ParameterError(f"mu must be at least 0, got {mu}")
        return cls(1, inf, inf, inf, mu * mu / 2.0, mu * mu)

    def __add__(self, other: Cost) -> Cost:
        sums = [a + b for a, b in zip(self._sums(), other._sums(), strict=True)]
        return Cost(self.count + other.count, *sums)

    def __sub__(self, other: Cost) -> Cost:
        """Return what was spent since; what was infinite then or now stays so."""
        pairs = zip(self._sums(), other._sums(), strict=True)
        sums = [a - b if isfinite(b) else inf for a, b in pairs]
        return Cost(self.count - other.count, *(max(0.0, one) for one in sums))

    def __mul__(self, times: int) -> Cost:
        if times < 0:
            raise ParameterError(f"a number of releases can't be negative, got {times}")
        # Nothing at all, even of what is infinite.
        return Cost(self.count * times, *(one * times for one in self._sums())) if times else Cost()

    def _sums(self) -> tuple[float, ...]:
        return (
            self.epsilon,
            self.squares,
            self.drift,
            self.rho,
            self.mu_squares,
            self.epsilon_beside,
            self.delta_beside,
        )

    def basic(self, delta: float) -> float:
        """The sum; delta is only asked for by what stands beside."""
        return self._beside(self.epsilon, delta, needs=0.0)

    def advanced(self, delta: float) -> float:
        """Advanced composition of releases that need not be alike."""
        rest = delta - self.delta_beside
        if self.count == 0:
            return 0.0
        if rest <= 0 or not isfinite(self.squares):
            return inf
        epsilon = self.drift + sqrt(2.0 * log(1.0 / rest) * self.squares)
        return self._beside(epsilon, delta)

    def zcdp(self, delta: float) -> float:
        """Zero-concentrated differential privacy."""
        return self._beside(epsilon_of_rho(self.rho, delta - self.delta_beside), delta)

    def gdp(self, delta: float) -> float:
        """Gaussian differential privacy."""
        rest = delta - self.delta_beside
        return self._beside(epsilon_of(rest, sqrt(self.mu_squares)), delta)

    def best(self, delta: float, names: Sequence[str] = CLOSED_FORMS) -> Spent:
        """Return the least epsilon that holds at this delta, and which method shows it."""
        if not 0.0 <= delta < 1.0:
            raise ParameterError(f"delta must be at least 0 and below 1, got {delta}")
        found = {name: getattr(self, name)(delta) for name in names}
        name = min(found, key=found.__getitem__)
        return Spent(found[name], self.delta_beside if name == "basic" else delta, name)

    def _beside(self, epsilon: float, delta: float, needs: float = 1e-300) -> float:
        """Add what stands beside, if the delta covers it and leaves what the method needs."""
        if self.count == 0:
            return 0.0
        enough = delta - self.delta_beside >= needs
        return epsilon + self.epsilon_beside if enough else inf


def epsilon_of_rho(rho: float, delta: float) -> float:
    """Return an epsilon that rho-zCDP gives at a delta.

    >>> epsilon_of_rho(12.5, 1e-5) < 12.5 + 2 * (12.5 * 11.5129) ** 0.5 < 36.5
    True
    """
    if rho == 0 or delta >= 1:
        return 0.0
    if not (delta > 0 and isfinite(rho)):
        return inf
    rho = max(rho, LEAST_RHO)
    # a - 1, because a itself can't be told from 1 for a large rho.
    above = sqrt(-log(delta) / rho) * _AROUND
    bounds = rho * (1.0 + above) + np.log(above) - np.log1p(above)
    bounds -= (log(delta) + np.log1p(above)) / above
    return max(0.0, float(bounds.min()))
