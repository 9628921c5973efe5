"""Guarantee: what is promised, as data. It can be stored, compared, restated and composed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from deniable.errors import ParameterError

ALL_PAIRS = "all pairs"
METRIC = "metric"
WITHIN_SETS = "within one output set"
PROTECTED = "metric on sensitive words"
COMMON = "pairs that every one of several promises covers"

RECOMPUTED = "recomputed"
AUDITED = "by theorem, audited"


@dataclass(frozen=True)
class Relation:
    """Which pairs of inputs the promise covers, and how it grows with their distance.

    `kind` is one of `all pairs`, `metric`, `within one output set`, `metric on sensitive words`
    and, where promises were added, `pairs that every one of several promises covers`. A metric
    promise is epsilon times a distance; `metric` names that distance and `diameter` is its largest
    value. `covered` is the fraction of pairs of different words for which anything is promised.
    """

    kind: str
    covered: float = 1.0
    metric: str | None = None
    diameter: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.covered <= 1.0:
            raise ParameterError(f"covered must be between 0 and 1, got {self.covered}")
        if not (math.isfinite(self.diameter) and self.diameter >= 0):
            raise ParameterError(f"a diameter must be finite and not negative: {self.diameter}")


@dataclass(frozen=True)
class Guarantee:
    """P(y | x) <= exp(epsilon * distance(x, x') + slack) P(y | x') + delta, for covered pairs.

    The distance is 1 unless the relation is a metric one. `slack` is what finite arithmetic may
    add (see sampling.py). `unit` says what x and x' are. `basis` says why it may be believed:
    `recomputed` from the tables that are sampled, or `by theorem, audited` where there are none.
    `spread` is the most by which ln P(y | x) / P(y | x') differs over the outputs y, for any
    covered pair: twice the loss, unless less is known (of the exponential mechanisms, for one).
    A small spread composes better: see budget/cost.py.

    >>> token = Guarantee("token", Relation(METRIC, metric="euclidean", diameter=2.0), 3.0)
    >>> token.worst_epsilon
    6.0
    >>> token.repeat(10).worst_epsilon
    60.0
    """

    unit: str
    relation: Relation
    epsilon: float
    delta: float = 0.0
    slack: float = 0.0
    assumptions: tuple[str, ...] = ()
    reveals: tuple[str, ...] = ()
    paper: str = ""
    basis: str = RECOMPUTED
    spread: float | None = None

    def __post_init__(self) -> None:
        for name in ("epsilon", "delta", "slack", "spread"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise ParameterError(f"{name} must be finite and not negative, got {value}")

    @property
    def worst_epsilon(self) -> float:
        """The promise for the farthest covered pair: epsilon x diameter, and the slack."""
        return self.epsilon * self.relation.diameter + self.slack

    @property
    def worst_spread(self) -> float:
        """The spread for the worst covered pair, twice its loss where nothing less is known."""
        twice = 2.0 * self.worst_epsilon
        return twice if self.spread is None else min(self.spread, twice)

    def repeat(self, count: int, unit: str = "document") -> Guarantee:
        """Return what holds for `count` independent draws about one unit (basic composition)."""
        if count < 0:
            raise ParameterError(f"a number of draws can't be negative, got {count}")
        condition = (f"neighbours have the same number of tokens, at most {count} of them changed",)
        return replace(
            self,
            unit=unit,
            epsilon=self.epsilon * count,
            delta=min(1.0, self.delta * count),
            slack=self.slack * count,
            spread=None if self.spread is None else self.spread * count,
            assumptions=self.assumptions + condition,
        )

    def __add__(self, other: Guarantee) -> Guarantee:
        """Return what holds for one draw under each of two promises about the same thing.

        Promises of one relation add up as they are: metric ones stay metric. Others become
        promises about pairs first, each through its own diameter.

        >>> near = Guarantee("token", Relation(METRIC, metric="euclidean", diameter=2.0), 3.0)
        >>> (near + near).epsilon, (near + Guarantee("token", Relation(ALL_PAIRS), 1.0)).epsilon
        (6.0, 7.0)
        """
        if self.unit != other.unit:
            raise ParameterError(f"a {self.unit} and a {other.unit} can't be added: repeat() first")
        # One kind of partial cover may be two: the same share of pairs, but not the same pairs.
        same = self.relation == other.relation and self.relation.covered == 1.0
        if not same and not (self._is_about_pairs and other._is_about_pairs):
            return self._of_pairs() + other._of_pairs()
        return replace(
            self,
            relation=_common(self.relation, other.relation),
            epsilon=self.epsilon + other.epsilon,
            delta=min(1.0, self.delta + other.delta),
            slack=self.slack + other.slack,
            assumptions=_both(self.assumptions, other.assumptions),
            reveals=_both(self.reveals, other.reveals),
            paper="",
            basis=self.basis if self.basis == other.basis else AUDITED,
            spread=self.worst_spread + other.worst_spread,
        )

    @property
    def _is_about_pairs(self) -> bool:
        return self.relation.kind in (ALL_PAIRS, COMMON)

    def _of_pairs(self) -> Guarantee:
        """Return the same promise for the worst pair, and so for every pair that it covers."""
        relation = self.relation
        kind = ALL_PAIRS if relation.covered == 1.0 else COMMON
        epsilon = self.epsilon * relation.diameter
        return replace(self, relation=Relation(kind, relation.covered), epsilon=epsilon)

    def to_dict(self) -> dict[str, Any]:
        """Return the guarantee as plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Guarantee:
        """Rebuild a guarantee from plain data."""
        fields = dict(data)
        fields["relation"] = Relation(**fields["relation"])
        for name in ("assumptions", "reveals"):
            fields[name] = tuple(fields[name])
        return cls(**fields)

    def describe(self) -> str:
        """Say the promise in one sentence."""
        relation = self.relation
        believed = "" if self.basis == RECOMPUTED else f"{self.basis}: "
        start = f"{believed}for each {self.unit}, P(output | x) <= exp"
        if relation.kind == ALL_PAIRS:
            return f"{start}({self.epsilon:g}) P(output | x') for every pair x, x'"
        if relation.kind == WITHIN_SETS:
            return (
                f"{start}({self.epsilon:g}) P(output | x') for x, x' of one output set "
                f"({relation.covered:.2%} of all pairs); which set it is, is revealed"
            )
        if relation.kind == COMMON:
            return (
                f"{start}({self.epsilon:g}) P(output | x') for x, x' that every promise covers "
                f"(at least {relation.covered:.2%} of all pairs)"
            )
        where = "" if relation.covered == 1 else f" for {relation.covered:.2%} of all pairs"
        return (
            f"{start}({self.epsilon:g} d(x, x')) P(output | x'){where}, d = {relation.metric}; "
            f"epsilon x diameter = {self.epsilon * relation.diameter:.4g}"
        )


def _common(a: Relation, b: Relation) -> Relation:
    """Return what two relations cover both; of partial ones at least so much."""
    if a == b and a.covered == 1.0:
        return a
    covered = max(0.0, min(a.covered, b.covered, a.covered + b.covered - 1.0))
    return Relation(ALL_PAIRS if covered == 1.0 else COMMON, covered)


def _both(a: tuple[str, ...], b: tuple[str, ...]) -> tuple[str, ...]:
    """Return both without saying anything twice."""
    return tuple(dict.fromkeys((*a, *b)))
