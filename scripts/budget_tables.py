"""The worked numbers of docs/what-a-budget-means.md, computed anew for every check."""

from __future__ import annotations

from math import ceil

import numpy as np

import blocks
from deniable import Space, mechanism
from deniable.budget import Gaussian, Pure, Release, account
from deniable.kernels.partitioned import PartitionKernel

DELTA = 1e-6
# How many draws: a word, a note, a file of notes, a life of files.
UNITS = {
    "a token": 1,
    "a document of 100 tokens": 100,
    "a person: 10 such documents": 1_000,
    "a person: 1,000 such documents": 100_000,
}
BOUNDS = ("basic", "advanced", "zcdp", "pld")
# The example of a training with noise: what approximations say of it, and what holds.
TRAINING: dict[Release, int] = {Gaussian(sigma=0.6, sensitivity=1.0, sample_rate=0.01): 1000}
TRAINING_DELTA = 1e-5
EPSILONS = (1.0, 2.0, 3.0, 8.0)
Z = 1.959964  # of 95 %


def units() -> str:
    """What epsilon 1 a token becomes for larger units, by method."""
    rows = []
    for name, draws in UNITS.items():
        rows.append([name, _number(draws), _least(Pure(1.0, 1.0), draws), _least(Pure(1.0), draws)])
    heads = ["exponential mechanism", "any other"]
    columns = [f"at delta {DELTA:g}, {head}" for head in heads]
    return blocks.table(["unit", "without a delta", *columns], rows)


def _least(once: Release, draws: int) -> str:
    """The least bound, and its method."""
    [best] = [one for one in account({once: draws}, DELTA, BOUNDS) if one.best]
    return f"{_number(best.epsilon)} ({best.method.name})"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def methods() -> str:
    """What every method says of one training."""
    rows = [
        [f"`{one.method.name}`", one.method.about, one.method.kind, _number(one.epsilon)]
        for one in account(TRAINING, TRAINING_DELTA)
    ]
    return blocks.table(["method", "what it is", "kind", "epsilon"], rows)


def queries() -> str:
    """How many answers give a word away, and how often one answer does."""
    rows = []
    for epsilon in EPSILONS:
        first, second = _two_best(epsilon)
        gap = first - second
        with np.errstate(divide="ignore"):  # two words with equal vectors are never told apart
            needed = Z**2 * (first + second - gap**2) / gap**2
        rows.append(
            [
                f"{epsilon:g}",
                f"{ceil(float(np.median(needed))):,}",
                f"{100 * float(np.median(first)):.1f} %",
                "no number of answers",
                f"{100 * float(np.median(first)):.1f} %",
            ]
        )
    heads = ["epsilon", "answers for 95 %", "right after one", "remembered: for 95 %"]
    return blocks.table([*heads, "right after any number"], rows)


def _two_best(epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """Return each word's chance to stay, and the largest chance of another answer."""
    kernel = mechanism("custext", epsilon=epsilon).bind(Space.default())
    assert isinstance(kernel, PartitionKernel)  # noqa: S101 (what is drawn inside sets)
    stay, other = [], []
    for group in range(len(kernel.mapping.groups)):
        chances, members = kernel.probabilities(group), kernel.mapping.groups[group]
        own = np.argmax(kernel.mapping.outputs[group][None, :] == members[:, None], axis=1)
        rows = np.arange(len(members))
        stay.append(chances[rows, own])
        chances[rows, own] = 0.0
        other.append(chances.max(axis=1))
    return np.concatenate(stay), np.concatenate(other)
