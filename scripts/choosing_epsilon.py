"""Measure what an epsilon buys on the embedded space, for docs/choosing-epsilon.md.

    python scripts/choosing_epsilon.py              # prints the table (about 20 minutes)
    python scripts/choosing_epsilon.py --write      # puts it into the page
    python scripts/choosing_epsilon.py --missing    # measures and adds only rows that aren't there

Everything is computed from the integer tables that are sampled; where there are none, survival is
counted over draws. The attacker knows the mechanism and how frequent words are: pi(x)
proportional to 1 / (rank + 2.7).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

import blocks
from deniable import Kernel, Space, mechanism, parallel
from deniable.mechanism import FiniteKernel, mechanisms

PAGE = blocks.ROOT / "docs" / "choosing-epsilon.md"
NAME = "choosing-epsilon"
ROWS = 128
# How many words, drawn from the prior, the size of the plausible set is measured on.
SAMPLE = 1000
# How often each of them is drawn where there is no table.
DRAWS = 50
# The epsilons shown for each mechanism; one that isn't named here gets USUAL.
USUAL = (1.0, 4.0, 16.0)
EPSILONS: dict[str, tuple[float, ...]] = {
    "random": (1.0,),
    "santext": (10.0, 15.0, 20.0, 30.0),
    "santext+": (15.0, 20.0, 30.0),
    "custext": (0.5, 1.0, 2.0, 4.0, 8.0),
    "custext+": (4.0,),
    "clusant": (2.0, 4.0, 8.0, 16.0, 32.0),
    "fbdd": (20.0, 35.0, 50.0, 100.0),
    "mahalanobis": (35.0, 50.0),
    "vickrey": (50.0, 100.0),
    "tem": (15.0, 20.0),
    "diffractor": (0.01, 1.0),
    "optimal": (1.0, 4.0),
    "permute-and-flip": (4.0,),
    "randomised-response": (4.0,),
    "rantext": (4.0,),
    "hyperbolic": (),  # the embedded space isn't one of the Poincare ball
}
# Where the tight calibration is shown as well: finding it takes minutes on a large space.
TIGHT: dict[str, tuple[float, ...]] = {
    "santext": (20.0,),
    "custext": (1.0, 4.0),
    "clusant": (8.0,),
    "permute-and-flip": (4.0,),
}
HEAD = [
    "mechanism", "epsilon", "calibrate", "epsilon x diameter", "pairs covered", "survives: mean",
    "median", "plausible set", "95 % set", "Bayes success",
]  # fmt: skip
Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]


def main() -> None:
    """Measure every configuration and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    parser.add_argument("--limit", type=int, help="use the first N words only, to try it out")
    parser.add_argument("--missing", action="store_true", help="add the rows that aren't there")
    options = parser.parse_args()
    space = Space.load(Space.default_path(), limit=options.limit)
    prior = zipf(len(space))
    known = there(space) if options.missing else {}
    rows = [known.get(key(*one)) or row(space, prior, *one) for one in configurations()]
    text = f"{fingerprint(space)}\n{note(space, prior)}\n\n{blocks.table(HEAD, rows)}"
    if (options.write or options.missing) and options.limit is None:
        blocks.write(PAGE, NAME, text)
    else:
        print(text)


def key(name: str, epsilon: float, settings: dict[str, Any]) -> tuple[str, ...]:
    """The cells that say which configuration a row is about."""
    made = mechanism(name, epsilon=epsilon, **settings)
    return made.name, f"{made.epsilon:g}", str(made.parameters().get("calibrate", ""))


def there(space: Space) -> dict[tuple[str, ...], list[str]]:
    """The rows that the page has, if they were measured on this space."""
    found = blocks.read(PAGE, NAME)
    if space.hash[:16] not in found.splitlines()[0]:
        return {}
    lines = [line.strip("| ").split(" | ") for line in found.splitlines() if line.startswith("|")]
    return {tuple(cell.strip() for cell in cells[:3]): cells for cells in lines[2:]}


def row(
    space: Space, prior: Floats, name: str, epsilon: float, settings: dict[str, Any]
) -> list[str]:
    """Measure one row, and say so."""
    start = time.perf_counter()
    kernel = mechanism(name, epsilon=epsilon, **settings).bind(space)
    found = measured(kernel, prior) if isinstance(kernel, FiniteKernel) else drawn(kernel, prior)
    spent = time.perf_counter() - start
    print(f"{' | '.join(found)}   ({spent:.0f} s)", file=sys.stderr, flush=True)
    return found


def zipf(count: int) -> Floats:
    """How frequent words are by rank, as an attacker may assume."""
    weights = 1.0 / (np.arange(1, count + 1) + 2.7)
    return np.asarray(weights / weights.sum())


