"""Measure how often a replacement is the same part of speech, for docs/mechanisms/custext.md.

    python bench/kinds.py            # prints the table
    python bench/kinds.py --write    # puts it into the page

On the embedded space, all words equally likely, exactly from the tables. Words that the lexicon
doesn't have count as a kind of their own.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "scripts"))
import blocks
from deniable import Space, mechanism
from deniable.kernels.partitioned import PartitionKernel
from deniable.kinds import kinds_of

PAGE = blocks.ROOT / "docs" / "mechanisms" / "custext.md"
NAME = "kinds"
EPSILON, K = 3.0, 20
NAMES = ("custext", "optimal", "randomised-response")


def main() -> None:
    """Measure each mechanism with and without, and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    options = parser.parse_args()
    space = Space.default()
    rows = [row(space, name, pos=pos) for name in NAMES for pos in (False, True)]
    head = ["mechanism", "pos", "same part of speech", "of the words that change", "distance"]
    note = f"K = {K}, epsilon = {EPSILON:g}, {len(space):,} words; `python bench/kinds.py`."
    text = f"{blocks.space_mark(space)}\n{note}\n\n{blocks.table(head, rows)}"
    print(text)
    if options.write:
        blocks.write(PAGE, NAME, text)


def row(space: Space, name: str, *, pos: bool) -> list[str]:
    """One line: the chance that kind and word stay, and the mean distance."""
    kernel = mechanism(name, epsilon=EPSILON, K=K, pos=pos).bind(space)
    assert isinstance(kernel, PartitionKernel)
    kinds = kinds_of(space, True, K)
    assert kinds is not None
    kind = np.empty(len(space), dtype=np.int64)
    for number, words in enumerate(kinds.groups):
        kind[words] = number
    same = stays = distance = 0.0
    for i, outputs in enumerate(kernel.mapping.outputs):
        words, rows = kernel.mapping.groups[i], kernel.probabilities(i)
        same += float(rows[kind[words][:, None] == kind[outputs][None, :]].sum())
        stays += float(rows[words[:, None] == outputs[None, :]].sum())
        distance += float((rows * space.distances(words, outputs)).sum())
    count = len(space)
    changed = (same - stays) / (count - stays)
    return [
        f"`{name}`",
        "true" if pos else "false",
        f"{same / count:.1%}",
        f"{changed:.1%}",
        f"{distance / count:.3f}",
    ]


if __name__ == "__main__":
    main()
