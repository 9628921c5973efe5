"""Measure every registered mechanism on the same text, for docs/performance.md.

    python bench/every.py            # prints the table
    python bench/every.py --write    # puts it into the page (some minutes)

The first 100,000 tokens of SST-2 train on the embedded space; `hyperbolic`, which needs one of the
Poincare ball, on WordNet nouns, most of the text being unknown to it. Binding is without the cache.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "scripts"))
import blocks
from cases import DATA, first_tokens, tokens
from deniable import Sanitizer, Space, mechanisms
from run import machine

PAGE = blocks.ROOT / "docs" / "performance.md"
NAME = "every mechanism"
TOKENS = 100_000
BALL = DATA / "wordnet" / "poincare_noun10.npz"
# Where the default would say nothing: an epsilon per rank, a distance of many dimensions.
EPSILONS = {"fbdd": 50.0, "mahalanobis": 50.0, "vickrey": 50.0, "santext": 15.0, "santext+": 15.0}


def main() -> None:
    """Measure every mechanism and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    options = parser.parse_args()
    if not DATA.is_dir():
        raise SystemExit(f"{DATA} is missing: there is nothing to measure on")
    os.environ["DENIABLE_CACHE"] = "off"
    texts = first_tokens(TOKENS)
    rows = [row(name, texts) for name in mechanisms()]
    head = ["mechanism", "epsilon", "bind", "sanitize", "tokens/s"]
    mark = blocks.mechanisms_mark()
    note = machine().replace("run.py", "every.py")
    text = f"{mark}\n{note}\n\n{blocks.table(head, rows)}"
    print(text)
    if options.write:
        blocks.write(PAGE, NAME, text)


def row(name: str, texts: list[str]) -> list[str]:
    """One line: how long it takes to make the sampler, and to use it."""
    epsilon = EPSILONS.get(name, 4.0)
    ball = "poincare" in mechanisms()[name].accepts and name == "hyperbolic"
    space = Space.load(BALL, "poincare") if ball else Space.default()
    assert space.diameter > 0  # measured here, so that no mechanism's time has it
    start = time.perf_counter()
    sanitizer = Sanitizer(name, epsilon, space=space)
    bound = time.perf_counter()
    sanitizer.sanitize_texts(texts)
    spent = time.perf_counter() - bound
    found = [
        f"`{name}`",
        f"{epsilon:g}",
        f"{bound - start:.1f} s",
        f"{spent:.1f} s",
        f"{tokens(texts) / spent:,.0f}",
    ]
    print(" | ".join(found), file=sys.stderr, flush=True)
    return found


if __name__ == "__main__":
    main()