def fingerprint(space: Space) -> str:
    """What the numbers depend on; the check compares it, so that they can't grow old unseen."""
    names = " ".join(name for name in mechanisms())
    return f"<!-- space {space.hash[:16]}; mechanisms {names} -->"


def note(space: Space, prior: Floats) -> str:
    """Say what was measured on what."""
    return (
        f"{space.name}, {len(space):,} words, diameter {space.diameter:.3f}. Without any output "
        f"the best guess is right with chance {prior.max():.4f}. The two set "
        f"sizes are over {SAMPLE:,} words drawn from the prior; all else is exact. Where noise is "
        f"continuous, survival is counted over {DRAWS} draws of each of {SAMPLE:,} words from the "
        "prior (± two standard deviations), and what needs a table is not known."
    )


def configurations() -> Iterator[tuple[str, float, dict[str, Any]]]:
    """Every mechanism at its epsilons, some of them calibrated tightly as well."""
    for name in mechanisms():
        for epsilon in EPSILONS.get(name, USUAL):
            yield name, epsilon, {}
            if epsilon in TIGHT.get(name, ()):
                yield name, epsilon, {"calibrate": "tight"}


def drawn(kernel: Kernel, prior: Floats) -> list[str]:
    """One line for a mechanism without a table: survival counted, the rest not known."""
    sample = np.random.default_rng(0).choice(len(prior), SAMPLE, p=prior)
    stays = kernel.sample(np.repeat(sample, DRAWS)).reshape(SAMPLE, DRAWS) == sample[:, None]
    share = stays.mean(axis=1)
    deviation = share.std() / np.sqrt(SAMPLE)
    return [
        kernel.mechanism.name,
        f"{kernel.mechanism.epsilon:g}",
        "",
        f"{kernel.guarantee.worst_epsilon:.3g}",
        f"{kernel.guarantee.relation.covered:.3g}",
        f"{share.mean():.3f} ± {2 * deviation:.3f}",
        f"{np.median(share):.2f}",
        *("not known",) * 3,
    ]


def measured(kernel: Kernel, prior: Floats) -> list[str]:
    """One line of the table."""
    survives, success = against_all(kernel, prior)
    sample = np.random.default_rng(0).choice(len(prior), SAMPLE, p=prior)
    entropy, holding = spread(kernel, sample)
    made, relation = kernel.mechanism, kernel.guarantee.relation
    return [
        made.name,
        f"{made.epsilon:g}",
        str(made.parameters().get("calibrate", "")),
        f"{kernel.guarantee.worst_epsilon:.3g}",
        f"{relation.covered:.3g}",
        f"{prior @ survives:.4f}",
        f"{weighted_median(survives, prior):.4f}",
        f"{np.exp(entropy.mean()):,.1f}",
        f"{np.median(holding):,.0f}",
        f"{success:.4f}",
    ]


def against_all(kernel: Kernel, prior: Floats) -> tuple[Floats, float]:
    """The chance that each word stays itself, and that the best guess from the output is right."""
    column = np.empty(len(prior), dtype=np.int64)
    column[kernel.outputs] = np.arange(len(kernel.outputs))
    log_prior = np.log(prior)

    def look(run: Ids) -> tuple[Floats, Floats]:
        logs = kernel.log_probs(run)
        own = np.exp(logs[np.arange(len(run)), column[run]])
        logs += log_prior[run, None]
        return own, logs.max(axis=0)

    runs = [np.arange(i, min(i + ROWS, len(prior))) for i in range(0, len(prior), ROWS)]
    survives: list[Floats] = []
    best = np.full(len(kernel.outputs), -np.inf)
    for own, likeliest in parallel.in_threads(look, runs):
        survives.append(own)
        np.maximum(best, likeliest, out=best)
    return np.concatenate(survives), float(np.exp(best).sum())


def weighted_median(values: Floats, weights: Floats) -> float:
    """The value that half of the weight lies below."""
    order = np.argsort(values)
    reached = np.searchsorted(np.cumsum(weights[order]), 0.5)
    return float(values[order[reached]])


def spread(kernel: Kernel, sample: Ids, mass: float = 0.95) -> tuple[Floats, Floats]:
    """The entropy of each word's row, and how many of its likeliest outputs hold that mass."""
    words, back = np.unique(sample, return_inverse=True)
    entropy, counts = np.empty(len(words)), np.empty(len(words))
    for start in range(0, len(words), ROWS):
        run = slice(start, start + ROWS)
        logs = kernel.log_probs(words[run])
        rows = np.exp(logs)
        logs[rows == 0] = 0.0
        entropy[run] = -np.einsum("ij,ij->i", logs, rows)
        counts[run] = (np.cumsum(-np.sort(-rows, axis=1), axis=1) < mass).sum(axis=1) + 1
    return entropy[back], counts[back]


if __name__ == "__main__":
    main()
