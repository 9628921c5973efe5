"""Runs that pay from a ledger: refusals, breaks and kills lose nothing, and nobody pays twice."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from commands import run, toy_space
from deniable.budget.ledger import Ledger
from deniable.budget.replay import replay
from deniable.cli import _run
from postgres import PASSWORD, Server, private_server

# Runs the command line in small batches, and ends itself at the named moment of the given batch.
PROGRAM = """
import os, signal, sys, time
from pathlib import Path
from deniable.budget.ledger import Ledger
from deniable.cli import main
from deniable.files.output import FileWriter
from deniable.files.tables import TableReader
from deniable.plan import Plan

moment, number, *arguments = sys.argv[1:]
seen = 0
batches = TableReader.batches
TableReader.batches = lambda reader, characters=0: batches(reader, 60)

def around(owner, name):
    old = getattr(owner, name)
    def new(*given, **named):
        global seen
        end_here("before " + name)
        result = old(*given, **named)
        end_here("after " + name)
        return result
    setattr(owner, name, new)

def end_here(here):
    global seen
    if here == moment:
        seen += 1
        if seen == int(number):
            crash() if "CRASH" in os.environ else os.kill(os.getpid(), signal.SIGKILL)

def crash():
    # Asks the keeper of the database to let it end at once.
    folder = Path(os.environ["CRASH"])
    (folder / "down").touch()
    while (folder / "ready").exists():
        time.sleep(0.02)

