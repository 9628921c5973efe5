"""Measure deniable against plain implementations of the same mechanisms, in the same run.

    python bench/run.py              # prints the table; results in bench/results/
    python bench/run.py --write      # and puts it into docs/performance.md
    python bench/run.py --full       # a file of 5 GB as well (needs 10 GB of free disk)

Every case runs in a process of its own; peak memory is that process's.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import cases
from cases import CASES, Result

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "bench" / "results"
PAGE = ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- generated: performance -->\n", "<!-- end: performance -->"
HEAD = "what | deniable | its peak memory | plain | plain peak memory | ratio"
ON_ALL_CORES = ("santext", "fbdd", "tem", "tem different", "map", "certify")
TITLES = {
    "santext": "`santext`, SST-2 train, 33,860 words x 300, file to file, 2 cores, with start",
    "fbdd": "`fbdd`, the same; the paper's authors: 117 minutes on 24 cores for V = 14,730",
    "tem": "`tem`, the same",
    "diffractor": "`diffractor`, the same",
    "custext": "`custext`, K = 20, SST-2 train five times, file to file, one core, map built",
    "map": "`custext` map, K = 20, 71,450 words x 100",
    "certify": "certify `santext`, 30,000 words x 300, all pairs",
}


def main() -> None:
    """Run every case and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the table into the docs")
    parser.add_argument("--full", action="store_true", help="also a file of 5 GB")
    parser.add_argument("--case", choices=list(CASES), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        found = CASES[options.case]()
        print(json.dumps({**found, "peak_mb": cases.peak_mb()}))
        return
    if not cases.DATA.is_dir():
        raise SystemExit(f"{cases.DATA} is missing: there is nothing to measure on")
    lines = [HEAD, " | ".join(["---"] * (HEAD.count("|") + 1)), *rows(options.full)]
    text = f"{machine()}\n\n" + "\n".join(f"| {line} |" for line in lines)
    print(text)
    if options.write:
        page = PAGE.read_text("utf-8")
        start, end = page.index(BEGIN) + len(BEGIN), page.index(END)
        PAGE.write_text(page[:start] + text + "\n" + page[end:], "utf-8")


def rows(full: bool) -> Iterator[str]:
    """One line for each claim."""
    for name, title in TITLES.items():
        ours, theirs = measured(name), measured(f"{name} plain")
        speed = f", {ours['tokens'] / ours['seconds']:,.0f} tokens/s" if "tokens" in ours else ""
        memory = f"{theirs['peak_mb']:,.0f} MB on the part"
        if "gb" in theirs:
            memory += f"; the whole matrix is {theirs['gb']:.1f} GB"
        yield " | ".join((
            title,
            f"{ours['seconds']:,.1f} s{speed}",
            f"{ours['peak_mb']:,.0f} MB",
            f"{theirs['seconds']:,.0f} s, from {theirs['measured']:.1f} s on a part",
            memory,
            f"{theirs['seconds'] / ours['seconds']:,.0f}",
        ))  # fmt: skip
    for name in ("tem", "diffractor"):
        found = measured(f"{name} different")
        seconds = f"{found['seconds']:,.2f} s, {found['tokens'] / found['seconds']:,.0f} tokens/s"
        title = f"`{name}`, 33,860 different words, each drawn once"
        yield f"{title} | {seconds} | {found['peak_mb']:,.0f} MB | - | - | -"
    for size in (50, 500, 5000):
        name = f"file {size} MB"
        earlier = size == 5000 and not full
        if earlier and not kept(name).is_file():
            continue
        found = json.loads(kept(name).read_text()) if earlier else measured(name)
        title = f"`custext`, embedded space, a file of {size:,} MB, one core"
        title += ", from an earlier run" if earlier else ""
        seconds = f"{found['seconds']:,.1f} s, {size / found['seconds']:.1f} MB/s"
        yield f"{title} | {seconds} | {found['peak_mb']:,.0f} MB | - | - | -"


def measured(name: str) -> Result:
    """Run one case in its own process and keep what it found."""
    print(f"measuring {name}", file=sys.stderr, flush=True)
    threads = {} if name in ON_ALL_CORES else {"OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, __file__, "--case", name],
        env={**os.environ, **threads},
        stdout=subprocess.PIPE,
        check=True,
    )
    found: Result = json.loads(done.stdout.splitlines()[-1])
    RESULTS.mkdir(parents=True, exist_ok=True)
    kept(name).write_text(json.dumps(found, indent=2))
    return found


def kept(name: str) -> Path:
    """Where the result of a case is kept."""
    return RESULTS / f"{name.replace(' ', '-')}.json"


def machine() -> str:
    """What it was measured on."""
    info = Path("/proc/cpuinfo")
    models = {
        line.partition(":")[2].strip()
        for line in (info.read_text("utf-8").splitlines() if info.exists() else [])
        if line.startswith("model name")
    }
    model = ", ".join(sorted(models)) or platform.processor() or platform.machine()
    python = platform.python_version()
    return f"`python bench/run.py` on {os.cpu_count()} cores of {model}, Python {python}."


if __name__ == "__main__":
    main()
