"""Measure the ledger: charges a second of many processes at once, and composition of many charges.

    python bench/ledger.py            # prints the table (about two minutes)
    python bench/ledger.py --write    # and puts it into docs/performance.md

PostgreSQL is started for this in a folder of its own, with the settings it comes with, on the same
disk as SQLite's file (`BENCH_TMP` names another folder). What is counted is on disk.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Barrier
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parent.parent / "scripts"))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
import blocks
from deniable.budget import Pure, Release, account
from deniable.budget.charging import Asked, Rate, Run
from deniable.budget.ledger import Ledger
from deniable.budget.limits import Budget
from deniable.budget.replay import replay
from postgres import (  # type: ignore[import-not-found]  # tests are not type-checked
    private_server,
    programs,
)
from run import machine

PAGE = blocks.ROOT / "docs" / "performance.md"
NAME = "ledger"
PROCESSES, SUBJECTS, SECONDS = 16, 100, 10.0
CHARGES, DELTA = 1_000_000, 1e-6
FORKED = get_context("fork")
Found = tuple[int, float, float]


def main() -> None:
    """Measure everything and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    options = parser.parse_args()
    rows = [[what, *cells] for what, *cells in measured()]
    head = ["what", "charges/s", "a call: median", "longest"]
    text = f"{machine().replace('run.py', 'ledger.py')}\n\n{blocks.table(head, rows)}"
    print(text)
    if options.write:
        blocks.write(PAGE, NAME, text)


def measured() -> Iterator[list[str]]:
    """Yield one line for each claim."""
    for name in ("SQLite", "PostgreSQL"):
        if name == "PostgreSQL" and programs() is None:
            raise SystemExit("PostgreSQL is not installed: apt-get install postgresql")
        for size in (SUBJECTS, 1):
            with new_ledger(name) as place:
                speed, median, longest = crowd(place, size)
            how = "one at a time" if size == 1 else f"in batches of {size}"
            what = f"{name}, {PROCESSES} processes, the same {SUBJECTS} subjects, {how}"
            yield [what, f"{speed:,.0f}", f"{median * 1e3:,.1f} ms", f"{longest:,.2f} s"]
    for what, composition in COMPOSED.items():
        start = time.perf_counter()
        best = next(found for found in account(composition, DELTA) if found.best)
        spent = time.perf_counter() - start
        said = f"{what} by every method, of which `{best.method.name}` is the best"
        yield [said, f"{CHARGES / spent:,.0f}", "-", f"{spent:.2f} s"]


COMPOSED: dict[str, dict[Release, int]] = {
    f"{CHARGES:,} charges of epsilon 0.01 composed": {Pure(0.01): CHARGES},
    f"{CHARGES:,} charges of 100 different epsilons composed": {
        Pure(0.01 + n / 10_000): CHARGES // 100 for n in range(100)
    },
}


@contextmanager
def new_ledger(name: str) -> Iterator[str]:
    """Give an empty ledger whose budget is looked at, and never reached."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_TMP")) as folder:
        if name == "SQLite":
            yield prepared(f"{folder}/ledger.db")
            return
        Path(folder).chmod(0o755)
        with private_server(folder) as server:
            yield prepared(server.make_database())


def prepared(place: str) -> str:
    """Make the tables."""
    with Ledger(place) as ledger:
        ledger.set_budget(Budget(1e9, 1e-6))
    return place


def crowd(place: str, size: int) -> Found:
    """Return charges a second, and the median and the longest time of a call."""
    begin, queue = FORKED.Barrier(PROCESSES), FORKED.SimpleQueue()
    given = [(place, number, size, begin, queue) for number in range(PROCESSES)]
    members = [FORKED.Process(target=member, args=one) for one in given]
    for one in members:
        one.start()
    times = sorted(one for _ in members for one in queue.get())
    for one in members:
        one.join()
    with Ledger(place) as ledger:
        found = replay(ledger)
        assert found.holds
        assert found.charges == len(times) * size
        moments = [charge.at for charge in ledger.charges()]
    spent = max(moments) - min(moments)
    return found.charges / spent, times[len(times) // 2], times[-1]


def member(
    place: str, number: int, size: int, begin: Barrier, queue: SimpleQueue[list[float]]
) -> None:
    """Charge for some seconds; put how long each call took."""
    times: list[float] = []
    choice = Random(number)  # noqa: S311 (who is charged next is no secret)
    rate = Rate.of(Pure(0.01), "custext", "substitution")
    with Ledger(place) as ledger:
        begin.wait()
        until = time.perf_counter() + SECONDS
        while (start := time.perf_counter()) < until:
            part = len(times)
            mine = [f"subject {n}" for n in choice.sample(range(SUBJECTS), size)]
            ledger.charge(Asked(mine, [3] * size), rate, Run(f"member {number}", part))
            times.append(time.perf_counter() - start)
    queue.put(times)


if __name__ == "__main__":
    main()
