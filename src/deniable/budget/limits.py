"""Limits: what a subject may spend, and whether a charge fits in."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import isfinite, nextafter

from deniable.budget.cost import Cost
from deniable.errors import ParameterError

# The ledger keeps the sums that these two need.
ENFORCED = ("basic", "zcdp")
# A token's epsilon carries the slack of finite arithmetic, which must not refuse the last token of
# a budget of so many: a budget is enforced to this share of itself.
TOLERANCE = 1e-6
LARGEST_DELTA = nextafter(1.0, 0.0)
_PERIOD = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}


@dataclass(frozen=True)
class Budget:
    """At most `epsilon` at `delta` for one subject, within any `period` seconds (or for ever).

    >>> Budget(100.0, period=parse_period("30d")).describe()
    'epsilon 100 at delta 0 in any 30d'
    """

    epsilon: float
    delta: float = 0.0
    period: float | None = None

    def __post_init__(self) -> None:
        if not (isfinite(self.epsilon) and self.epsilon >= 0):
            raise ParameterError(f"a budget must be finite and at least 0: {self.epsilon}")
        if not 0.0 <= self.delta < 1.0:
            raise ParameterError(f"a budget's delta must be at least 0 and below 1: {self.delta}")
        if self.period is not None and not (isfinite(self.period) and self.period > 0):
            raise ParameterError(f"a budget's period must be above 0 seconds: {self.period}")

    def allows(self, cost: Cost) -> bool:
        """Whether a cost stays within."""
        spent = epsilon_at(cost, self.delta)
        return isfinite(spent) and spent <= self.epsilon * (1.0 + TOLERANCE)

    def describe(self) -> str:
        """Say it in a few words."""
        when = "" if self.period is None else f" in any {show_period(self.period)}"
        return f"epsilon {self.epsilon:g} at delta {self.delta:g}{when}"


def epsilon_at(cost: Cost, delta: float) -> float:
    """Return what a cost is worth at a delta, by the methods that a ledger can enforce."""
    # Deltas that fill it up can round to a little more.
    if delta < cost.delta_beside <= min(delta * (1.0 + TOLERANCE), LARGEST_DELTA):
        delta = cost.delta_beside
    return cost.best(delta, ENFORCED).epsilon


def parse_period(text: str) -> float:
    """Return the seconds of `30d`, `12h`, `1w`.

    >>> parse_period("1.5h")
    5400.0
    """
    found = _PERIOD.fullmatch(text.strip())
    if not found or float(found[1]) <= 0:
        raise ParameterError(f"a period is a number and one of s, m, h, d, w, as 30d; got {text!r}")
    return float(found[1]) * _SECONDS[found[2]]


def show_period(seconds: float) -> str:
    """Return a period in the largest unit that divides it."""
    unit = next((u for u in "wdhm" if seconds % _SECONDS[u] == 0), "s")
    # Weeks are said as days up to a few: 30d and 7d are how people say it.
    unit = "d" if unit == "w" and seconds < 5 * _SECONDS["w"] else unit
    return f"{seconds / _SECONDS[unit]:g}{unit}"
