"""One release as data: what is known of its privacy loss. Equal releases are one key of a count.

A document is a composition: so many releases of this kind, so many of that.

    >>> compose([Pure(1.0), Pure(1.0)], {Pure(0.5): 3})[Pure(1.0)]
    2
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import expm1, inf, isfinite, log1p, sqrt

from deniable.budget.cost import Cost
from deniable.budget.gaussian import epsilon_of
from deniable.errors import ParameterError
from deniable.guarantee import Guarantee


class Release(ABC):
    """What an accountant knows of one release."""

    @abstractmethod
    def cost(self) -> Cost:
        """What it adds to the sums that closed forms are computed from."""

    @property
    @abstractmethod
    def scale(self) -> float:
        """How far its losses reach, roughly: for grids, not for promises."""

    @abstractmethod
    def at(self, delta: float) -> tuple[float, float]:
        """An (epsilon, delta) that holds for it, with at most this delta if it can choose."""


@dataclass(frozen=True)
class Pure(Release):
    """No pair of neighbours loses more than epsilon; the loss of a pair spreads over `spread`.

    An exponential mechanism spreads over epsilon, whatever it draws from (it is bounded-range);
    nothing spreads over more than 2 epsilon.
    """

    epsilon: float
    spread: float = inf

    def __post_init__(self) -> None:
        _check_not_negative("epsilon", self.epsilon)
        if not self.spread >= 0:
            raise ParameterError(f"spread must be at least 0, got {self.spread}")
        object.__setattr__(self, "spread", min(self.spread, 2.0 * self.epsilon))

    @classmethod
    def of(cls, guarantee: Guarantee) -> Release:
        """Return what a guarantee says of its worst covered pair.

        A metric promise becomes one about all pairs through its stated diameter.
        """
        if guarantee.delta:
            return Approximate(guarantee.worst_epsilon, guarantee.delta)
        return cls(guarantee.worst_epsilon, guarantee.worst_spread)

    def cost(self) -> Cost:
        """Its loss, and everything that follows from it."""
        return Cost.pure(self.epsilon, self.spread)

    @property
    def scale(self) -> float:
        """Its epsilon."""
        return self.epsilon

    def at(self, delta: float) -> tuple[float, float]:  # noqa: ARG002 (it needs none)
        """Its epsilon, without any delta."""
        return self.epsilon, 0.0


@dataclass(frozen=True)
class Approximate(Release):
    """(epsilon, delta), and nothing more is known of it."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        _check_not_negative("epsilon", self.epsilon)
        if not 0.0 < self.delta < 1.0:
            raise ParameterError(f"delta must be between 0 and 1, got {self.delta}")

    def cost(self) -> Cost:
        """Two sums of their own: they can only be added to the rest."""
        return Cost(count=1, epsilon_beside=self.epsilon, delta_beside=self.delta)

    @property
    def scale(self) -> float:
        """Its epsilon."""
        return self.epsilon

    def at(self, delta: float) -> tuple[float, float]:  # noqa: ARG002 (it can't choose)
        """Itself."""
        return self.epsilon, self.delta


@dataclass(frozen=True)
class Gaussian(Release):
    """Gaussian noise of standard deviation `sigma` on something of this L2 sensitivity.

    With `sample_rate` below 1 a record takes part by an independent coin that nobody sees, and
    neighbours differ by one record more; without it they differ by whatever moves the value by
    at most the sensitivity.
    """

    sigma: float
    sensitivity: float = 1.0
    sample_rate: float = 1.0

    def __post_init__(self) -> None:
        for name in ("sigma", "sensitivity"):
            value = getattr(self, name)
            if not (isfinite(value) and value > 0):
                raise ParameterError(f"{name} must be a finite number above 0, got {value}")
        if not 0.0 < self.sample_rate <= 1.0:
            raise ParameterError(f"sample_rate must be above 0 and at most 1: {self.sample_rate}")

    @property
    def mu(self) -> float:
        """How far apart two neighbours' distributions are, in standard deviations."""
        return self.sensitivity / self.sigma

    def cost(self) -> Cost:
        """Its mu; what sampling saves has no closed form."""
        return Cost.gaussian(self.mu)

    @property
    def scale(self) -> float:
        """The standard deviation of its loss; if sampled, about as much at most."""
        if self.sample_rate == 1.0:
            return self.mu
        # Who takes part loses mu^2 / 2 on average, and who doesn't hardly anything.
        rate = self.sample_rate
        most = self.mu + sqrt(rate * (1.0 - rate)) * self.mu * self.mu / 2.0
        return most if self.mu > 20 else min(most, rate * sqrt(expm1(self.mu**2)))

    def at(self, delta: float) -> tuple[float, float]:
        """The exact epsilon at a delta, and what secret sampling makes of it."""
        epsilon = epsilon_of(min(delta / self.sample_rate, 1.0), self.mu)
        if self.sample_rate == 1.0:
            return epsilon, delta
        sampled = log1p(self.sample_rate * expm1(epsilon)) if epsilon < 700 else epsilon
        return sampled, delta


Composition = Mapping[Release, int]


def compose(*parts: Composition | Iterable[Release]) -> Composition:
    """Put releases together; the order doesn't matter, and nothing is lost."""
    found: Counter[Release] = Counter()
    for part in parts:
        found.update(part)
    for count in found.values():
        # So written, it refuses NaN and the infinite too.
        if not 0 <= count == count // 1:
            raise ParameterError(f"a number of releases is a whole one, and not negative: {count}")
    return found


def _check_not_negative(name: str, value: float) -> None:
    if not (isfinite(value) and value >= 0):
        raise ParameterError(f"{name} must be a finite number of at least 0, got {value}")
