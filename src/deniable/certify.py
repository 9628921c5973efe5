"""Certification: the worst loss, recomputed from the tables that are sampled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from deniable.mechanism import FiniteKernel

Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]

# Up to this many (input, input, output) triples every one is looked at.
BRUTE_FORCE = 2_000_000_000
# A calibration stops this short of 1: another order of the same sums must not go beyond.
FULL = 1.0 - 1e-12
QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


@dataclass(frozen=True)
class Certification:
    """What a recomputation found.

    `worst` is the largest recomputed loss divided by what is promised for its pair: the claim
    holds when it is at most 1. `method` is `recomputed` (every covered pair and output, from the
    integer tables) or `bound` (a proved upper bound for every covered pair, with `attained` the
    largest ratio found by brute force on the worst pairs and on random ones). `max_spread` is the
    largest spread (see Guarantee) of the pairs that were looked at one by one, where one is
    promised: it has to be within the promise too.
    """

    holds: bool
    worst: float
    worst_pair: tuple[str, str] | None
    max_loss: float
    covered: float
    method: str
    pairs: int
    epsilon_diameter: float
    attained: float | None = None
    attained_pairs: int = 0
    losses: Mapping[str, float] = field(default_factory=dict)
    reveals: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    max_spread: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the certification as plain data."""
        return asdict(self)

    def describe(self) -> str:
        """Say the result in a few lines."""
        reach = f"epsilon x diameter {self.epsilon_diameter:.6g}"
        verdict = "holds" if self.holds else "DOES NOT HOLD"
        pair = "" if self.worst_pair is None else f", at {' / '.join(self.worst_pair)}"
        lines = [
            f"promise            {verdict} ({self.method})",
            f"worst ratio        {self.worst:.6f} of what is promised{pair}",
            f"largest loss       {self.max_loss:.6g} ({reach})",
            f"pairs covered      {self.covered:.4%} ({self.pairs:,} pairs looked at)",
        ]
        if self.attained is not None:
            count = f"{self.attained_pairs:,} pairs"
            lines.append(f"attained           {self.attained:.6f} by brute force on {count}")
        if self.max_spread is not None:
            lines.append(f"largest spread     {self.max_spread:.6g}")
        if self.losses:
            spread = "  ".join(f"{name} {value:.4g}" for name, value in self.losses.items())
            lines.append(f"loss quantiles     {spread}")
        lines += [f"reveals            {text}" for text in self.reveals]
        lines += [f"note               {text}" for text in self.notes]
        return "\n".join(lines)


def quantiles(losses: Floats) -> dict[str, float]:
    """Return the loss distribution as named quantiles."""
    if losses.size == 0:
        return {}
    # Between a finite loss and an infinite one nothing can be interpolated.
    method: Literal["linear", "higher"] = "linear" if np.isfinite(losses).all() else "higher"
    values = np.quantile(losses, QUANTILES, method=method)
    return {f"{q:.0%}": float(value) for q, value in zip(QUANTILES, values, strict=True)}


def ratio(loss: Floats, promised: Floats) -> Floats:
    """Return loss / promised, 0 where nothing is promised or nothing is lost."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = loss / promised
    found[(loss == 0) | np.isinf(promised)] = 0.0
    return found


def extremes_between(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return the largest ln P(y|x) - ln P(y|x') and ln P(y|x') - ln P(y|x), rows of a by rows of b.

    The larger of the two is the loss of a pair, their sum is its spread.
    """
    up, down = np.empty((len(a), len(b))), np.empty((len(a), len(b)))
    for i, row in enumerate(a):
        with np.errstate(invalid="ignore"):
            gap = row - b
        # Both impossible: no evidence either way.
        np.nan_to_num(gap, copy=False, nan=0.0, posinf=np.inf, neginf=-np.inf)
        # Without the 0 a loss of nothing could be written as -0.
        up[i], down[i] = gap.max(axis=1), 0.0 - gap.min(axis=1)
    return up, down


def losses_between(a: Floats, b: Floats) -> Floats:
    """Return the largest |ln P(y|x) - ln P(y|x')| for each row of a against each row of b."""
    return np.maximum(*extremes_between(a, b))


def spread_holds(kernel: FiniteKernel, found: float) -> bool:
    """Whether the largest spread that was found is within what is promised of it."""
    return found <= kernel.guarantee.worst_spread


def shown_spread(kernel: FiniteKernel, found: float) -> float | None:
    """Return the largest spread that was found, if the mechanism promises anything of it."""
    return None if kernel.guarantee.spread is None else found


def is_small(kernel: FiniteKernel, triples: int = BRUTE_FORCE) -> bool:
    """Whether there are few enough (input, input, output) triples to look at every one."""
    return len(kernel.space) ** 2 * len(kernel.outputs) <= triples


