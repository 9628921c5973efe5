"""Scores of one output set to rows of log-probabilities, and the scale that uses up a promise."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from deniable.sampling import Floats

LARGEST_SCALE = 1000.0


def exponential(logs: Floats) -> Floats:
    """Return the exponential mechanism's rows: weights exp(logs), normalised."""
    logs = logs - logs.max(axis=1, keepdims=True)
    found: Floats = logs - np.log(np.exp(logs).sum(axis=1, keepdims=True))
    return found


def permute_and_flip(logs: Floats) -> Floats:
    """Return the rows of: in random order, take an output with chance exp(its log - the largest).

    An output y with chance p_y to be taken when its turn comes is taken with probability
    p_y times the integral over s in (0, 1) of the product of (1 - s p_z) over all z but y: give
    each output a uniform time s, and ask that nobody before y was taken. The integrand is a
    polynomial of degree m - 1, so Gauss and Legendre's rule with m / 2 nodes is exact.
    """
    chances = np.exp(logs - logs.max(axis=1, keepdims=True))
    nodes, weights = np.polynomial.legendre.leggauss(logs.shape[1] // 2 + 1)
    found = np.zeros_like(chances)
    for node, weight in zip((nodes + 1.0) / 2.0, weights / 2.0, strict=True):
        left = 1.0 - node * chances
        found += weight * np.exp(np.log(left).sum(axis=1, keepdims=True)) / left
    found *= chances
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(found / found.sum(axis=1, keepdims=True)), dtype=np.float64)


def tight_scale(score: Floats, epsilon: float, law: Callable[[Floats], Floats]) -> float:
    """Return the scale at which the set's largest loss is epsilon, at most 1000.

    A set whose rows are all alike loses nothing at any scale; the limit keeps it finite.
    """
    if len(score) < 2:  # all but one are copied as they are
        return 1.0

    def loss(scale: float) -> float:
        logs = law(score * (scale * epsilon / 2.0))
        most = logs.max(axis=0)
        # An output that no word can become tells nothing.
        possible = most > -np.inf
        return float((most[possible] - logs.min(axis=0)[possible]).max(initial=0.0))

    low, high = 1.0, 2.0
    while loss(high) <= epsilon and high < LARGEST_SCALE:
        low, high = high, high * 2.0
    if high >= LARGEST_SCALE:
        return low
    for _ in range(40):
        middle = (low + high) / 2.0
        low, high = (middle, high) if loss(middle) <= epsilon else (low, middle)
    return low
