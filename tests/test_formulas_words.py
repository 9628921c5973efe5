"""The formulas of tem, diffractor, rantext, permute-and-flip and randomised response, anew."""

from __future__ import annotations

import itertools
import math

import numpy as np
import numpy.typing as npt
import pytest

import toys
from deniable import Space, mechanism
from deniable.mechanisms.diffractor import sorted_lists
from deniable.mechanisms.rantext import noise_lengths, published_factor
from deniable.sampling import FLOOR, TOTAL
from deniable.scaling import permute_and_flip
from test_formulas import EPSILONS, SHAPES, check, euclid, shares

Floats = npt.NDArray[np.float64]


def points_of(space: Space) -> Floats:
    return space.vectors.astype(np.float64)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("beta", [0.001, 0.4])
@pytest.mark.parametrize("toy", SHAPES)
def test_tem(toy: str, beta: float, epsilon: float) -> None:
    """The paper's two steps: near words and 'the rest' compete; then one of the rest, uniformly."""
    space = toys.space(toy)
    points, count = points_of(space), len(space)
    gamma = 2 / epsilon * math.log(max((1 - beta) * (count - 1) / beta, math.e))
    rows = []
    for x in points:
        distances = [euclid(x, y) for y in points]
        near = [y for y in range(count) if distances[y] <= gamma]
        rest = [y for y in range(count) if distances[y] > gamma]
        scores = [-distances[y] for y in near]
        if rest:
            scores.append(-gamma + 2 / epsilon * math.log(len(rest)))
        # Gumbel noise of scale 2 / eps on the scores, the largest wins: the exponential mechanism.
        won = shares([epsilon / 2 * score for score in scores])
        row = [0.0] * count
        for y, chance in zip(near, won, strict=False):
            row[y] = chance
        for y in rest:
            row[y] = won[-1] / len(rest)
        rows.append(row)
    check(mechanism("tem", epsilon=epsilon, beta=beta).bind(space), rows)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 4.0])
@pytest.mark.parametrize("lists", [1, 3])
@pytest.mark.parametrize("toy", SHAPES)
def test_diffractor(toy: str, lists: int, epsilon: float) -> None:
    """Shifts one by one, cut off at the ends, far beyond both of them."""
    space = toys.space(toy)
    count, far = len(space), 4000
    rows = np.zeros((count, count))
    for order in sorted_lists(space, lists).tolist():
        assert sorted(order) == list(range(count))
        rank = {word: i for i, word in enumerate(order)}
        for word in range(count):
            for shift in range(-far, far + 1):
                chance = math.tanh(epsilon / 2) * math.exp(-epsilon * abs(shift))
                reached = order[min(max(rank[word] + shift, 0), count - 1)]
                rows[word, reached] += chance / lists
    check(mechanism("diffractor", epsilon=epsilon, lists=lists).bind(space), rows.tolist())


def test_diffractors_lists_are_sorted_by_the_distance_from_their_head() -> None:
    space = toys.space("random")
    for order in sorted_lists(space, 4):
        distances = space.distances([order[0]])[0]
        assert (np.diff(distances[order]) >= 0).all()


@pytest.mark.parametrize("epsilon", [1e-9, 1e-5, 0.001, 0.3, 5.0, 50.0, 3000.0])
@pytest.mark.parametrize("count", [2, 3, 1000, 36_000])
def test_the_table_of_shifts_is_exact_to_two_units(epsilon: float, count: int) -> None:
    """Also in its sums from both ends, which fall on the first and the last word of a list."""
    space = Space.from_arrays([f"w{i}" for i in range(count)], np.arange(count)[:, None])
    kernel = mechanism("diffractor", epsilon=epsilon, lists=1).bind(space)
    counts = kernel._shifts  # type: ignore[attr-defined]
    assert int(counts.sum(dtype=np.uint64)) == TOTAL
    away = np.arange(count - 1, -1, -1)
    expected = np.exp(-epsilon * away) / (1 + math.exp(-epsilon))  # P(shift <= -away)
    for sums in (np.cumsum(counts)[:count], np.cumsum(counts[::-1])[:count]):
        found = sums[:-1].astype(np.float64) / TOTAL
        np.testing.assert_allclose(found, expected[:-1], rtol=1e-12, atol=2.5 / TOTAL)


@pytest.mark.parametrize("count", [5, 60])
@pytest.mark.parametrize("epsilon", [5e-324, 1e-300, 0.05, 1.0, 9.0, 1e300])
def test_the_bound_of_diffractor_is_the_loss_of_ranks(count: int, epsilon: float) -> None:
    space = Space.from_arrays([f"w{i}" for i in range(count)], np.arange(count)[:, None])
    kernel = mechanism("diffractor", epsilon=epsilon, lists=1).bind(space)
    brute, bound = kernel.certify(), kernel.bound()  # type: ignore[attr-defined]
    assert brute.method == "recomputed"
    assert bound.worst == pytest.approx(brute.worst, rel=1e-9, abs=1e-9)
    assert bound.max_loss <= brute.max_loss * (1 + 1e-12)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 14.0])
