"""Compare what is drawn inside output sets at equal certified epsilon, for docs/comparison.md.

    python bench/comparison.py            # prints the table
    python bench/comparison.py --write    # puts it into the page (some twenty minutes)

Everything is computed from the integer tables: the mean distance to the replacement, the chance
that a word survives, and the chance that the best guess from the output is right, each with all
words equally likely; and the last one also with words as frequent as in texts (Zipf).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "scripts"))
import blocks
from choosing_epsilon import zipf
from deniable import Space, mechanism
from deniable.kernels.partitioned import PartitionKernel

GLOVE = Path(__file__).parent.parent.parent / "shared" / "data" / "vectors"
PAGE = blocks.ROOT / "docs" / "comparison.md"
NAME = "comparison"
EPSILONS = (1.0, 2.0, 3.0, 8.0)
SIZES = (5, 20, 50)
TIGHT = {"calibrate": "tight"}
CANDIDATES: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("custext, tight", "custext", TIGHT),
    ("permute-and-flip, tight", "permute-and-flip", TIGHT),
    ("randomised-response", "randomised-response", {}),
    ("optimal", "optimal", {}),
    ("optimal, adaptive", "optimal", {"adaptive": True}),
    ("optimal, bayes_cap 0.3", "optimal", {"bayes_cap": 0.3}),
)
# Two programs a set, or a larger one: shown where they take seconds.
ONLY_AT_20 = ("optimal, adaptive", "optimal, bayes_cap 0.3")
HEAD = [
    "K", "epsilon", "mechanism", "certified loss", "distance", "survives", "largest survival",
    "Bayes success", "Bayes, Zipf",
]  # fmt: skip


def main() -> None:
    """Measure every configuration and print or write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the tables into the page")
    parser.add_argument("--limit", type=int, help="use the first N words only, to try it out")
    options = parser.parse_args()
    tables = "\n\n".join(table(name, space) for name, space in spaces(options.limit))
    text = f"{blocks.space_mark(Space.default())}\n{tables}"
    if options.write and options.limit is None:
        blocks.write(PAGE, NAME, text)
    else:
        print(text)


def spaces(limit: int | None) -> Iterator[tuple[str, Space]]:
    """The spaces to compare on."""
    yield "The embedded space", Space.load(Space.default_path(), limit=limit)
    path = GLOVE / "glove840b_300d_33k_f16.npz"
    if not path.is_file():
        raise SystemExit(f"{path} is missing: the second table needs it")
    yield "GloVe 840B", Space.load(path, limit=limit)


def table(name: str, space: Space) -> str:
    """One table; the least distance of each block is in bold."""
    rows = []
    for K in SIZES:
        for epsilon in EPSILONS:
            found = list(measured(space, K, epsilon))
            least = min(float(row[4]) for row in found)
            for row in found:
                row[4] = f"**{row[4]}**" if float(row[4]) == least else row[4]
            rows += found
    title = f"### {name}: {len(space):,} words, {space.metric}, diameter {space.diameter:.3f}"
    return f"{title}\n\n{blocks.table(HEAD, rows)}"


def measured(space: Space, K: int, epsilon: float) -> Iterator[list[str]]:
    """One line for each mechanism."""
    prior = zipf(len(space))
    for title, name, settings in CANDIDATES:
        # A cap that can't be kept in sets of K, or that everybody keeps, is left out.
        if title in ONLY_AT_20 and K != 20:
            continue
        start = time.perf_counter()
        kernel = mechanism(name, epsilon=epsilon, K=K, **settings).bind(space)
        assert isinstance(kernel, PartitionKernel)
        found = kernel.certify()
        assert found.holds
        numbers = [f"{value:.4f}" for value in looked_at(kernel, prior)]
        row = [str(K), f"{epsilon:g}", title, f"{found.max_loss:.4f}", *numbers]
        spent = time.perf_counter() - start
        print(f"{' | '.join(row)}   ({spent:.0f} s)", file=sys.stderr, flush=True)
        yield row


def looked_at(
    kernel: PartitionKernel, prior: np.ndarray[tuple[int], np.dtype[np.float64]]
) -> tuple[float, float, float, float, float]:
    """Mean distance, mean and largest survival, and the best guess's success for two priors."""
    space, count = kernel.space, len(kernel.space)
    distance = survives = even = frequent = largest = 0.0
    for i, outputs in enumerate(kernel.mapping.outputs):
        words, rows = kernel.mapping.groups[i], kernel.probabilities(i)
        distance += float((rows * space.distances(words, outputs)).sum()) / count
        own = rows[outputs[None, :] == words[:, None]]
        survives += float(own.sum()) / count
        largest = max(largest, float(own.max()))
        even += float(rows.max(axis=0).sum()) / count
        frequent += float((rows * prior[words][:, None]).max(axis=0).sum())
    return distance, survives, largest, even, frequent


if __name__ == "__main__":
    main()
