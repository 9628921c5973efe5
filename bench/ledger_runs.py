"""Measure what a ledger costs a run from file to file, start-up and all.

    python bench/ledger_runs.py            # prints the table (some four minutes)
    python bench/ledger_runs.py --write    # and puts it into docs/performance.md

With and without take turns, and the shorter of the runs counts: the machine's noise only adds.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "scripts"))
import blocks
from cases import DATA, sentences
from run import machine

PAGE = blocks.ROOT / "docs" / "performance.md"
NAME = "ledger runs"
BLOGS = DATA / "blogs" / "blogs_A_50authors_x200.jsonl.gz"
TURNS = 3
HEAD = ["text", "people", "mechanism", "without", "with a ledger", "ratio"]


def main() -> None:
    """Measure everything and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    options = parser.parse_args()
    text = f"{machine().replace('run.py', 'ledger_runs.py')}\n\n{blocks.table(HEAD, list(rows()))}"
    print(text)
    if options.write:
        blocks.write(PAGE, NAME, text)


def rows() -> Iterator[list[str]]:
    """Yield one line for each text and mechanism."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        texts = {
            "10,000 posts of blogs": (blogs(folder), "text", "author", "50"),
            "SST-2, 1,000 people": (sst2(folder, 1000), "note", "who", "1,000"),
            "SST-2, a person each": (sst2(folder, None), "note", "who", "67,349"),
        }
        for text, (path, column, subject, people) in texts.items():
            for chosen in (["--mechanism", "custext", "--epsilon", "3"], ["--preset", "balanced"]):
                command = [str(path), "--column", column, "-o", str(folder / f"out{path.suffix}")]
                without, with_ledger = compare([*command, *chosen], subject, folder)
                ratio = f"{with_ledger / without:.2f}"
                named = chosen[1] if "--mechanism" in chosen else "the balanced preset"
                yield [text, people, named, f"{without:.2f} s", f"{with_ledger:.2f} s", ratio]


def compare(command: list[str], subject: str, folder: Path) -> tuple[float, float]:
    """Return the shortest time of a run without and with a ledger, which is new each time."""
    plain, charged = [], []
    for turn in range(TURNS):
        plain.append(timed(command))
        ledger = ["--ledger", str(folder / f"{turn}.db"), "--subject-column", subject]
        charged.append(timed([*command, *ledger, "--budget", "1e9"]))
        for path in folder.glob(f"{turn}.db*"):
            path.unlink()
    return min(plain), min(charged)


def timed(command: list[str]) -> float:
    """Return how long the command line takes."""
    start = time.perf_counter()
    given = [sys.executable, "-m", "deniable", "sanitize", *command, "--quiet"]
    subprocess.run(given, check=True)
    return time.perf_counter() - start


def blogs(folder: Path) -> Path:
    """Unpack the posts: reading a packed file would be much of the time."""
    path = folder / "blogs.jsonl"
    path.write_bytes(gzip.decompress(BLOGS.read_bytes()))
    return path


def sst2(folder: Path, people: int | None) -> Path:
    """Write SST-2 as a table of so many people's notes, or of a person for each."""
    path = folder / f"sst2-{people}.csv"
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["who", "note"])
        for number, text in enumerate(sentences()):
            table.writerow([f"p{number % people if people else number}", text])
    return path


if __name__ == "__main__":
    main()
