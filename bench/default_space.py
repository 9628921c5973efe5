"""Measure what the embedded default space loses against the encoder's full vectors.

    python scripts/build_default_space.py --full /tmp/full.space -o /tmp/default.space ...
    python bench/default_space.py --full /tmp/full.space            # prints the table
    python bench/default_space.py --full /tmp/full.space --write    # and puts it into the docs

Without --full the words are embedded anew, which needs the [models] extra. SimLex-999 and the
synonyms are read from --data; what isn't there is left out of the table, and said so.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.stats import spearmanr

from deniable.spaces import default_path, formats
from deniable.spaces.encoder import embed
from deniable.spaces.parts import Vectors
from deniable.spaces.reduce import components, normalise

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "default-space.md"
BEGIN, END = "<!-- table: bench/default_space.py --write -->\n", "<!-- end of table -->\n"
DIMENSIONS = (64, 96, 128, 192, 256, 384)
SAMPLE = 4000
HEAD = (
    "vectors | MB | overlap@10 | overlap@20 | SimLex-999 rho | synonyms@20 "
    "| nearest | 20th | mean | largest | 20th/mean"
)
Ids = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Measures:
    """The words that are looked at, and the judgements of people about them."""

    sample: Ids
    reference: Ids
    pairs: list[tuple[int, int, float]]
    synonyms: dict[int, set[int]]


@dataclass(frozen=True)
class Near:
    """The 20 nearest words of the sample, and how their distances compare with the crowd's."""

    ids: Ids
    nearest: float
    twentieth: float
    mean: float
    largest: float


def main() -> None:
    """Measure every variant and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", type=Path, help="folder written by the builder's --full")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--write", action="store_true", help="put the table into the docs")
    options = parser.parse_args()
    default = formats.read(default_path())
    full = full_vectors(default.words, options.full)
    sample = np.sort(np.random.default_rng(0).choice(len(full), SAMPLE, replace=False))
    pairs, synonyms = judgements(options.data / "constraints", default.words)
    measures = Measures(sample, near(full, sample).ids, pairs, synonyms)
    lines = [HEAD, "|".join([" --- "] + [" ---: "] * HEAD.count("|"))]
    print(HEAD)
    for name, size, vectors in variants(full, default.vectors):
        lines.append(row(name, size, vectors, measures))
        print(lines[-1], flush=True)
    if options.write:
        write("".join(f"| {line.strip()} |\n" for line in lines))


def full_vectors(words: tuple[str, ...], folder: Path | None) -> Vectors:
    """The encoder's own vectors of the very same words."""
    if folder is None:
        return embed(words, progress=True)
    parts = formats.read(folder)
    if parts.words != words:
        raise SystemExit(f"{folder}: other words than the default space's; build both anew")
    return np.asarray(parts.vectors)


def variants(full: Vectors, default: Vectors) -> Iterator[tuple[str, int, Vectors]]:
    """Name, bytes and unit vectors of everything that is compared."""
    centred = full - full.mean(axis=0)
    yield "full, float32", full.nbytes, full
    yield "full, centred, float32", full.nbytes, normalise(centred)
    for name, rows in (("as they are", full), ("centred", centred)):
        directions = components(rows)
        for dimensions in DIMENSIONS:
            stored, scale = formats.quantise(normalise(rows @ directions[:, :dimensions]))
            restored = formats.restore(stored, scale, unit=True)
            yield f"{name}, {dimensions}, int8", stored.nbytes, restored
    size = (default_path() / "vectors.npy").stat().st_size
    yield "**the default space as loaded**", size, default


def row(name: str, size: int, vectors: Vectors, measures: Measures) -> str:
    """One line of the table."""
    found = near(vectors, measures.sample)
    numbers = (
        f"{size / 1e6:.1f}",
        *(f"{overlap(found.ids, measures.reference, k):.3f}" for k in (10, 20)),
        *(measured(judge, vectors, measures) for judge in (simlex, synonyms_found)),
        *(f"{x:.3f}" for x in (found.nearest, found.twentieth, found.mean, found.largest)),
        f"{found.twentieth / found.mean:.3f}",
    )
    return " | ".join((name, *numbers))


