"""Measure candidates for the presets on the embedded space, for docs/presets.md.

    python bench/presets.py            # prints the table (about 15 minutes)
    python bench/presets.py --write    # puts it into the page

A preset is the candidate that keeps most meaning among those whose Bayes success (the chance of
the best guess of a word from its replacement, exact from the table) is at most the preset's limit.
Meaning kept is the expected cosine between a word's vector and its replacement's, over words as
frequent as in texts; 0 is what uniform replacement keeps.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))

import blocks
from choosing_epsilon import Floats, against_all, zipf
from deniable import Kernel, Space, mechanism

PAGE = blocks.ROOT / "docs" / "presets.md"
NAME = "presets"
HEAD = ["candidate", "epsilon x diameter", "pairs covered", "survives", "Bayes success", "meaning"]
SAMPLE = 500


def candidates() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every candidate."""
    for clusters in (120, 360, 1800):
        for k in (5.0, 10.0, 20.0):
            for epsilon in (4.0, 8.0, 16.0):
                yield "clusant", {"epsilon": epsilon, "k": k, "clusters": clusters}
    for size in (10, 20, 50, 100):
        for epsilon in (1.0, 2.0, 4.0):
            yield "custext", {"epsilon": epsilon, "K": size, "calibrate": "tight"}
    for epsilon in (12.0, 13.0, 14.0, 15.0):
        yield "santext", {"epsilon": epsilon}


def meaning(kernel: Kernel, prior: Floats) -> float:
    """Return the expected cosine of a word and its replacement."""
    sample = np.random.default_rng(0).choice(len(prior), SAMPLE, p=prior)
    words, times = np.unique(sample, return_counts=True)
    kept = 0.0
    for start in range(0, len(words), 100):
        run = words[start : start + 100]
        probabilities = np.exp(kernel.log_probs(run))
        cosines = 1.0 - kernel.space.distances(run, kernel.outputs) ** 2 / 2.0
        kept += float((probabilities * cosines).sum(axis=1) @ times[start : start + 100])
    return kept / SAMPLE


def main() -> None:
    """Measure every candidate and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    options = parser.parse_args()
    space = Space.default()
    prior = zipf(len(space))
    rows = []
    for name, settings in candidates():
        kernel = mechanism(name, **settings).bind(space)
        survives, success = against_all(kernel, prior)
        shown = ", ".join(f"{key} {value}" for key, value in settings.items())
        promise = kernel.guarantee
        row = [
            f"{name}, {shown}",
            f"{promise.worst_epsilon:.3g}",
            f"{promise.relation.covered:.3g}",
            f"{prior @ survives:.4f}",
            f"{success:.4f}",
            f"{meaning(kernel, prior):.4f}",
        ]
        rows.append(row)
        print(" | ".join(row), file=sys.stderr, flush=True)
    text = f"{blocks.space_mark(space)}\n{blocks.table(HEAD, rows)}"
    if options.write:
        blocks.write(PAGE, NAME, text)
    else:
        print(text)


if __name__ == "__main__":
    main()
