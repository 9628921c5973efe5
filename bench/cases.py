"""What is measured: each case runs in a process of its own, so that its peak memory is its own."""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import plain
from deniable import Sanitizer, Space, mechanism
from deniable.cli import deniable as program
from deniable.files import Batch
from deniable.kernels.partitioned import PartitionKernel
from deniable.pipeline import Job, SpaceChoice, run
from deniable.tally import Tally

DATA = Path(__file__).parent.parent.parent / "shared" / "data"
SST2 = DATA / "sst2" / "train.tsv"
GLOVE33 = DATA / "vectors" / "glove840b_300d_33k_f16.npz"
GLOVE71 = DATA / "vectors" / "glove6B_100d_cfvocab71k_f16.npz"
K, CUSTEXT_EPSILON, SANTEXT_EPSILON, FBDD_EPSILON = 20, 3.0, 2.0, 10.0
# The plain versions run on so much, where all of it would take hours or 20 GB.
PLAIN_WORDS, PLAIN_TOKENS, PLAIN_MAP, PLAIN_CERTIFY = 8_000, 20_000, 4_000, 500
CERTIFY_WORDS = 30_000
# How often SST-2 is repeated where only speed in the long run counts.
REPEATED = 5
Result = dict[str, float]


def now() -> float:
    """Seconds on the wall."""
    return time.perf_counter()


def sentences() -> list[str]:
    """The texts of SST-2's training set."""
    lines = SST2.read_text("utf-8").splitlines()[1:]
    return [line.rpartition("\t")[0] for line in lines]


def first_tokens(count: int) -> list[str]:
    """As many of the texts as have that many tokens."""
    texts, seen = [], 0
    for text in sentences():
        texts.append(text)
        seen += len(text.split())
        if seen >= count:
            break
    return texts


def tokens(texts: list[str]) -> int:
    """How many words and signs stand between spaces."""
    return sum(len(text.split()) for text in texts)


def from_file_to_file(name: str, epsilon: float) -> Callable[[], Result]:
    """A case that runs the command line on SST-2, from start to end."""

    def case() -> Result:
        start = now()
        with TemporaryDirectory() as folder:
            sanitize = ["sanitize", str(SST2), "--format", "tsv-plain", "--column", "sentence"]
            chosen = ["--mechanism", name, "--epsilon", str(epsilon)]
            target = ["--space", str(GLOVE33), "-o", f"{folder}/out.tsv", "--quiet"]
            program.main([*sanitize, *chosen, *target], standalone_mode=False)
        return {"seconds": now() - start, "tokens": tokens(sentences())}

    return case


def one_by_one(draw: Callable[[Space, int], int], count: int) -> Callable[[], Result]:
    """A case that draws for some words one after the other; scaled to all tokens of SST-2."""

    def case() -> Result:
        space = Space.load(GLOVE33)
        start = now()
        for word in range(count):
            draw(space, word)
        spent = now() - start
        return {"seconds": spent * tokens(sentences()) / count, "measured": spent}

    return case


def different_words(name: str, epsilon: float) -> Callable[[], Result]:
    """A case in which no word comes twice, so that no row serves two draws."""

    def case() -> Result:
        space = Space.load(GLOVE33)
        kernel = mechanism(name, epsilon=epsilon).bind(space)
        start = now()
        kernel.sample(range(len(space)))
        return {"seconds": now() - start, "tokens": len(space)}

    return case


def santext_plain() -> Result:
    """The matrix of some words, and some tokens; scaled to all of both."""
    space = Space.load(GLOVE33)
    texts = first_tokens(PLAIN_TOKENS)
    start = now()
    matrix = plain.santext_matrix(space.vectors[:PLAIN_WORDS], SANTEXT_EPSILON)
    made = now()
    plain.santext(space.words[:PLAIN_WORDS], matrix, texts)
    drawn = now()
    # The matrix grows with V^2, a draw with V.
    wider, all_tokens = len(space) / PLAIN_WORDS, tokens(sentences())
    seconds = (made - start) * wider**2 + (drawn - made) * wider * all_tokens / tokens(texts)
    return {"seconds": seconds, "measured": drawn - start, "gb": 8 * len(space) ** 2 / 1e9}


def custext_ours() -> Result:
    """From file to file on one core, after the map was built."""
    choice = SpaceChoice(str(GLOVE33))
    sanitizer = Sanitizer("custext", CUSTEXT_EPSILON, space=choice.load(), K=K)
    with TemporaryDirectory() as folder:
        texts = sentences()
        source = Path(folder) / "in.txt"
        source.write_text("\n".join(texts * REPEATED) + "\n", "utf-8")
        start = now()
        run(sanitizer, choice, Job(str(source), f"{folder}/out.txt"), _ignore)
        spent = now() - start
    return {"seconds": spent, "tokens": tokens(texts) * REPEATED}


