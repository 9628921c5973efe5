"""What a ledger is asked: last charges, budgets, and what a part of a run has paid."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Mapping
from dataclasses import replace
from math import inf, nextafter
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, Select, and_, func, or_, select

from deniable.budget.cost import Cost
from deniable.budget.database import listed
from deniable.budget.limits import Budget
from deniable.budget.schema import BUDGETS, CHARGES

Charge = Row[Any]


class Limits(dict[str | None, Budget]):
    """Budgets by subject, that of everyone else by None; and when the newest of them was set."""

    newest = 0.0

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


def added(total: Cost, cost: Cost) -> Cost:
    """Return a running total after one cost more: however large it is, it grows by no less."""
    return replace(
        total + cost,
        epsilon=_sum(total.epsilon, cost.epsilon),
        rho=_sum(total.rho, cost.rho),
        epsilon_beside=_sum(total.epsilon_beside, cost.epsilon_beside),
        delta_beside=_sum(total.delta_beside, cost.delta_beside),
    )


def _sum(one: float, other: float) -> float:
    """Return a sum that is never below the true one."""
    low, high = sorted((one, other))
    found = low + high
    # What rounding took away is exactly this (Dekker 1971).
    return nextafter(found, inf) if low - (found - high) > 0.0 else found


def limits_of(connection: Connection, subjects: Collection[str] | None = None) -> Limits:
    """Return the budgets of these subjects (of all if None), and of everyone else."""
    newest = select(func.max(BUDGETS.c.id)).group_by(BUDGETS.c.subject)
    if subjects is not None:
        named = select(listed(connection, subjects).c.value)
        newest = newest.where(or_(BUDGETS.c.subject.is_(None), BUDGETS.c.subject.in_(named)))
    rows = _budgets(connection, select(BUDGETS).where(BUDGETS.c.id.in_(newest)))
    found = Limits()
    for row in rows:
        found[row.subject] = row.budget
        found.newest = max(found.newest, row.at)
    return found


def every_budget(connection: Connection) -> list[BudgetRow]:
    """Return every budget that was ever set, in order."""
    return list(_budgets(connection, select(BUDGETS).order_by(BUDGETS.c.id)))


def _budgets(connection: Connection, query: Select[Any]) -> Iterator[BudgetRow]:
    for row in connection.execute(query):
        yield BudgetRow(row.subject, row.at, Budget(row.epsilon, row.delta, row.period))


def every_charge(connection: Connection) -> Generator[Charge, None, None]:
    """Yield every charge, subject by subject, in order."""
    query = select(CHARGES).order_by(CHARGES.c.subject, CHARGES.c.number)
    with connection.execution_options(yield_per=10_000).execute(query) as rows:
        yield from rows


def newest_time(connection: Connection, subject: str | None) -> float:
    """Return the time of the newest charge of a subject (of all if None), and of any budget."""
    charged = select(func.max(CHARGES.c.at))
    if subject is not None:
        charged = charged.where(CHARGES.c.subject == subject)
    times = (connection.execute(one).scalar() for one in (charged, select(func.max(BUDGETS.c.at))))
    return max(float(at or 0.0) for at in times)


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


def newest_charges(subject: str | None = None) -> Select[Any]:
    """Return the query for the last charge of every subject, or of one."""
    newest = select(func.max(CHARGES.c.number).label("number"), CHARGES.c.subject)
    if subject is not None:
        newest = newest.where(CHARGES.c.subject == subject)
    last = newest.group_by(CHARGES.c.subject).subquery()
    same = and_(CHARGES.c.subject == last.c.subject, CHARGES.c.number == last.c.number)
    return select(CHARGES).join(last, same).order_by(CHARGES.c.subject)


def charged_by(connection: Connection, run: str) -> tuple[int, str | None]:
    """Return how many subjects a run has charged, and whose total was the largest."""
    of_run = CHARGES.c.run == run
    count = connection.execute(select(func.count(CHARGES.c.subject.distinct())).where(of_run))
    largest = select(CHARGES.c.subject).where(of_run)
    order = (CHARGES.c.total_epsilon.desc(), CHARGES.c.total_rho.desc(), CHARGES.c.id)
    return count.scalar_one(), connection.execute(largest.order_by(*order).limit(1)).scalar()


def paid_for(connection: Connection, same: Mapping[str, Any], *, draws: bool) -> dict[str, Part]:
    """Return what was paid for with charges like this one, by subject; no draws if told so."""
    sums = (func.sum(CHARGES.c.records), func.sum(CHARGES.c.draws))
    query = select(CHARGES.c.subject, *sums).group_by(CHARGES.c.subject)
    alike = (CHARGES.c[name] == value for name, value in same.items())
    rows = connection.execute(query.where(*alike))
    return {
        subject: Part(int(records), int(count) if draws else 0) for subject, records, count in rows
    }


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
