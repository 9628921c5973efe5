"""Audit: a lower bound on the loss of a mechanism that has no table, from its own samples.

For a pair x, x' half of the samples choose a set of outputs that x produces far more often than
x' does; the other half, which knew nothing of the choice, bound P(set | x) from below and
P(set | x') from above (Clopper and Pearson 1934: exact, whatever the probabilities). The true
loss is at least ln of their ratio, with the stated confidence. A lower bound above the promise
refutes it; one below it is no proof, and the theorem remains what is believed.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from deniable import progress
from deniable.certify import Certification

if TYPE_CHECKING:
    from deniable.mechanism import Kernel

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

METHOD = "theorem+audit"
# A sound mechanism is called unsound this seldom, over all pairs and sets together.
ERROR = 1e-9
DRAWS = 20_000
PAIRS = 6
# Among this many words the pairs are chosen; a space of a million words takes no longer.
ANCHORS = 200
BISECTIONS = 60
NOTHING_SEEN = "no loss was seen: at this epsilon that many draws can't tell these words apart"


def audit(kernel: Kernel, pairs: int = PAIRS, draws: int = DRAWS) -> Certification:
    """Bound the loss of some pairs from below, and compare with what is promised for them."""
    chosen = telling_pairs(kernel, pairs)
    bounds, promises = np.zeros(len(chosen)), np.zeros(len(chosen))
    for i, (a, b) in enumerate(progress.track(chosen.tolist(), "auditing", total=len(chosen))):
        bounds[i] = loss_at_least(kernel, a, b, draws, ERROR / max(1, len(chosen)))
        promises[i] = kernel.promised(np.array([a]), np.array([b]))[0, 0]
    ratios = bounds / np.where(promises > 0, promises, 1.0)
    broken = (promises == 0) & (bounds > 0)
    ratios[broken] = np.inf
    relation = kernel.guarantee.relation
    names = kernel.space.words
    first = chosen[int(np.argmax(ratios))] if len(chosen) else None
    return Certification(
        holds=bool((ratios <= 1.0).all()),
        worst=float(ratios.max(initial=0.0)),
        worst_pair=None if first is None else (names[first[0]], names[first[1]]),
        max_loss=float(bounds.max(initial=0.0)),
        covered=relation.covered,
        method=METHOD,
        pairs=len(chosen),
        epsilon_diameter=kernel.guarantee.epsilon * relation.diameter,
        reveals=kernel.guarantee.reveals,
        notes=(
            f"ratio and loss are lower bounds from {2 * draws:,} draws a pair, wrong with a chance "
            f"below {ERROR:g}; that no pair loses more than promised is a theorem",
            *([NOTHING_SEEN] if bounds.max(initial=0.0) == 0.0 else []),
        ),
    )


def telling_pairs(kernel: Kernel, count: int) -> Ids:
    """Return pairs over the whole range of what is promised: a wrong scale shows somewhere."""
    source = np.random.default_rng(0)  # which pairs are looked at is no secret
    size = min(ANCHORS, len(kernel.space))
    words = np.sort(source.choice(len(kernel.space), size=size, replace=False)).astype(np.int64)
    promised = kernel.promised(words, words)
    first, second = np.triu_indices(size, 1)
    if len(first) == 0:
        return np.empty((0, 2), dtype=np.int64)
    covered = np.isfinite(promised[first, second])
    first, second = first[covered], second[covered]
    order = np.argsort(promised[first, second], kind="stable")
    # A promise near 1 or 2 is refuted by the fewest draws; the other half is spread evenly.
    near = np.searchsorted(promised[first, second][order], np.geomspace(0.5, 4.0, count // 2))
    places = np.concatenate([near, np.linspace(0, len(order) - 1, count - count // 2 + 1)[1:]])
    picked = order[np.unique(np.minimum(places.astype(np.int64), len(order) - 1))]
    return np.stack([words[first[picked]], words[second[picked]]], axis=1)


def loss_at_least(kernel: Kernel, a: int, b: int, draws: int, error: float) -> float:
    """Return a lower bound on the loss of a pair that is wrong with a chance below `error`."""
    size = len(kernel.space)
    seen = [
        np.bincount(kernel.sample(np.full(draws, word)), minlength=size) for word in (a, b, a, b)
    ]
    best = 0.0
    for more, less in ((0, 1), (1, 0)):
        chosen = telling_set(seen[more], seen[less])
        hits, misses = int(seen[more + 2][chosen].sum()), int(seen[less + 2][chosen].sum())
        low = at_least(hits, draws, error / 4)
        high = at_most(misses, draws, error / 4)
        best = max(best, log(low / high) if low > 0 else 0.0)
    return best


def telling_set(more: Ids, less: Ids) -> npt.NDArray[np.bool_]:
    """Return the outputs whose union speaks most clearly for the first of two samples."""
    score = (more + 1.0) / (less + 1.0)
    order = np.argsort(-score, kind="stable")
    hits, misses = np.cumsum(more[order]), np.cumsum(less[order])
    # Three standard deviations stand for the bounds that are computed later.
    low = hits - 3.0 * np.sqrt(hits + 1.0)
    high = misses + 3.0 * np.sqrt(misses + 1.0)
    chosen = np.zeros(len(more), dtype=np.bool_)
    chosen[order[: int(np.argmax(low / high)) + 1]] = True
    return chosen


def at_least(hits: int, trials: int, error: float) -> float:
    """Return the lower end of Clopper and Pearson's one-sided interval for a probability."""
    if hits == 0:
        return 0.0
    # P(Bin >= hits) grows with p; below the bound it is less than the error.
    return _bisect(lambda p: _tail(hits, trials, p) < log(error), keep_low=True)


def at_most(hits: int, trials: int, error: float) -> float:
    """Return the upper end of Clopper and Pearson's one-sided interval for a probability."""
    return 1.0 - at_least(trials - hits, trials, error)


def _bisect(below: Callable[[float], bool], *, keep_low: bool) -> float:
    low, high = 0.0, 1.0
    for _ in range(BISECTIONS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if below(middle) else (low, middle)
    return low if keep_low else high


def _tail(hits: int, trials: int, p: float) -> float:
    """Return ln P(Bin(trials, p) >= hits)."""
    if p <= 0.0:
        return -np.inf
    if p >= 1.0:
        return 0.0
    factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, trials + 1)))])
    k = np.arange(hits, trials + 1)
    terms = factorials[trials] - factorials[k] - factorials[trials - k]
    terms += k * log(p) + (trials - k) * np.log1p(-p)
    largest = terms.max()
    return float(largest + np.log(np.exp(terms - largest).sum()))
