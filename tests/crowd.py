"""A crowd of processes that charge the same subjects, each writing down what was accepted of it.

    python tests/crowd.py PLACE FOLDER BATCHES

prints a line with the processes' ids, and at the end one with how each of them ended. What member N
was told is in FOLDER/N, a line for each batch; or for each time that the database was away, after
which the member tries the same batch again.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from deniable.budget.charging import Asked, Rate, Run
from deniable.budget.ledger import Ledger
from deniable.errors import LedgerDownError

MEMBERS, SUBJECTS, LARGEST = 16, 100, 3
ONE = Rate(1.0)


def asked(number: int, part: int) -> Asked:
    """What a member asks for: something for everyone, everyone in an order of its own."""
    order = [(number * 7 + place) % SUBJECTS for place in range(SUBJECTS)]
    names = [f"subject {who}" for who in order]
    return Asked(names, [1 + (number + part + who) % LARGEST for who in order])


def member(place: str, log: Path, number: int, batches: int) -> None:
    """Charge batch after batch."""
    with Ledger(place) as ledger, log.open("wb", buffering=0) as file:
        for part in range(batches):
            while not charged(ledger, file.write, number, part):
                time.sleep(0.02)


def charged(ledger: Ledger, write, number: int, part: int) -> bool:
    """Charge a batch, and write down what became of it."""
    one = asked(number, part)
    try:
        refused = ledger.charge(one, ONE, Run(str(number), part))
    except LedgerDownError as error:
        write(json.dumps({"error": str(error), "resumable": error.resumable}).encode() + b"\n")
        return False
    told = zip(one.subjects, one.draws, refused, strict=True)
    accepted = {subject: count for subject, count, no in told if no is None}
    write(json.dumps({"part": part, "accepted": accepted}).encode() + b"\n")
    return True


def main(place: str, folder: Path, batches: int) -> None:
    """Fork the members and wait for them."""
    ids = []
    for number in range(MEMBERS):
        ids.append(os.fork())
        if ids[-1] == 0:
            member(place, folder / str(number), number, batches)
            os._exit(0)
    print(*ids, flush=True)  # noqa: T201 (for whoever started it)
    print(*(os.waitpid(one, 0)[1] for one in ids))  # noqa: T201 (as above)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
