"""Replay: every charge of a ledger once more, compared with what the ledger says."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from deniable.budget.charging import CLOCK_SLIP, Rate
from deniable.budget.cost import Cost
from deniable.budget.ledger import Ledger
from deniable.budget.limits import Budget, epsilon_at
from deniable.budget.queries import BudgetRow, Charge, added, total_of

# Problems beyond these are counted, not said.
MOST_SAID = 20
# Whatever their type, SQLite keeps text in any column.
COUNTS = ("number", "records", "draws", "total_records", "total_draws")
SUMS = ("total_epsilon", "total_rho", "total_epsilon_beside", "total_delta_beside")
SIZES = ("at", "epsilon", "delta", "rho", *SUMS)


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
    found, line = Replay(), None
    with ledger.history() as (now, budgets, charges):
        limits = _Limits(budgets)
        for problem in limits.problems():
            found.add(problem)
        for charge in charges:
            if line is None or charge.subject != line.subject:
                line = _Line(charge.subject, limits, now + CLOCK_SLIP)
                found.subjects += 1
            found.charges += 1
            found.draws += charge.draws if isinstance(charge.draws, int) else 0
            for problem in line.problems(charge):
                where = f"charge {charge.id} (number {charge.number} of {charge.subject!r})"
                found.add(f"{where}: {problem}")
    return found


class _Limits:
    """The budgets of all times."""

    def __init__(self, rows: list[BudgetRow]) -> None:
        self._rows: dict[str | None, list[BudgetRow]] = {}
        for row in rows:
            self._rows.setdefault(row.subject, []).append(row)

    def problems(self) -> Iterator[str]:
        """Say which budgets are not in the order in which they were set."""
        for subject, rows in self._rows.items():
            times = [row.at for row in rows]
            if times != sorted(times):
                whose = "everyone" if subject is None else repr(subject)
                yield f"the budgets of {whose} are not in the order of their times"

    def slide(self, subject: str) -> bool:
        """Whether any budget of a subject was ever for a period."""
        rows = [*self._rows.get(subject, []), *self._rows.get(None, [])]
        return any(row.budget.period is not None for row in rows)

    def at(self, subject: str, at: float) -> Budget | None:
        """Return the budget that held then: the newest of his own, or else of everyone's."""
        for rows in (self._rows.get(subject, []), self._rows.get(None, [])):
            if held := bisect_right(rows, at, key=lambda row: row.at):
                return rows[held - 1].budget
        return None


class _Line:
    """One subject's charges, one after the other."""

    def __init__(self, subject: str, limits: _Limits, latest: float) -> None:
        self.subject = subject
        self._limits, self._latest = limits, latest
        self._number, self._at = 0, 0.0
        self._total, self._records = Cost(), 0
        self._slides = limits.slide(subject)
        self._times: list[float] = []
        self._totals: list[Cost] = []

    def problems(self, charge: Charge) -> Iterator[str]:
        """Say what is wrong with the next charge."""
        if not _readable(charge):
            yield "it holds what is no number, or a negative one"
            return
        if charge.number != self._number + 1:
            yield f"it should be number {self._number + 1}: some are missing, or not theirs"
        yield from self._wrong_times(charge)
        rate = Rate(charge.epsilon, charge.delta, charge.rho)
        cost, before = rate.cost(charge.draws), self._total
        self._total, self._records = added(before, cost), self._records + charge.records
        if total_of(charge) != self._total or charge.total_records != self._records:
            yield "its totals are not the sums of the charges up to it"
        yield from self._overspent(charge, before, cost)
        self._go_on(charge)

    def _wrong_times(self, charge: Charge) -> Iterator[str]:
        if not charge.at >= self._at:
            yield "it is older than the one before"
        if not charge.at <= self._latest:
            yield "it is in the future of this clock"

    def _overspent(self, charge: Charge, before: Cost, cost: Cost) -> Iterator[str]:
        budget = self._limits.at(self.subject, charge.at)
        if budget is None or not cost.count:
            return
        if budget.period is not None:
            past = bisect_right(self._times, charge.at - budget.period)
            before = before - self._totals[past - 1] if past else before
        spent = before + cost
        if not budget.allows(spent):
            yield f"it overspends: {epsilon_at(spent, budget.delta):.6g} of {budget.describe()}"

    def _go_on(self, charge: Charge) -> None:
        self._number, self._at = charge.number, charge.at
        if self._slides:
            self._times.append(charge.at)
            self._totals.append(self._total)


def _readable(charge: Charge) -> bool:
    counts = [getattr(charge, name) for name in COUNTS]
    sizes = [getattr(charge, name) for name in SIZES]
    numbers = all(isinstance(one, int) for one in counts) and all(
        isinstance(one, int | float) for one in sizes
    )
    return numbers and all(one >= 0 for one in (*counts, *sizes))
