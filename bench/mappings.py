"""Measure which pairs a mapping covers, and which words it leaves alone, for custext's page.

    python bench/mappings.py            # prints the table
    python bench/mappings.py --write    # puts it into the page

Words left alone share their output set with no other word. Tokens are those of SST-2 train.
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
from deniable.mappings import MAPPINGS
from deniable.text import split

DATA = Path(__file__).parent.parent.parent / "shared" / "data"
VECTORS = DATA / "vectors" / "counterfitted_glove100_71k_f16.npz"
PAGE = blocks.ROOT / "docs" / "mechanisms" / "custext.md"
NAME = "mappings"
SIZES = (20, 50, 100)


def main() -> None:
    """Measure every mapping and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    options = parser.parse_args()
    if not VECTORS.is_file():
        raise SystemExit(f"{VECTORS} is missing: there is nothing to measure on")
    space = Space.load(VECTORS, "cosine")
    times = tokens(space)
    rows = [row(space, times, K, name) for K in SIZES for name in MAPPINGS]
    head = ["K", "mapping", "pairs covered", "words left alone", "tokens of SST-2 left alone"]
    note = f"Counter-fitted GloVe, {len(space):,} words, cosine; `python bench/mappings.py`."
    text = f"{blocks.mappings_mark()}\n{note}\n\n{blocks.table(head, rows)}"
    print(text)
    if options.write:
        blocks.write(PAGE, NAME, text)


def tokens(space: Space) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """How often each word of the space occurs in SST-2 train."""
    lines = (DATA / "sst2" / "train.tsv").read_text("utf-8").splitlines()[1:]
    found = split("\n".join(line.split("\t")[0] for line in lines))[1::2]
    ids = [space.index[token.lower()] for token in found if token.lower() in space.index]
    return np.bincount(ids, minlength=len(space))


def row(
    space: Space, times: np.ndarray[tuple[int], np.dtype[np.int64]], K: int, name: str
) -> list[str]:
    """One line of the table."""
    kernel = mechanism("custext", epsilon=1.0, K=K, mapping=name).bind(space)
    assert isinstance(kernel, PartitionKernel)
    groups = kernel.mapping.groups
    alone = (groups.sizes == 1)[groups.labels]
    return [
        str(K),
        f"`{name}`",
        f"{kernel.guarantee.relation.covered:.4%}",
        f"{alone.mean():.2%}",
        f"{times[alone].sum() / times.sum():.2%}",
    ]


if __name__ == "__main__":
    main()