def _ignore(batch: Batch, tally: Tally) -> None:
    """No progress bar."""


def custext_plain() -> Result:
    """Some tokens, with the same map; scaled to as many."""
    space = Space.load(GLOVE33)
    texts = first_tokens(PLAIN_TOKENS * 5)
    kernel = mechanism("custext", epsilon=CUSTEXT_EPSILON, K=K).bind(space)
    assert isinstance(kernel, PartitionKernel)
    sets = [outputs.tolist() for outputs in kernel.mapping.outputs]
    rows = plain.custext_rows(space.vectors, sets, CUSTEXT_EPSILON)
    start = now()
    plain.custext(space.words, rows, texts)
    spent = now() - start
    scale = tokens(sentences()) * REPEATED / tokens(texts)
    return {"seconds": spent * scale, "measured": spent}


def map_ours() -> Result:
    """The map of 71,450 words, nothing cached."""
    os.environ["DENIABLE_CACHE"] = "off"
    space = Space.load(GLOVE71)
    start = now()
    mechanism("custext", epsilon=1.0, K=K).bind(space)
    return {"seconds": now() - start, "words": len(space)}


def map_plain() -> Result:
    """The map of some words; scaled with their square."""
    space = Space.load(GLOVE71)
    start = now()
    plain.custext_sets(space.vectors[:PLAIN_MAP], K)
    spent = now() - start
    return {"seconds": spent * (len(space) / PLAIN_MAP) ** 2, "measured": spent}


def certify_ours() -> Result:
    """All pairs of 30,000 words."""
    os.environ["DENIABLE_CACHE"] = "off"
    space = Space.load(GLOVE33, limit=CERTIFY_WORDS)
    start = now()
    found = mechanism("santext", epsilon=SANTEXT_EPSILON).bind(space).certify()
    if not found.holds:
        raise SystemExit("the promise doesn't hold")
    return {"seconds": now() - start, "words": len(space)}


def certify_plain() -> Result:
    """All pairs and outputs of some words; scaled with the cube of their number."""
    vectors = Space.load(GLOVE33).vectors[:PLAIN_CERTIFY]
    matrix = plain.santext_matrix(vectors, SANTEXT_EPSILON)
    apart = plain.distances(vectors, vectors)
    start = now()
    plain.worst_ratio(matrix, apart, SANTEXT_EPSILON)
    spent = now() - start
    return {"seconds": spent * (CERTIFY_WORDS / PLAIN_CERTIFY) ** 3, "measured": spent}


def file_of(megabytes: int) -> Callable[[], Result]:
    """A case that sanitizes a file of that size."""

    def case() -> Result:
        sanitizer = Sanitizer("custext", 2.0)
        block = "\n".join(sentences()) + "\n"
        with TemporaryDirectory(dir=os.environ.get("BENCH_TMP")) as folder:
            source = Path(folder) / "in.txt"
            with source.open("w", encoding="utf-8") as file:
                while file.tell() < megabytes * 1_000_000:
                    file.write(block)
            start = now()
            run(sanitizer, SpaceChoice(), Job(str(source), f"{folder}/out.txt"), _ignore)
            return {"seconds": now() - start}

    return case


CASES: dict[str, Callable[[], Result]] = {
    "santext": from_file_to_file("santext", SANTEXT_EPSILON),
    "santext plain": santext_plain,
    "fbdd": from_file_to_file("fbdd", FBDD_EPSILON),
    "fbdd plain": one_by_one(lambda s, w: plain.fbdd(s.vectors, w, FBDD_EPSILON), 300),
    "tem": from_file_to_file("tem", SANTEXT_EPSILON),
    "tem plain": one_by_one(lambda s, w: plain.tem(s.vectors, w, SANTEXT_EPSILON), 300),
    "tem different": different_words("tem", SANTEXT_EPSILON),
    "diffractor": from_file_to_file("diffractor", 1.0),
    "diffractor different": different_words("diffractor", 1.0),
    "diffractor plain": one_by_one(lambda s, w: plain.diffractor(len(s.words), w, 1.0), 20_000),
    "custext": custext_ours,
    "custext plain": custext_plain,
    "map": map_ours,
    "map plain": map_plain,
    "certify": certify_ours,
    "certify plain": certify_plain,
    **{f"file {size} MB": file_of(size) for size in (50, 500, 5000)},
}


def peak_mb() -> float:
    """The most memory that this process ever held."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6