around(Ledger, "charge")
around(Plan, "draw")
around(FileWriter, "write")
around(FileWriter, "commit")
main(arguments)
"""
MOMENTS = [
    ("before charge", 1),
    ("after charge", 1),
    ("after charge", 3),
    ("after draw", 2),
    ("before write", 3),
    ("after write", 2),
    ("before commit", 1),
]
WORDS = 5
RECORDS = 24
SUBJECTS = ("ann", "bob", "eve")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    toy_space(tmp_path)
    rows = [f"{SUBJECTS[i % 3]},{'red blue the w1 w2'}\n" for i in range(RECORDS)]
    (tmp_path / "in.csv").write_text("who,note\n" + "".join(rows))
    return tmp_path


def arguments(folder: Path, *more: object) -> list[str]:
    """The command, with epsilon 1 for each word."""
    named = ["sanitize", folder / "in.csv", "-o", folder / "out.csv", "--column", "note"]
    mechanism = ["--mechanism", "randomised-response", "--epsilon", "1", "--set", "K=5"]
    ledger = ["--space", folder / "toy.space", "--ledger", folder / "l.db"]
    return [str(one) for one in (*named, *mechanism, *ledger, *more)]


def small_batches(
    folder: Path, *more: object, moment: str = "never", number: int = 0
) -> subprocess.CompletedProcess[str]:
    """Run the command in batches of a few records, with a kill at a moment."""
    given = [sys.executable, "-c", PROGRAM, moment, str(number)]
    named = ["--subject-column", "who", *more]
    command = [*given, *arguments(folder, *named)]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)


def draws(folder: Path) -> dict[str, int]:
    """What everybody was charged for, of a ledger that adds up."""
    with Ledger(folder / "l.db") as ledger:
        assert replay(ledger).problems == []
        return {one.subject: one.cost.count for one in ledger.balances()}


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "out.csv").open(newline="") as file:
        return list(csv.DictReader(file))


EVERYTHING = dict.fromkeys(SUBJECTS, WORDS * RECORDS // 3)


@pytest.mark.parametrize(("moment", "number"), MOMENTS)
def test_a_killed_run_is_paid_for_once(folder: Path, moment: str, number: int) -> None:
    killed = small_batches(folder, moment=moment, number=number)
    assert killed.returncode == -9, killed.stderr
    assert not (folder / "out.csv").exists()
    # Too much may be charged after a kill (nothing was shown for it), never too little.
    before = draws(folder)
    assert all(count <= EVERYTHING[subject] for subject, count in before.items())
    resumed = small_batches(folder, "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert draws(folder) == EVERYTHING
    assert [row["who"] for row in rows(folder)] == [SUBJECTS[i % 3] for i in range(RECORDS)]
    assert all(len(row["note"].split()) == WORDS for row in rows(folder))


@pytest.mark.parametrize("moment", ["before charge", "after charge"])
def test_a_database_that_goes_down_loses_nothing(
    folder: Path, moment: str, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    with private_server() as mine:
        url = mine.make_database()
        more = ("--ledger", url)
        with monkeypatch.context() as patch:
            patch.setenv("CRASH", str(mine._folder))
            broken = small_batches(folder, *more, moment=moment, number=3)
        assert broken.returncode == 2, broken.stderr
        [line] = broken.stderr.splitlines()
        assert "; start " in line
        assert "--resume goes on" in line
        assert PASSWORD not in line
        assert not (folder / "out.csv").exists()
        mine.start()
        resumed = small_batches(folder, *more, "--resume")
        assert resumed.returncode == 0, resumed.stderr
        with Ledger(url) as ledger:
            assert replay(ledger).problems == []
            spent = {one.subject: one.cost.count for one in ledger.balances()}
    assert spent == EVERYTHING
    assert len(rows(folder)) == RECORDS


def test_the_same_command_again_is_another_release(folder: Path) -> None:
    assert small_batches(folder).returncode == 0
    assert small_batches(folder).returncode == 0
    assert draws(folder) == {subject: 2 * count for subject, count in EVERYTHING.items()}


@pytest.mark.parametrize("workers", [1, 2])
def test_a_refusal_stops_the_run_and_it_goes_on_when_the_budget_is_raised(
    folder: Path, workers: int
) -> None:
    more = ("--budget", WORDS * 4, "--workers", workers)
    stopped = small_batches(folder, *more)
    assert stopped.returncode == 1
    [line] = stopped.stderr.splitlines()
    # Among several workers anybody may be the first.
    whose = "'ann'" if workers == 1 else "'(ann|bob|eve)'"
    said = f"the budget of {whose} refuses: 20 of epsilon 20 is spent, and 5 is asked"
    assert re.search(said, line)
    assert "--resume" in line
    assert not (folder / "out.csv").exists()
    raised = run("ledger", "set-budget", 1000, "--ledger", folder / "l.db")
    assert raised.returncode == 0
    assert small_batches(folder, "--resume", "--workers", workers).returncode == 0
    assert draws(folder) == EVERYTHING
    assert len(rows(folder)) == RECORDS


def test_a_run_refused_at_its_start_goes_on_beside_an_older_output(folder: Path) -> None:
    more = ("--subject-column", "who", "--budget", WORDS * RECORDS / 3)
    assert run(*arguments(folder, *more)).returncode == 0
    older = (folder / "out.csv").read_bytes()
    assert run(*arguments(folder, *more)).returncode == 1
    assert (folder / "out.csv").read_bytes() == older
    raised = run("ledger", "set-budget", 1000, "--ledger", folder / "l.db")
    assert raised.returncode == 0
    resumed = run(*arguments(folder, "--subject-column", "who", "--resume"))
    assert resumed.returncode == 0, resumed.stderr
    assert draws(folder) == {subject: 2 * count for subject, count in EVERYTHING.items()}
    # What is done can't be gone on with: it would be a third draw.
    assert run(*arguments(folder, "--subject-column", "who", "--resume")).returncode == 2


def test_refused_records_are_left_out_and_named(folder: Path) -> None:
    set_for_bob = (
        "ledger",
        "set-budget",
        2 * WORDS,
        "--subject",
        "bob",
        "--ledger",
        folder / "l.db",
    )
    assert run(*set_for_bob).returncode == 0
    done = small_batches(
        folder, "--on-refusal", "skip", "--certificate", folder / "c.json", "--budget", 100
    )
    assert done.returncode == 1
    refusals = [line for line in done.stderr.splitlines() if "left out, " in line]
    assert len(refusals) == RECORDS // 3 - 2
    assert all("'bob'" in line and "10 of epsilon 10 is spent" in line for line in refusals)
    assert draws(folder) == EVERYTHING | {"bob": 2 * WORDS}
    assert [row["who"] for row in rows(folder)].count("bob") == 2
    certificate: dict[str, Any] = json.loads((folder / "c.json").read_text())
    assert certificate["subject"]["refused"] == len(refusals)
    assert certificate["subject"]["subjects"] == 3
    assert certificate["document"]["records"] == RECORDS - len(refusals)
    assert "bob" not in (folder / "c.json").read_text()
    assert run("verify", folder / "c.json", "--space", folder / "toy.space").returncode == 0


def test_a_whole_file_can_be_about_one_subject(folder: Path) -> None:
    done = run(*arguments(folder, "--subject", "ann"))
    assert done.returncode == 0
    shown = run("ledger", "show", folder / "l.db", "--json")
    [balance] = json.loads(shown.stdout)
    assert balance["subject"] == "ann"
    assert balance["charges"] == RECORDS
    assert balance["draws"] == WORDS * RECORDS
    assert balance["epsilon"] == pytest.approx(WORDS * RECORDS, rel=1e-6)
    assert balance["budget"] is None


WRONG: list[tuple[list[object], str]] = [
    (["--subject-column", "patient"], "no column 'patient'"),
    (["--subject-column", "note"], "'note'"),
    ([], "--ledger charges somebody"),
    (["--subject", "ann", "--subject-column", "who"], "--ledger charges somebody"),
    (["--subject", ""], "a subject is a name that is not empty"),
    (["--subject", "ann", "--budget", "nan"], "a budget must be finite"),
    (["--subject", "ann", "--budget", "-1"], "a budget must be finite and at least 0"),
    (["--subject", "ann", "--budget", "5", "--delta", "1"], "delta must be at least 0 and below 1"),
    (["--subject", "ann", "--budget", "5", "--period", "soon"], "a period is a number and one of"),
    (["--subject", "ann", "--period", "30d"], "--period and --delta belong to a budget"),
    (["--subject", "ann", "--remember"], "remembering words needs a key"),
    (["--subject", "ann", "--key-file", "k"], "--key-file is for --remember"),
    (["--subject", "ann", "--strategy", "dataset"], "a ledger can't be charged under strategy"),
    (["--subject", "ann", "--ledger", "mysql://h/d"], "is no ledger's URL"),
    (["--subject", "ann", "--ledger", "/no/such/folder/l.db"], "its folder does not exist"),
]


@pytest.mark.parametrize(("more", "said"), WRONG)
def test_bad_input_is_one_line_and_writes_nothing(
    folder: Path,
    more: list[object],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("DENIABLE_KEY", raising=False)
    assert _run(arguments(folder, *more)) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert said in line
    assert not (folder / "out.csv").exists()
    if (folder / "l.db").exists():
        assert draws(folder) == {}


def test_options_of_budgets_need_a_ledger(folder: Path) -> None:
    done = run("sanitize", folder / "in.csv", "--column", "note", "--budget", 5)
    assert done.returncode == 2
    assert b"--budget needs a ledger to be kept in: add --ledger FILE" in done.stderr