def measured(
    judge: Callable[[Vectors, Measures], float], vectors: Vectors, measures: Measures
) -> str:
    """A number, or a dash when there are no judgements to compare with."""
    return f"{judge(vectors, measures):.3f}" if measures.pairs else "-"


def near(vectors: Vectors, rows: Ids) -> Near:
    """The 20 nearest other words of each row by angle, nearest first."""
    cosines = vectors[rows] @ vectors.T
    distances = np.sqrt(np.maximum(0, 2 - 2 * cosines))
    distances[np.arange(len(rows)), rows] = 0
    mean = float(distances.sum(dtype=np.float64) / (distances.size - len(rows)))
    largest = float(distances.max())
    distances[np.arange(len(rows)), rows] = np.inf
    some = np.argpartition(distances, 20, axis=1)[:, :20]
    order = np.argsort(np.take_along_axis(distances, some, axis=1), axis=1)
    ids = np.take_along_axis(some, order, axis=1)
    near20 = np.take_along_axis(distances, ids, axis=1).mean(axis=0)
    return Near(ids, float(near20[0]), float(near20[19]), mean, largest)


def overlap(found: Ids, reference: Ids, k: int) -> float:
    """Mean share of the k nearest words that two sets of vectors have in common."""
    pairs = zip(found[:, :k], reference[:, :k], strict=True)
    return float(np.mean([len(np.intersect1d(a, b)) / k for a, b in pairs]))


def simlex(vectors: Vectors, measures: Measures) -> float:
    """Rank correlation of the cosine with people's judgement of similarity."""
    cosines = [float(vectors[a] @ vectors[b]) for a, b, _ in measures.pairs]
    return float(spearmanr(cosines, [score for *_, score in measures.pairs]).statistic)


def synonyms_found(vectors: Vectors, measures: Measures) -> float:
    """Mean share of a word's synonyms (of 20 at most) among its 20 nearest words."""
    rows = np.array(sorted(measures.synonyms)[::3])
    found = near(vectors, rows).ids
    shares = []
    for word, ids in zip(rows.tolist(), found.tolist(), strict=True):
        wanted = measures.synonyms[word]
        shares.append(len(wanted.intersection(ids)) / min(20, len(wanted)))
    return float(np.mean(shares))


def judgements(
    folder: Path, words: tuple[str, ...]
) -> tuple[list[tuple[int, int, float]], dict[int, set[int]]]:
    """SimLex-999 pairs and PPDB synonyms whose words are all in the space."""
    if not folder.is_dir():
        print(f"{folder} is missing: SimLex and synonyms are not measured", file=sys.stderr)
        return [], {}
    index = {word: i for i, word in enumerate(words)}
    with (folder / "SimLex-999.txt").open(encoding="utf-8", newline="") as file:
        lines = list(csv.reader(file, delimiter="\t"))[1:]
    known = [(a, b, float(score)) for a, b, _, score, *_ in lines if a in index and b in index]
    synonyms: dict[int, set[int]] = {}
    for line in (folder / "ppdb_synonyms.txt").read_text("utf-8").splitlines():
        a, b = (index.get(word.removeprefix("en_")) for word in line.split()[:2])
        if a is not None and b is not None:
            synonyms.setdefault(a, set()).add(b)
    return [(index[a], index[b], score) for a, b, score in known], synonyms


def write(table: str) -> None:
    """Put the table between its marks in the docs."""
    page = PAGE.read_text("utf-8")
    start, end = page.index(BEGIN) + len(BEGIN), page.index(END)
    PAGE.write_text(page[:start] + "\n" + table + "\n" + page[end:], "utf-8")


if __name__ == "__main__":
    main()
