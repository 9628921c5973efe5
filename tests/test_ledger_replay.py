"""Replay: what a ledger wrote holds, and what somebody else wrote into it is found."""

# ruff: noqa: S608 (no part of these statements comes from outside)

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from deniable.budget.charging import Asked, Run
from deniable.budget.ledger import Ledger
from deniable.budget.limits import Budget
from deniable.budget.replay import MOST_SAID, Replay, replay
from ledgers import ONE, Clock, execute, pay

MIDDLE = "subject = 'ann' AND number = 2"
COPY = (
    "INSERT INTO deniable_charges (subject, number, at, run, part, mechanism, relation, records, "
    "draws, epsilon, delta, rho, total_records, total_draws, total_epsilon, total_rho, "
    "total_epsilon_beside, total_delta_beside) SELECT {} FROM deniable_charges WHERE " + MIDDLE
)
ROW = (
    "subject, {}, at, run, part, mechanism, relation, records, draws, epsilon, delta, rho, "
    "total_records, total_draws, total_epsilon, total_rho, total_epsilon_beside, total_delta_beside"
)


def changed(setting: str, where: str = MIDDLE) -> str:
    return f"UPDATE deniable_charges SET {setting} WHERE {where}"


TAMPERED = {
    "fewer draws": changed("draws = 1"),
    "more draws": changed("draws = 1000000"),
    "negative draws": changed("draws = -2"),
    "a smaller epsilon": changed("epsilon = epsilon / 2"),
    "an epsilon a little smaller": changed("epsilon = epsilon - 1e-15"),
    "a negative epsilon": changed("epsilon = -epsilon"),
    "a delta instead": changed("delta = 1e-9"),
    "another rho": changed("rho = 0"),
    "fewer records": changed("records = 0"),
    "a smaller total": changed("total_epsilon = total_epsilon - 1"),
    "a smaller last total": changed("total_epsilon = 0", "subject = 'ann' AND number = 3"),
    "a larger total": changed("total_draws = total_draws + 1"),
    "a total of nothing": changed("total_rho = 0"),
    "a total beside": changed("total_delta_beside = 0.5"),
    "fewer records in all": changed("total_records = total_records - 1"),
    "an earlier time": changed("at = at - 1000"),
    "a later time": changed("at = at + 1000"),
    "a last time in the future": changed("at = at + 10000000", "subject = 'ann' AND number = 3"),
    "no end of time": changed("at = 9e999", "subject = 'ann' AND number = 3"),
    "a time before all": changed("at = -1"),
    "a row taken out": f"DELETE FROM deniable_charges WHERE {MIDDLE}",
    "the first row taken out": "DELETE FROM deniable_charges WHERE subject='ann' AND number = 1",
    "a row given to another": changed("subject = 'eve'"),
    "two subjects' rows swapped": "; ".join(
        changed(f"subject = '{new}'", f"number = 2 AND subject = '{old}'")
        for old, new in (("ann", "nobody"), ("bob", "ann"), ("nobody", "bob"))
    ),
    "a row put in between": COPY.format(ROW.format(20)),
    "a row put at the end": COPY.format(ROW.format(4)),
    "another number": changed("number = 7", "subject = 'ann' AND number = 3"),
    "a budget that was smaller": "UPDATE deniable_budgets SET epsilon = 1 WHERE subject IS NULL",
    "a budget that was set earlier": "UPDATE deniable_budgets SET at = 1 WHERE epsilon = 8",
    "budgets in another order": "UPDATE deniable_budgets SET at = 2 * at WHERE epsilon = 9",
}


@pytest.fixture
def written(ledger: Ledger, clock: Clock) -> Iterator[Ledger]:
    """A ledger with some charges of two subjects, and budgets that held at different times."""
    ledger.set_budget(Budget(9.0))
    for part, counts in enumerate(([3, 1], [2, 4], [3, 2])):
        clock.at += 10.0
        assert ledger.charge(Asked(["ann", "bob"], counts), ONE, Run("run", part)) == [None] * 2
    clock.at += 10.0
    ledger.set_budget(Budget(8.0))
    assert pay(ledger, "bob", 1, 100)
    yield ledger


def found_in(ledger: Ledger) -> Replay:
    return replay(ledger)


def test_an_untouched_ledger_adds_up(written: Ledger) -> None:
    found = found_in(written)
    assert (found.problems, found.more, found.holds) == ([], 0, True)
    assert (found.subjects, found.charges, found.draws) == (2, 7, 16)


