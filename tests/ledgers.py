"""What tests of ledgers share: rates, short ways to pay and to look, and direct access."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import NullPool, create_engine, text

from deniable.budget.charging import Asked, Rate, Run
from deniable.budget.ledger import Ledger
from deniable.budget.replay import replay

# One draw that loses at most 1, as a pure release of an unknown kind states it.
ONE = Rate(1.0, rho=0.5)


class Clock:
    """A clock that goes as it is told."""

    def __init__(self) -> None:
        self.at = 1_000_000_000.0

    def __call__(self, connection: object) -> float:
        return self.at


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of every ledger in this process."""
    made = Clock()
    for module in ("charging", "ledger"):
        monkeypatch.setattr(f"deniable.budget.{module}.now", made)
    return made


@pytest.fixture
def ledger(place: str) -> Iterator[Ledger]:
    """A new ledger, in each of the databases."""
    with Ledger(place) as opened:
        yield opened


def pay(
    ledger: Ledger,
    subject: str,
    draws: int,
    part: int = 0,
    *,
    rate: Rate = ONE,
    run: str = "run",
    stop: bool = False,
) -> bool:
    """Charge one record; say whether it is paid for."""
    return ledger.charge(Asked([subject], [draws]), rate, Run(run, part), stop=stop) == [None]


def spent(ledger: Ledger) -> dict[str, float]:
    """What each subject has spent."""
    return {one.subject: one.epsilon for one in ledger.balances()}


def draws(ledger: Ledger) -> dict[str, int]:
    """How many draws each subject ever paid for, of a ledger that adds up."""
    assert replay(ledger).problems == []
    found: dict[str, int] = {}
    for charge in ledger.charges():
        found[charge.subject] = found.get(charge.subject, 0) + charge.draws
    return found


def execute(place: str, statement: str, **values: Any) -> None:
    """Do to the database what a ledger never would."""
    url = place if "://" in place else f"sqlite:///{place}"
    with create_engine(url, poolclass=NullPool).begin() as connection:
        for one in statement.split(";"):
            connection.execute(text(one), values)


def clear(ledger: Ledger) -> None:
    """Begin anew."""
    with ledger.transaction() as connection:
        connection.execute(text("DELETE FROM deniable_charges"))
        connection.execute(text("DELETE FROM deniable_budgets"))
