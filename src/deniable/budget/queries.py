"""What a ledger is asked: last charges, budgets, and what a part of a run has paid."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, Select, and_, func, or_, select

from deniable.budget.cost import Cost
from deniable.budget.database import listed
from deniable.budget.limits import Budget
from deniable.budget.schema import BUDGETS, CHARGES

Charge = Row[Any]


class Limits(dict[str | None, Budget]):
    """Budgets by subject; that of everyone else by None."""

    def of(self, subject: str) -> Budget | None:
        """Return the budget that holds for a subject, if there is one."""
        return self.get(subject, self.get(None))


class BudgetRow(NamedTuple):
    """A budget as it was set: for whom (for everyone if None), and when."""

    subject: str | None
    at: float
    budget: Budget


class Part(NamedTuple):
    """What one part of a run has paid for."""

    records: int
    draws: int


def total_of(row: Charge) -> Cost:
    """Return the running total that a charge states."""
    return Cost(
        row.total_draws,
        epsilon=row.total_epsilon,
        rho=row.total_rho,
        epsilon_beside=row.total_epsilon_beside,
        delta_beside=row.total_delta_beside,
    )


def limits_of(connection: Connection, subjects: Collection[str] | None = None) -> Limits:
    """Return the budgets of these subjects (of all if None), and of everyone else."""
    newest = select(func.max(BUDGETS.c.id)).group_by(BUDGETS.c.subject)
    if subjects is not None:
        named = select(listed(connection, subjects).c.value)
        newest = newest.where(or_(BUDGETS.c.subject.is_(None), BUDGETS.c.subject.in_(named)))
    rows = connection.execute(select(BUDGETS).where(BUDGETS.c.id.in_(newest)))
    return Limits({row.subject: Budget(row.epsilon, row.delta, row.period) for row in rows})


def last_charges(
    connection: Connection, subjects: Collection[str], until: float | None = None
) -> dict[str, Charge]:
    """Return the last charge of each of these subjects, or the last one up to a time."""
    names = listed(connection, subjects)
    older = CHARGES.alias("older")
    same = older.c.subject == names.c.value
    if until is not None:
        same = and_(same, older.c.at <= until)
    number = select(func.max(older.c.number)).where(same).scalar_subquery()
    last = and_(CHARGES.c.subject == names.c.value, CHARGES.c.number == number)
    rows = connection.execute(select(CHARGES).select_from(names.join(CHARGES, last)))
    return {row.subject: row for row in rows}


def newest_charges(subject: str | None = None, run: str | None = None) -> Select[Any]:
    """Return the query for the last charge of every subject, of one, or of those of a run."""
    newest = select(func.max(CHARGES.c.number).label("number"), CHARGES.c.subject)
    if subject is not None:
        newest = newest.where(CHARGES.c.subject == subject)
    if run is not None:
        charged = CHARGES.alias("charged")
        newest = newest.where(
            CHARGES.c.subject.in_(select(charged.c.subject).where(charged.c.run == run))
        )
    last = newest.group_by(CHARGES.c.subject).subquery()
    same = and_(CHARGES.c.subject == last.c.subject, CHARGES.c.number == last.c.number)
    return select(CHARGES).join(last, same).order_by(CHARGES.c.subject)


def paid_for(connection: Connection, run: str, part: int) -> dict[str, Part]:
    """Return what this part of a run has paid for, by subject."""
    sums = (func.sum(CHARGES.c.records), func.sum(CHARGES.c.draws))
    query = select(CHARGES.c.subject, *sums).group_by(CHARGES.c.subject)
    rows = connection.execute(query.where(CHARGES.c.run == run, CHARGES.c.part == part))
    return {subject: Part(int(records), int(draws)) for subject, records, draws in rows}


def spent_within(
    connection: Connection, charges: dict[str, Charge], limits: Limits, at: float
) -> dict[str, Cost]:
    """Return what each subject has spent within the period of its budget."""
    spent = {name: total_of(row) for name, row in charges.items()}
    periods: dict[float, set[str]] = {}
    for subject in spent:
        budget = limits.of(subject)
        if budget is not None and budget.period is not None:
            periods.setdefault(budget.period, set()).add(subject)
    for period, names in periods.items():
        for name, row in last_charges(connection, names, at - period).items():
            spent[name] = spent[name] - total_of(row)
    return spent
