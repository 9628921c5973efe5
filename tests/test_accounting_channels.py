"""No bound is below what an attacker with all the time in the world finds out.

Small random channels are drawn one after the other, each chosen by what came out before. What all
of them together lose is computed from the table of all outcomes, and compared with what every
method says from the parameters alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from deniable.budget import (
    Approximate,
    Gaussian,
    Pure,
    Release,
    account,
    compose,
    methods,
    numerical,
)
from deniable.budget.methods import BOUND

pytest.importorskip("dp_accounting", reason="SKIPPED FOR WANT OF dp-accounting")

DELTAS = (1e-6, 1e-3, 0.03, 0.3)
Rows = np.ndarray[Any, np.dtype[np.float64]]


@pytest.fixture(autouse=True)
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds hold on every grid."""
    monkeypatch.setattr(numerical, "POINTS", 30_000)
    monkeypatch.setattr(numerical, "ONCE", 3_000)


@dataclass
class Draw:
    """What may be drawn next: pairs of rows, one for each history, and what is promised for all."""

    release: Release
    pairs: list[Rows] = field(default_factory=list)


def true_delta(upper: Rows, lower: Rows, epsilon: float) -> float:
    return float(np.maximum(0.0, upper - math.exp(epsilon) * lower).sum())


def true_epsilon(upper: Rows, lower: Rows, delta: float) -> float:
    """The least epsilon at a delta, by bisection; infinite if there is none."""
    low, high = 0.0, 200.0
    if true_delta(upper, lower, high) > delta:
        return math.inf
    if true_delta(upper, lower, low) <= delta:
        return 0.0
    for _ in range(100):
        middle = (low + high) / 2
        inside = true_delta(upper, lower, middle) <= delta
        low, high = (low, middle) if inside else (middle, high)
    return low


def pure(source: Any, histories: int) -> Draw:
    """Random rows, peaked or flat; some of an exponential mechanism, some randomised responses."""
    outputs, scale = int(source.integers(2, 4)), 10 ** source.uniform(-1.5, 0.6)
    logs = scale * source.normal(size=(histories, 2, outputs))
    if source.random() < 0.4:
        logs = scale * np.stack([np.eye(2), np.eye(2)[::-1]])[source.integers(0, 2, histories)]
    rows = np.exp(logs)
    rows /= rows.sum(axis=2, keepdims=True)
    losses = np.log(rows[:, 0]) - np.log(rows[:, 1])
    spread = float((losses.max(axis=1) - losses.min(axis=1)).max())
    return Draw(Pure(float(np.abs(losses).max()), spread), list(rows))


def approximate(source: Any, histories: int) -> Draw:
    """Now and then everything comes out, otherwise a randomised response."""
    epsilon, delta = source.uniform(0.1, 1.5), 10 ** source.uniform(-5, -2)
    lie = (1 - delta) / (1 + math.exp(epsilon))
    pair = np.array([[delta, 0, 1 - delta - lie, lie], [0, delta, lie, 1 - delta - lie]])
    return Draw(
        Approximate(epsilon, delta), [pair[:, source.permutation(4)] for _ in range(histories)]
    )


def gaussian(source: Any, histories: int, rate: float) -> Draw:
    """Noise of which only is seen between which of two thresholds it lies."""
    sigma, sensitivity = source.uniform(0.4, 3.0), source.uniform(0.5, 2.0)
    pairs = []
    for _ in range(histories):
        edges = np.array([-np.inf, *np.sort(source.normal(size=2) * sigma), np.inf])
        without = np.diff(norm.cdf(edges / sigma))
        moved = np.diff(norm.cdf((edges - sensitivity) / sigma))
        pairs.append(np.stack([without, (1 - rate) * without + rate * moved]))
    return Draw(Gaussian(sigma, sensitivity, rate), pairs)


def draw(source: Any, kind: str, histories: int) -> Draw:
    if kind == "pure":
        return pure(source, histories)
    if kind == "approximate":
        return approximate(source, histories)
    return gaussian(
        source, histories, 1.0 if kind == "gaussian" else float(source.uniform(0.05, 0.6))
    )


def composed(source: Any, kinds: list[str]) -> tuple[list[Release], Rows]:
    """Return what was drawn, and how likely each history is, of each of the two neighbours."""
    releases, joint = [], np.ones((2, 1))
    for kind in kinds:
        one = draw(source, kind, joint.shape[1])
        releases.append(one.release)
        parts = [joint[:, [i]] * pair for i, pair in enumerate(one.pairs)]
        joint = np.concatenate(parts, axis=1)
    assert np.allclose(joint.sum(axis=1), 1.0)
    return releases, joint


KINDS = [
    ["pure"] * 2, ["pure"] * 4, ["gaussian"] * 2, ["gaussian"] * 4, ["sampled"] * 2,
    ["sampled"] * 3, ["approximate"] * 3, ["pure", "approximate", "pure"],
    ["gaussian", "approximate"], ["pure", "gaussian", "pure"],
    ["gaussian", "sampled", "sampled"], ["sampled", "pure", "gaussian"],
]  # fmt: skip


@pytest.mark.parametrize("kinds", KINDS, ids="-".join)
@pytest.mark.parametrize("seed", range(4))
def test_no_bound_is_below_the_truth(kinds: list[str], seed: int) -> None:
    source = np.random.default_rng([seed, *map(ord, kinds[0]), len(kinds)])
    releases, joint = composed(source, kinds)
    answered = set()
    for delta in DELTAS:
        truth = max(true_epsilon(*joint, delta), true_epsilon(*joint[::-1], delta))
        for one in account(compose(releases), delta):
            answered.add(one.method.name)
            if one.method.kind == BOUND:
                assert one.epsilon >= truth - 1e-9, (one, truth, releases)
            assert not (one.best and one.method.kind != BOUND)
    assert {"basic", "rdp", "pld"} <= answered


def test_responses_that_are_met_leave_nothing_to_gain() -> None:
    """The comparison above isn't idle: here the truth is what pld says."""
    pair = np.array([[0.8, 0.2], [0.2, 0.8]])
    joint = np.array(
        [[math.prod(pair[i][list(each)]) for each in product((0, 1), repeat=4)] for i in (0, 1)]
    )
    for delta in DELTAS:
        truth = true_epsilon(*joint, delta)
        found = methods()["pld"].compute({Pure(math.log(4)): 4}, delta)
        assert truth - 1e-9 <= found <= truth * (1 + 1e-6) + 1e-9


def test_whoever_may_choose_the_next_channel_gains_nothing() -> None:
    """The worst history is charged to all of them: parameters are those of the worst."""
    source = np.random.default_rng(5)
    releases, joint = composed(source, ["pure", "pure", "pure"])
    alone = compose([Pure(max(one.epsilon for one in releases if isinstance(one, Pure)))] * 3)
    [best] = [one for one in account(alone, 1e-3) if one.best]
    assert best.epsilon >= true_epsilon(*joint, 1e-3)
