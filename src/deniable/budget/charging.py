"""Charging: what the records of one call ask for, against what their subjects may spend."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from operator import index
from typing import Any, NamedTuple

from sqlalchemy import Connection, insert

from deniable.budget.cost import Cost
from deniable.budget.database import now
from deniable.budget.limits import Budget, epsilon_at
from deniable.budget.queries import (
    Part,
    added,
    last_charges,
    limits_of,
    paid_for,
    spent_within,
    total_of,
)
from deniable.budget.release import Release
from deniable.budget.schema import CHARGES
from deniable.errors import BudgetError, LedgerError

# Clocks of one machine are set back a little now and then; more is a fault.
CLOCK_SLIP = 5.0
NOTHING = Part(0, 0)
FREE = Cost()


class Rate(NamedTuple):
    """What one draw costs, as a row of the ledger keeps it; a rho that isn't known is infinite."""

    epsilon: float
    delta: float = 0.0
    rho: float = inf
    mechanism: str = ""
    relation: str = ""

    @classmethod
    def of(cls, release: Release, mechanism: str = "", relation: str = "") -> Rate:
        """Return the rate of a release."""
        cost = release.cost()
        if cost.delta_beside:
            return cls(cost.epsilon_beside, cost.delta_beside, 0.0, mechanism, relation)
        return cls(cost.epsilon, 0.0, cost.rho, mechanism, relation)

    def check(self) -> None:
        """Refuse what would make a charge smaller."""
        if not all(one >= 0.0 for one in self[:3]):
            raise LedgerError("what a draw costs is a number, and never a negative one")

    def cost(self, draws: int) -> Cost:
        """Return what so many draws cost."""
        if not draws:
            return Cost()
        if self.delta:
            beside = (self.epsilon * draws, self.delta * draws)
            return Cost(draws, epsilon_beside=beside[0], delta_beside=beside[1])
        return Cost(draws, epsilon=self.epsilon * draws, rho=self.rho * draws)


class Run(NamedTuple):
    """Which part of which run pays: the same part never pays twice."""

    name: str
    part: int


class Asked:
    """What records ask for: a subject and a number of draws for each."""

    # Whether the draws are those that the same part has paid for, as far as it has.
    again = True

    def __init__(self, subjects: Sequence[str], draws: Sequence[int]) -> None:
        self.subjects, self.draws = subjects, [index(count) for count in draws]
        if min(self.draws, default=0) < 0 or len(subjects) != len(draws):
            raise LedgerError("every record asks for a number of draws, and never a negative one")

    def whole(self) -> Iterator[tuple[str, int, int]]:
        """Yield each subject with the draws and the number of all its records."""
        sums: dict[str, list[int]] = {}
        for subject, count in zip(self.subjects, self.draws, strict=True):
            sums.setdefault(subject, []).append(count)
        return ((subject, sum(counts), len(counts)) for subject, counts in sums.items())

    def of(self, record: int) -> int:
        """Return the draws of a record, after those that were taken before it."""
        return self.draws[record]

    def take(self, record: int) -> None:
        """Take note that a record is paid for: here it changes nothing for the others."""


class NewWords(Asked):
    """Records that pay for those words only which no paid record of the subject has had.

    What the same part has paid for before is for other words: those aren't new any more.
    """

    again = False

    def __init__(self, subjects: Sequence[str], words: Sequence[frozenset[int]]) -> None:
        self._words = words
        had: dict[str, set[int]] = {}
        draws = []
        for subject, mine in zip(subjects, words, strict=True):
            known = had.setdefault(subject, set())
            draws.append(len(mine - known))
            known |= mine
        self._had: dict[str, set[int]] = {}
        super().__init__(subjects, draws)

    def of(self, record: int) -> int:
        """Return how many words are new."""
        return len(self._words[record] - self._had.get(self.subjects[record], set()))

    def take(self, record: int) -> None:
        """Let the record's words be known from now on."""
        self._had.setdefault(self.subjects[record], set()).update(self._words[record])