def brute_force(kernel: FiniteKernel) -> Certification:
    """Look at every pair and every output of a small kernel."""
    ids = np.arange(len(kernel.space), dtype=np.int64)
    logs = kernel.log_probs(ids)
    losses, ratios, pair, worst, spread = [], 0, None, 0.0, 0.0
    for i in ids[:-1]:
        rest = ids[i + 1 :]
        promised = kernel.promised(ids[i : i + 1], rest)[0]
        up, down = (sides[0] for sides in extremes_between(logs[i : i + 1], logs[rest]))
        loss, covered = np.maximum(up, down), np.isfinite(promised)
        found = ratio(loss, promised)
        losses.append(loss[covered])
        spread = max(spread, float((up + down)[covered].max(initial=0.0)))
        ratios += len(rest)
        if pair is None or found.max() > worst:
            worst = float(found.max())
            pair = (kernel.space.words[i], kernel.space.words[rest[int(found.argmax())]])
    every = np.concatenate(losses) if losses else np.empty(0)
    return Certification(
        holds=worst <= 1.0 and spread_holds(kernel, spread),
        worst=worst,
        worst_pair=pair,
        max_loss=float(every.max(initial=0.0)),
        covered=kernel.guarantee.relation.covered,
        method="recomputed",
        pairs=ratios,
        epsilon_diameter=kernel.guarantee.epsilon * kernel.guarantee.relation.diameter,
        losses=quantiles(every),
        reveals=kernel.guarantee.reveals,
        max_spread=shown_spread(kernel, spread),
    )


@dataclass(frozen=True)
class Bound:
    """An upper bound on the loss of every covered pair, as one pass over a large space found it."""

    worst: float
    max_loss: float
    pairs: int
    worst_pairs: Ids
    method: str = "bound"


def from_bound(kernel: FiniteKernel, bound: Bound, samples: int = 200) -> Certification:
    """Put brute force on the worst pairs and on random ones beside a bound."""
    source = np.random.default_rng(0)  # which pairs are looked at is no secret
    chosen = source.integers(len(kernel.space), size=(samples, 2))
    pairs = np.concatenate([bound.worst_pairs, chosen[chosen[:, 0] != chosen[:, 1]]])
    losses, spreads, promised = pairwise(kernel, pairs)
    spread = float(spreads.max(initial=0.0))
    ratios = ratio(losses, promised)
    attained, worst = float(ratios.max(initial=0.0)), bound.worst
    names = kernel.space.words
    first = pairs[0] if len(pairs) else None
    return Certification(
        holds=max(worst, attained) <= 1.0 and spread_holds(kernel, spread),
        worst=worst,
        worst_pair=None if first is None else (names[first[0]], names[first[1]]),
        max_loss=bound.max_loss,
        covered=kernel.guarantee.relation.covered,
        method=bound.method,
        pairs=bound.pairs,
        epsilon_diameter=kernel.guarantee.epsilon * kernel.guarantee.relation.diameter,
        attained=attained,
        attained_pairs=len(pairs),
        losses=quantiles(losses[len(bound.worst_pairs) :]),
        reveals=kernel.guarantee.reveals,
        notes=(f"loss quantiles are over {samples} random pairs",),
        max_spread=shown_spread(kernel, spread),
    )


def pairwise(kernel: FiniteKernel, pairs: Ids) -> tuple[Floats, Floats, Floats]:
    """Return the exact loss, spread and promise of each covered pair, from the integer tables."""
    losses, spreads, promised = np.empty(len(pairs)), np.empty(len(pairs)), np.empty(len(pairs))
    for i, (a, b) in enumerate(pairs):
        logs = kernel.log_probs(np.array([a, b]))
        up, down = (side[0, 0] for side in extremes_between(logs[:1], logs[1:]))
        losses[i], spreads[i] = max(up, down), up + down
        promised[i] = kernel.promised(np.array([a]), np.array([b]))[0, 0]
    covered = np.isfinite(promised)
    return losses[covered], spreads[covered], promised[covered]


def tighten(
    worst_at: Callable[[float], float], low: float, high: float, tolerance: float = 1e-6
) -> float:
    """Return the largest scale whose worst ratio is at most 1, to the tolerance.

    `worst_at(scale)` must grow with the scale. Regula falsi (Illinois) needs few evaluations,
    because the ratio is nearly linear; the answer is always a scale that was seen to hold.
    """
    at_high = worst_at(high)
    if at_high <= FULL:
        return high
    at_low, safe = worst_at(low), low
    if at_low >= FULL:
        return low
    side = 0
    for _ in range(60):
        scale = low + (1.0 - at_low) * (high - low) / (at_high - at_low)
        # Aim a little below, so that the step can end on the safe side.
        scale = min(max(scale - tolerance * 0.25 * (high - low), low), high)
        found = worst_at(scale)
        if found <= FULL:
            low, at_low, safe = scale, found, scale
            at_high = at_high if side != 1 else 1.0 + (at_high - 1.0) / 2
            side = 1
        else:
            high, at_high = scale, found
            at_low = at_low if side != -1 else 1.0 - (1.0 - at_low) / 2
            side = -1
        if found <= FULL and (1.0 - found < tolerance or high - low < tolerance * low):
            break
    return safe
