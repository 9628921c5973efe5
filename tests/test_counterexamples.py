"""Promises that papers or programs make and don't keep: the certificate catches each.

CluSanT's Theorem 5 at small k is in tests/test_formulas.py, a vickrey that drops the word in
tests/test_audit.py.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from deniable import Sanitizer, Space, mechanism
from deniable.certify import brute_force
from deniable.kernels.exponential import ExponentialKernel, Measure
from deniable.mechanism import Ids
from deniable.mechanisms.tem import Tem

Floats = npt.NDArray[np.float64]
CROWD = 300


class WrongScore(ExponentialKernel):
    """TEM with ln(|W| / |L_x|) as the second term of the rest's score."""

    def log_weights(self, ids: Ids) -> Floats:
        distances = self.space.distances(ids)
        near = distances <= self.measure.cap
        rest = (~near).sum(axis=1, keepdims=True)
        ratio = len(self.space) / near.sum(axis=1, keepdims=True)
        score = -self.measure.cap + (2 / self.mechanism.epsilon) * np.log(ratio)
        share = self.rate * score - np.log(np.maximum(rest, 1))
        return np.where(near, -self.rate * distances, share)


def crowd_at_the_threshold(gamma: float, claim: float) -> Space:
    """x and x' among near words, and a crowd within gamma of x and just beyond it of x'."""
    names = ["x", "x'", *(f"n{i}" for i in range(CROWD)), *(f"c{i}" for i in range(CROWD))]
    near, crowd = np.full(CROWD, -claim / 2), np.full(CROWD, gamma - claim / 4)
    return Space.from_arrays(names, np.concatenate([[0.0, -claim], near, crowd])[:, None])


def test_tems_wrong_score_loses_many_times_its_claim() -> None:
    made, claim = Tem(epsilon=1.0, beta=0.3), 0.12
    gamma = made.threshold(2 + 2 * CROWD)
    space = crowd_at_the_threshold(gamma, claim)
    measure = Measure(space, gamma)
    wrong = brute_force(WrongScore(made, measure, 1.0))
    assert not wrong.holds
    logs = WrongScore(made, measure, 1.0).log_probs([0, 1])
    # What is really lost, where 0.12 is promised.
    assert np.abs(logs[0] - logs[1]).max() > 4.0
    assert made.bind(space).certify().holds


@pytest.mark.parametrize("mapping", ["aggressive", "balanced"])
def test_overlapping_mappings_tell_some_words_apart_with_certainty(mapping: str) -> None:
    """The thesis promises eps for all; the certificate covers the pairs that share a set."""
    source = np.random.default_rng(0)
    space = Space.from_arrays([f"w{i}" for i in range(500)], source.normal(size=(500, 10)))
    kernel: Any = mechanism("custext", epsilon=1.0, K=20, mapping=mapping).bind(space)
    ids = np.arange(500)
    logs = kernel.log_probs(ids)
    labels = kernel.mapping.groups.labels
    infinite = 0
    for a, b in source.integers(500, size=(300, 2)):
        apart = np.isneginf(logs[a]) != np.isneginf(logs[b])
        assert apart.any() == (labels[a] != labels[b])
        infinite += apart.any()
    assert infinite > 250
    found = kernel.certify()
    assert found.holds
    assert found.covered < 0.05
    assert "no promise" in " ".join(found.reveals)
    if mapping == "aggressive":
        assert kernel.mapping.left_alone > 0.9
        assert found.covered < 0.001


def test_a_remainder_of_one_is_a_deterministic_map_and_said_to_be() -> None:
    space = Space.from_arrays([f"w{i}" for i in range(21)], np.arange(21.0)[:, None])
    kernel: Any = mechanism("custext", epsilon=1.0, K=20, mapping="conservative").bind(space)
    lonely = int(np.flatnonzero(kernel.exposes(np.arange(21)))[0])
    assert (kernel.sample(np.full(100, lonely)) == lonely).all()
    assert np.isinf(kernel.promised(np.array([lonely]), np.array([0]))).all()
    found = kernel.certify()
    assert found.holds
    assert "1 words of the space are copied as they are" in found.reveals
    out = Sanitizer(kernel.mechanism, space=space).sanitize(f"w{lonely} w{lonely} w3")
    assert out.certificate.document["tokens_charged"] == 1
    assert out.certificate.in_clear["words alone in their set"]["count"] == 2
    joined: Any = mechanism("custext", epsilon=1.0, K=20).bind(space)
    assert not joined.exposes(np.arange(21)).any()


def test_rantexts_epsilon_does_not_hold_between_all_words() -> None:
    """Tong et al. prove eps for words of one list; between others it's 20."""
    source = np.random.default_rng(0)
    space = Space.from_arrays([f"w{i}" for i in range(300)], source.normal(size=(300, 20)))
    found = mechanism("rantext", epsilon=1.0, share=0.05).bind(space).certify()
    assert found.holds
    assert found.max_loss > 15.0
    assert found.max_loss <= 34 * math.log(2) + 1e-6