class Counter:
    """Counts what is asked for, subject by subject, and writes one charge for each."""

    def __init__(self, connection: Connection, asked: Asked, rate: Rate, run: Run) -> None:
        self._connection, self._rate, self._run = connection, rate, run
        subjects = list(dict.fromkeys(asked.subjects))
        self._last = last_charges(connection, subjects)
        self._limits = limits_of(connection, subjects)
        newest = max([self._limits.newest, *(row.at for row in self._last.values())])
        self._at = time_after(now(connection), newest)
        self._spent = spent_within(connection, self._last, self._limits, self._at)
        same = {"run": run.name, "part": run.part, **rate._asdict()}
        self._paid = paid_for(connection, same, draws=asked.again)
        self._taken: dict[str, Part] = {}

    def take(self, subject: str, draws: int, records: int = 1) -> bool:
        """Take the draws of some records if the budget allows all of them; say whether it does."""
        taken = self._taken.get(subject, NOTHING)
        unpaid = self._unpaid(subject, taken.draws + draws)
        budget = self._limits.of(subject)
        if unpaid and budget and not self._fits(subject, unpaid, budget):
            return False
        self._taken[subject] = Part(taken.records + records, taken.draws + draws)
        return True

    def _fits(self, subject: str, draws: int, budget: Budget) -> bool:
        spent = self._spent.get(subject, FREE)
        if self._rate.delta or spent.delta_beside:
            return budget.allows(spent + self._rate.cost(draws))
        # Mostly the sum is enough, and it is quick.
        enough = spent.epsilon + self._rate.epsilon * draws <= budget.epsilon
        return enough or budget.allows(spent + self._rate.cost(draws))

    def clear(self) -> None:
        """Put everything back."""
        self._taken = {}

    def refusal(self, subject: str, draws: int, *, stop: bool) -> BudgetError:
        """Say why so many draws more are refused."""
        budget = self._limits.of(subject) or Budget(0.0)
        taken = self._unpaid(subject, self._taken.get(subject, NOTHING).draws)
        spent = self._spent.get(subject, FREE)
        if stop:
            # What comes before it isn't charged either.
            taken, draws = 0, taken + draws
        spent_now = epsilon_at(spent + self._rate.cost(taken), budget.delta)
        asked = epsilon_at(self._rate.cost(draws), budget.delta)
        return BudgetError(subject, spent_now, asked, budget.epsilon)

    def _unpaid(self, subject: str, draws: int) -> int:
        return max(0, draws - self._paid.get(subject, NOTHING).draws)

    def write(self) -> None:
        """Add one charge for each subject that has to pay."""
        rows = [self._row(subject) for subject in self._taken if self._has_to_pay(subject)]
        if rows:
            self._connection.execute(insert(CHARGES), rows)

    def _has_to_pay(self, subject: str) -> bool:
        return subject not in self._paid or self._unpaid(subject, self._taken[subject].draws) > 0

    def _row(self, subject: str) -> dict[str, Any]:
        taken, last = self._taken[subject], self._last.get(subject)
        draws = self._unpaid(subject, taken.draws)
        records = max(0, taken.records - self._paid.get(subject, NOTHING).records)
        cost = self._rate.cost(draws)
        total = cost if last is None else added(total_of(last), cost)
        return {
            "subject": subject,
            "number": 1 if last is None else last.number + 1,
            "at": self._at,
            "run": self._run.name,
            "part": self._run.part,
            **self._rate._asdict(),
            "records": records,
            "draws": draws,
            "total_records": records + (0 if last is None else last.total_records),
            "total_draws": total.count,
            "total_epsilon": total.epsilon,
            "total_rho": total.rho,
            "total_epsilon_beside": total.epsilon_beside,
            "total_delta_beside": total.delta_beside,
        }


def accept(counter: Counter, asked: Asked, *, stop: bool) -> list[BudgetError | None]:
    """Take records where budgets allow, in order; return what refused each of them, if anything.

    With `stop` the first refusal is raised.
    """
    if all(counter.take(*one) for one in asked.whole()):
        return [None] * len(asked.subjects)
    counter.clear()
    return [_take(counter, asked, record, stop=stop) for record in range(len(asked.subjects))]


def _take(counter: Counter, asked: Asked, record: int, *, stop: bool) -> BudgetError | None:
    subject, draws = asked.subjects[record], asked.of(record)
    if counter.take(subject, draws):
        asked.take(record)
        return None
    refusal = counter.refusal(subject, draws, stop=stop)
    if stop:
        raise refusal
    return refusal


def time_after(at: float, newest: float) -> float:
    """Return the time of what is added: never before that of the newest."""
    if newest - at > CLOCK_SLIP:
        raise LedgerError(
            f"the clock is {newest - at:,.0f} s behind the ledger's newest entry: set it right; "
            "periods of budgets depend on it"
        )
    return max(at, newest)
