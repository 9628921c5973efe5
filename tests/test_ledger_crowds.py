"""Many processes at one ledger: nobody is overspent, nothing that was accepted is lost.

Not when they all want the last of a budget, not when they are killed, not when the database is.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import crowd
from crowd import LARGEST, MEMBERS, SUBJECTS
from deniable.budget.ledger import Ledger
from deniable.budget.limits import Budget
from deniable.budget.replay import replay
from postgres import private_server, programs

BUDGET = 60
# A member, one of its batches, and what was accepted of it.
Batches = dict[tuple[int, int], dict[str, int]]


@dataclass
class Crowd:
    """A crowd at work."""

    process: subprocess.Popen[str]
    folder: Path
    batches: int
    ids: list[int]

    def told(self, number: int) -> list[dict[str, Any]]:
        """What a member has written down so far."""
        log = self.folder / str(number)
        lines = log.read_bytes().splitlines(keepends=True) if log.exists() else []
        return [json.loads(line) for line in lines if line.endswith(b"\n")]

    def wait(self, done: Callable[[], bool]) -> None:
        while not done():
            assert self.process.poll() is None
            time.sleep(0.002)

    def kill(self, number: int, after: int) -> None:
        """Kill a member as soon as it was told of so many batches."""
        self.wait(lambda: len(self.told(number)) >= after)
        os.kill(self.ids[number], signal.SIGKILL)

    def saw_it(self, number: int) -> bool:
        """Whether a member was told that the database is away, or has nothing more to do."""
        return any(
            "error" in line or line["part"] == self.batches - 1 for line in self.told(number)
        )

    def errors(self) -> list[dict[str, Any]]:
        """What went wrong for anybody."""
        told = (line for number in range(MEMBERS) for line in self.told(number))
        return [line for line in told if "error" in line]

    def finish(self) -> list[int]:
        """Wait for everybody; return how they ended."""
        out, _ = self.process.communicate(timeout=120)
        assert self.process.returncode == 0
        return [int(one) for one in out.split()]

    def accepted(self) -> Batches:
        """Everything that anybody was told is paid for."""
        return {
            (number, line["part"]): line["accepted"]
            for number in range(MEMBERS)
            for line in self.told(number)
            if "part" in line
        }


@contextmanager
def at_work(place: str, folder: Path, batches: int) -> Iterator[Crowd]:
    command = [sys.executable, crowd.__file__, place, str(folder), str(batches)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        ids = [int(one) for one in process.stdout.readline().split()]
        try:
            yield Crowd(process, folder, batches, ids)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "told"
    made.mkdir()
    return made


def charged(ledger: Ledger) -> Batches:
    """What the ledger says, of one that adds up."""
    found = replay(ledger)
    assert found.problems == []
    batches: Batches = {}
    for charge in ledger.charges():
        batches.setdefault((int(charge.run), charge.part), {})[charge.subject] = charge.draws
    return batches


def full(ledger: Ledger) -> None:
    """Everybody's budget is used up, but for what no record would fit into."""
    spent = [one.epsilon for one in ledger.balances()]
    assert len(spent) == SUBJECTS
    assert all(BUDGET - LARGEST < one <= BUDGET for one in spent)


def not_empty(batches: Batches) -> Batches:
    return {key: accepted for key, accepted in batches.items() if accepted}


def test_a_crowd_fills_every_budget_and_overspends_none(place: str, folder: Path) -> None:
    with Ledger(place) as ledger:
        ledger.set_budget(Budget(float(BUDGET)))
        with at_work(place, folder, batches=6) as members:
            assert members.finish() == [0] * MEMBERS
        assert not members.errors()
        assert charged(ledger) == not_empty(members.accepted())
        full(ledger)


def test_budgets_may_be_set_while_a_crowd_charges(place: str, folder: Path) -> None:
    """Each charge is within the budget of its moment: replay compares all of them."""
    with Ledger(place) as ledger:
        with at_work(place, folder, batches=6) as members:
            for ceiling in count(5):
                ledger.set_budget(Budget(float(ceiling)))
                ledger.set_budget(Budget(1.0))
                if members.process.poll() is not None:
                    break
            assert members.finish() == [0] * MEMBERS
        assert not members.errors()
        assert charged(ledger) == not_empty(members.accepted())


def test_what_was_accepted_survives_those_who_are_killed(place: str, folder: Path) -> None:
    with Ledger(place) as ledger:
        ledger.set_budget(Budget(float(BUDGET)))
        with at_work(place, folder, batches=12) as members:
            for number in range(0, MEMBERS, 2):
                members.kill(number, after=number // 4)
            ended = members.finish()
    killed = {number for number, how in enumerate(ended) if how == signal.SIGKILL}
    assert killed
    assert not members.errors()
    assert all(how == 0 for number, how in enumerate(ended) if number not in killed)
    with Ledger(place) as ledger:
        found, told = charged(ledger), not_empty(members.accepted())
        full(ledger)
    assert {key: accepted for key, accepted in found.items() if key in told} == told
    # Somebody who is killed can have paid for one batch that he was never told of.
    untold = [number for number, part in found if (number, part) not in told]
    assert len(untold) == len(set(untold))
    assert set(untold) <= killed


def test_what_was_accepted_survives_a_server_that_dies(folder: Path, request: Any) -> None:
    if programs() is None:
        request.getfixturevalue("server")
    with private_server() as server:
        place = server.make_database()
        with Ledger(place) as ledger:
            ledger.set_budget(Budget(float(BUDGET)))
        with at_work(place, folder, batches=12) as members:
            members.wait(lambda: all(members.told(number) for number in range(3)))
            server.crash()
            members.wait(lambda: all(members.saw_it(number) for number in range(MEMBERS)))
            server.start()
            assert members.finish() == [0] * MEMBERS
        assert members.errors()
        for line in members.errors():
            assert line["resumable"]
            assert "\n" not in line["error"]
            assert line["error"].startswith("postgresql+psycopg://keeper:***@127.0.0.1:")
        with Ledger(place) as ledger:
            assert charged(ledger) == not_empty(members.accepted())
            full(ledger)
