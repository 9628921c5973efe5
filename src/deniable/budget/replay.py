"""Replay: every charge of a ledger once more, compared with what the ledger says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from deniable.budget.charging import Rate
from deniable.budget.cost import Cost
from deniable.budget.ledger import Ledger
from deniable.budget.limits import Budget, epsilon_at
from deniable.budget.queries import BudgetRow, Charge, total_of

# Problems beyond these are counted, not said.
MOST_SAID = 20


@dataclass
class Replay:
    """What a replay found."""

    subjects: int = 0
    charges: int = 0
    draws: int = 0
    problems: list[str] = field(default_factory=list)
    more: int = 0

    @property
    def holds(self) -> bool:
        """Whether the ledger adds up, and nobody was overspent."""
        return not self.problems

    def add(self, problem: str) -> None:
        """Note a problem."""
        if len(self.problems) < MOST_SAID:
            self.problems.append(problem)
        else:
            self.more += 1


def replay(ledger: Ledger) -> Replay:
    """Go through every charge: its number, its time, its sums, and the budget of its day."""
    found, subject = Replay(), None
    limits = _Limits(ledger.budgets())
    for charge in ledger.charges():
        if charge.subject != subject:
            subject, line = charge.subject, _Line(limits.of(charge.subject))
            found.subjects += 1
        found.charges += 1
        found.draws += charge.draws
        for problem in line.problems(charge):
            found.add(f"charge {charge.id} (number {charge.number} of {subject!r}): {problem}")
    return found


class _Limits:
    """The budgets of all times."""

    def __init__(self, rows: list[BudgetRow]) -> None:
        self._rows = rows

    def of(self, subject: str) -> list[BudgetRow]:
        """Return what was ever set for a subject or for everyone, in order."""
        return [row for row in self._rows if row.subject in (None, subject)]


class _Line:
    """One subject's charges, one after the other."""

    def __init__(self, limits: list[BudgetRow]) -> None:
        self._limits = limits
        self._number, self._at = 0, 0.0
        self._total, self._records = Cost(), 0
        self._history: list[tuple[float, Cost]] = []

    def problems(self, charge: Charge) -> Iterator[str]:
        """Say what is wrong with the next charge."""
        if charge.number != self._number + 1:
            yield f"charges {self._number + 1} to {charge.number - 1} are missing"
        if charge.at < self._at:
            yield "it is older than the one before"
        rate = Rate(charge.epsilon, charge.delta, charge.rho)
        if charge.draws < 0 or charge.records < 0 or not min(rate[:3]) >= 0:
            yield "it is negative, or not a number"
        cost = rate.cost(max(0, charge.draws))
        self._total, self._records = self._total + cost, self._records + charge.records
        if total_of(charge) != self._total or charge.total_records != self._records:
            yield "its totals are not the sums of the charges up to it"
        self._number, self._at = charge.number, charge.at
        yield from self._overspent(charge, cost)
        self._history.append((charge.at, self._total))

    def _overspent(self, charge: Charge, cost: Cost) -> Iterator[str]:
        budget = self._budget(charge.at)
        if budget is None or not cost.count:
            return
        before = Cost()
        if budget.period is not None:
            past = [total for at, total in self._history if at <= charge.at - budget.period]
            before = past[-1] if past else before
        spent = self._total - before
        if not budget.allows(spent):
            yield f"it overspends: {epsilon_at(spent, budget.delta):.6g} of {budget.describe()}"

    def _budget(self, at: float) -> Budget | None:
        """Return the budget that held then: the newest of his own, or else of everyone's."""
        held = [row for row in self._limits if row.at <= at]
        own = [row for row in held if row.subject is not None]
        return (own or held)[-1].budget if held else None
