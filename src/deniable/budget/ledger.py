"""The ledger: what every subject has been charged, kept in SQL, and the budget that is enforced.

A charge and its refusal are one transaction in which the subjects are locked: what is spent is
read, compared with the budget, and the charge is added, or nothing is. Only then is anything
sampled. A process that is killed in between has paid for what it never showed: too much is charged
then, never too little, and a run that is resumed doesn't pay for the same part again (unless it
remembers words: what the part has remembered is free, and the rest is paid for anew).

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Ledger(f"{folder}/ledger.db") as ledger:
    ...     ledger.set_budget(Budget(5.0))
    ...     three = Asked(["ann"], [3])
    ...     refused = [ledger.charge(three, Rate(1.0), Run("example", part)) for part in (0, 1)]
    ...     refused[0], refused[1][0].spent, ledger.balances()[0].epsilon
    ([None], 3.0, 3.0)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from math import inf, isfinite, nextafter
from pathlib import Path
from typing import Any, Self

from sqlalchemy import Connection, insert

from deniable.budget.charging import Asked, Counter, Rate, Run, accept, time_after
from deniable.budget.cost import Cost
from deniable.budget.database import lock, lock_all, now, open_engine, reading
from deniable.budget.failures import reported, shown
from deniable.budget.limits import Budget, epsilon_at
from deniable.budget.queries import (
    BudgetRow,
    Charge,
    charged_by,
    every_budget,
    every_charge,
    limits_of,
    newest_charges,
    newest_time,
    spent_within,
)
from deniable.budget.schema import BUDGETS
from deniable.errors import BudgetError, LedgerError

LONGEST_NAME = 1000
# What an index of PostgreSQL takes.
MOST_BYTES = 2500


@dataclass(frozen=True)
class Balance:
    """What a subject has spent, and may spend."""

    subject: str
    records: int
    cost: Cost
    budget: Budget | None

    @property
    def epsilon(self) -> float:
        """What is spent, at the budget's delta."""
        return epsilon_at(self.cost, self.delta)

    @property
    def delta(self) -> float:
        """The delta at which epsilon is stated."""
        return self.cost.delta_beside if self.budget is None else self.budget.delta

    def standing(self) -> dict[str, Any]:
        """Return what a certificate says: never whose balance it is."""
        budget = None if self.budget is None else asdict(self.budget)
        largest = {"draws": self.cost.count, "epsilon": self.epsilon, "delta": self.delta}
        return {"largest": largest, "budget": budget}

    def to_dict(self) -> dict[str, Any]:
        """Return the balance as plain data."""
        budget = self.budget
        return {
            "subject": self.subject,
            # JSON knows no infinity: noise that is Gaussian has no epsilon without a delta.
            "epsilon": self.epsilon if isfinite(self.epsilon) else None,
            "delta": self.delta,
            "charges": self.records,
            "draws": self.cost.count,
            "budget": None if budget is None else budget.epsilon,
            "budget_delta": None if budget is None else budget.delta,
            "period": None if budget is None else budget.period,
        }


class Ledger:
    """A ledger, open. A context manager: leave it to close the database."""

    def __init__(self, place: str | Path) -> None:
        self.place = str(place)
        self._engine = open_engine(place)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Ledger of {self._engine.dialect.name}>"

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    @property
    def name(self) -> str:
        """What messages call it; never with a password."""
        return shown(self._engine.url)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """All or nothing; an error of the database is one line."""
        with reported(self._engine.url), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Look at one moment of the ledger, without keeping anyone from writing."""
        with reported(self._engine.url), reading(self._engine) as connection:
            yield connection

    def charge(
        self, asked: Asked, rate: Rate, run: Run, *, stop: bool = False
    ) -> list[BudgetError | None]:
        """Charge each record's subject for its draws, in order, where its budget allows.

        Return what refused each record: None if it is paid for. With `stop` a refusal is raised,
        and nothing is charged.
        """
        named = list(dict.fromkeys(asked.subjects))
        for subject in named:
            check_subject(subject)
        check_name(run.name, "a run's")
        rate.check()
        with self.transaction() as connection:
            lock(connection, named)
            counter = Counter(connection, asked, rate, run)
            accepted = accept(counter, asked, stop=stop)
            counter.write()
        return accepted

    def set_budget(self, budget: Budget, subject: str | None = None) -> None:
        """Set what a subject may spend, or everyone who has no budget of his own."""
        if subject is not None:
            check_subject(subject)
        with self.transaction() as connection:
            # Whoever charges sees it wholly or not at all; its time is after that of every charge
            # before it, and never after that of one that follows.
            lock_all(connection)
            newest = nextafter(newest_time(connection, subject), inf)
            at = time_after(now(connection), newest)
            connection.execute(insert(BUDGETS), {"subject": subject, "at": at, **vars(budget)})

    def ensure_budget(self, budget: Budget) -> None:
        """Make this the budget of everyone who has none of his own, unless it is already."""
        with self.reading() as connection:
            same = limits_of(connection, []).get(None) == budget
        if not same:
            self.set_budget(budget)

    def charged_by(self, run: str) -> tuple[int, str | None]:
        """Return how many subjects a run has charged, and whose total is the largest."""
        with self.reading() as connection:
            return charged_by(connection, run)

    def balances(self, subject: str | None = None) -> list[Balance]:
        """Return what everyone (or one subject) has spent within the period of their budgets."""
        with self.reading() as connection:
            rows = connection.execute(newest_charges(subject))
            last, at = {row.subject: row for row in rows}, now(connection)
            limits = limits_of(connection, None if subject is None else [subject])
            spent = spent_within(connection, last, limits, at)
            return [
                Balance(name, row.total_records, spent[name], limits.of(name))
                for name, row in last.items()
            ]

    def budgets(self) -> list[BudgetRow]:
        """Return every budget that was ever set, in order."""
        with self.reading() as connection:
            return every_budget(connection)

    def charges(self) -> Iterator[Charge]:
        """Yield every charge, subject by subject, in order."""
        with self.reading() as connection:
            yield from every_charge(connection)

    @contextmanager
    def history(self) -> Iterator[tuple[float, list[BudgetRow], Iterator[Charge]]]:
        """Give the time, every budget and every charge, as they were at one moment."""
        with self.reading() as connection, closing(every_charge(connection)) as charges:
            yield now(connection), every_budget(connection), charges


def check_subject(subject: object) -> None:
    """Refuse what can't name a subject; never say what it was."""
    if not isinstance(subject, str) or not subject.strip():
        raise LedgerError("a subject is a name that is not empty")
    check_name(subject, "a subject's")


def check_name(text: str, whose: str) -> None:
    """Refuse a name that not every database can keep."""
    size = _bytes(text)
    if len(text) > LONGEST_NAME or not 0 <= size <= MOST_BYTES:
        raise LedgerError(
            f"{whose} name has at most {LONGEST_NAME:,} characters (and {MOST_BYTES:,} bytes), all "
            "of them real ones"
        )


def _bytes(text: str) -> int:
    """Return how many bytes a text has, or -1 where it can't be stored."""
    try:
        return -1 if "\0" in text else len(text.encode("utf-8"))
    except UnicodeEncodeError:
        return -1