@pytest.mark.parametrize("toy", SHAPES)
def test_rantext(toy: str, epsilon: float) -> None:
    """Tong et al., Algorithm 2, for each of the radii; the factor as published."""
    space = toys.space(toy)
    points = points_of(space)
    factor = epsilon if epsilon < 2 else 0.0165 * math.log(19.0648 * epsilon - 38.1294) + 9.3111
    assert published_factor(epsilon) == pytest.approx(factor)
    radii = noise_lengths(space) / factor
    rows = np.zeros((len(space), len(space)))
    for i, x in enumerate(points):
        distances = [euclid(x, y) for y in points]
        for radius in radii:
            listed = [y for y in range(len(space)) if distances[y] < radius]
            scores = [epsilon / 2 * (1 - distances[y] / radius) for y in listed]
            for y, chance in zip(listed, shares(scores), strict=True):
                rows[i, y] += chance / len(radii)
    check(mechanism("rantext", epsilon=epsilon).bind(space), rows.tolist())


def test_rantexts_radii_are_those_of_laplace_noise_on_each_coordinate() -> None:
    space = toys.space("random")
    spans = np.ptp(points_of(space), axis=0)
    noise = np.random.default_rng(3).laplace(scale=spans, size=(200_000, len(spans)))
    lengths = np.linalg.norm(noise, axis=1)
    radii = noise_lengths(space)
    expected = np.quantile(lengths, (np.arange(len(radii)) + 0.5) / len(radii))
    np.testing.assert_allclose(radii, expected, rtol=0.06)


def test_a_share_of_rantext_is_the_mean_size_of_its_lists() -> None:
    source = np.random.default_rng(0)
    space = Space.from_arrays([f"w{i}" for i in range(400)], source.normal(size=(400, 8)))
    kernel = mechanism("rantext", epsilon=3.0, share=0.1).bind(space)
    distances = space.distances(np.arange(400))
    held = [(distances < radius).mean() for radius in kernel.radii]  # type: ignore[attr-defined]
    assert np.mean(held) == pytest.approx(0.1, rel=0.05)


@pytest.mark.parametrize("count", [1, 2, 3, 6])
def test_permute_and_flip_is_what_its_algorithm_draws(count: int) -> None:
    """Every order of the outputs, every coin: enumerated."""
    scores = np.random.default_rng(count).uniform(-3, 0, size=(1, count))
    chances = np.exp(scores - scores.max())[0]
    expected = np.zeros(count)
    for order in itertools.permutations(range(count)):
        left = 1.0
        for y in order:
            expected[y] += left * chances[y] / math.factorial(count)
            left *= 1.0 - chances[y]
    np.testing.assert_allclose(np.exp(permute_and_flip(scores)[0]), expected, rtol=1e-12)


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_permute_and_flip_keeps_a_word_more_often_at_the_same_nominal_epsilon(
    epsilon: float,
) -> None:
    space, ids = toys.space("random"), np.arange(16)
    rows = [
        np.exp(mechanism(name, epsilon=epsilon, K=8).bind(space).log_probs(ids))
        for name in ("permute-and-flip", "custext")
    ]
    assert (np.diag(rows[0]) >= np.diag(rows[1])).all()


@pytest.mark.parametrize("epsilon", [0.1, 2.0, 9.0])
def test_randomised_response(epsilon: float) -> None:
    space = toys.space("random")
    kernel = mechanism("randomised-response", epsilon=epsilon, K=5).bind(space)
    rows = np.zeros((16, 16))
    for words in kernel.mapping.outputs:  # type: ignore[attr-defined]
        for x in words:
            for y in words:
                weight = math.exp(epsilon) if x == y else 1.0
                rows[x, y] = weight / (math.exp(epsilon) + len(words) - 1)
    check(kernel, rows.tolist())
    found = kernel.certify()
    # The uniform share of the table takes a little of it away.
    assert found.max_loss == pytest.approx(epsilon, abs=1e-6)


def test_the_uniform_share_of_diffractor_is_drawn() -> None:
    """At an enormous epsilon a word changes only by the share, and then to any word."""
    space = toys.space("random")
    logs = mechanism("diffractor", epsilon=500.0).bind(space).log_probs([4])[0]
    assert logs[4] == pytest.approx(0.0, abs=1e-8)
    np.testing.assert_allclose(np.exp(np.delete(logs, 4)), FLOOR, rtol=1e-9)