@pytest.mark.parametrize("how", TAMPERED)
def test_every_single_change_is_found(written: Ledger, place: str, how: str) -> None:
    execute(place, TAMPERED[how].replace("9e999", "'Infinity'" if "://" in place else "9e999"))
    found = found_in(written)
    assert not found.holds
    assert all("\n" not in problem for problem in found.problems)


def test_a_draw_beyond_the_budget_is_found_however_well_it_is_written(
    written: Ledger, place: str
) -> None:
    """Someone adds a charge to the end of ann's, with totals as they should be."""
    row = ROW.format(4).replace("total_draws, total_epsilon, total_rho", "10, 10.0, 5.0")
    row = row.replace("total_records", "4").replace(" draws", " 2")
    statement = COPY.format(row)
    execute(place, statement.replace("number = 2", "number = 3"))
    [problem] = found_in(written).problems
    assert problem.endswith("it overspends: 10 of epsilon 9 at delta 0")


def test_text_where_a_number_should_be_is_found(tmp_path, clock: Clock) -> None:
    """SQLite keeps whatever it is given."""
    place = str(tmp_path / "l.db")
    with Ledger(place) as ledger:
        for part in range(3):
            pay(ledger, "ann", 1, part)
        for column in ("draws", "epsilon", "at", "total_rho"):
            execute(place, changed(f"{column} = 'many'"))
            assert "it holds what is no number" in found_in(ledger).problems[0]


def test_not_every_problem_of_many_is_said(ledger: Ledger, place: str) -> None:
    for part in range(30):
        pay(ledger, "ann", 1, part)
    execute(place, changed("epsilon = 0.5", "number > 0"))
    found = found_in(ledger)
    assert len(found.problems) == MOST_SAID
    assert found.more == 10


def test_one_moment_is_replayed_while_others_write(ledger: Ledger, place: str) -> None:
    """Budgets are raised, and charged up to, by another process all the while."""
    program = """
import sys
from deniable.budget.ledger import *
with Ledger(sys.argv[1]) as ledger:
    for part in range(1000000):
        ledger.set_budget(Budget(float(part + 1)))
        assert ledger.charge(Asked(["ann"], [1]), Rate(1.0), Run("run", part)) == [None]
        print(part, flush=True)
"""
    command = [sys.executable, "-c", program, place]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as other:
        try:
            assert other.stdout is not None
            seen = [found_in(ledger)]
            while seen[-1].charges < 30:
                assert other.stdout.readline()
                seen.append(found_in(ledger))
        finally:
            other.kill()
    assert all(found.problems == [] for found in seen)


def test_budgets_and_charges_are_read_as_of_one_moment(ledger: Ledger, place: str) -> None:
    ledger.set_budget(Budget(1.0))
    assert pay(ledger, "ann", 1)
    with ledger.history() as (_, budgets, charges), Ledger(place) as other:
        other.set_budget(Budget(2.0))
        assert pay(other, "ann", 1, 1)
        assert len(budgets) == len(list(charges)) == 1


def test_whoever_reads_slowly_keeps_nobody_waiting(ledger: Ledger, place: str) -> None:
    for part in range(3):
        pay(ledger, "ann", 1, part)
    read = ledger.charges()
    next(read)
    with Ledger(place) as other:
        assert pay(other, "ann", 1, 3)
        other.set_budget(Budget(9.0))
        # And what is read is of the moment at which the reading began.
        assert sum(1 for _ in read) == 2
        assert sum(1 for _ in ledger.charges()) == 4


def test_a_long_history_is_replayed_in_a_moment(ledger: Ledger, place: str, clock: Clock) -> None:
    """Neither a subject with many charges nor many subjects with budgets take the square."""
    rows = 20_000
    ledger.set_budget(Budget(1e9, period=1e6))
    clock.at += rows
    pay(ledger, "ann", 1, 0)
    numbers = (
        f"(WITH RECURSIVE c(n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM c WHERE n < {rows}) "
        "SELECT n FROM c) AS numbers"
    )
    copy = ROW.format("n").replace("total_draws, total_epsilon, total_rho", "n, n, n * 0.5")
    copy = COPY.format(copy.replace("total_records", "n"))
    execute(place, copy.replace("WHERE " + MIDDLE, f", {numbers} WHERE number = 1"))
    execute(
        place,
        "INSERT INTO deniable_budgets (subject, at, epsilon, delta) "
        f"SELECT 'subject ' || n, 1, 1, 0 FROM {numbers}",
    )
    found = found_in(ledger)
    assert (found.problems, found.charges) == ([], rows)
