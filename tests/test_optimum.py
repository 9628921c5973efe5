"""The optimal channel: feasible, the best, and never better elsewhere."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import linprog

import toys
from deniable import Space, mechanism
from deniable.errors import ParameterError
from deniable.mechanisms import optimal
from deniable.optimum import ALLOWANCE, bayes_success, largest_loss, least_distance, within

Floats = npt.NDArray[np.float64]
EPSILONS = (0.1, 1.0, 3.0, 8.0)


def distances(count: int, seed: int = 0) -> Floats:
    points = np.random.default_rng(seed).normal(size=(count, 6))
    found = np.linalg.norm(points[:, None] - points[None], axis=2)
    return np.asarray(found / found.max())


def full_program(distance: Floats, epsilon: float, cap: float | None = None) -> float:
    """The least distance by every constraint written out, with another program's interface."""
    n = len(distance)
    size = n * n
    high = n if cap is not None else 0
    rows = []
    for y in range(n):
        for x in range(n):
            for other in range(n):
                if x != other:
                    row = np.zeros(size + high)
                    row[x * n + y], row[other * n + y] = 1.0, -math.exp(epsilon)
                    rows.append(row)
            if cap is not None:
                row = np.zeros(size + high)
                row[x * n + y], row[size + y] = 1.0, -1.0
                rows.append(row)
    limits = [0.0] * len(rows)
    if cap is not None:
        rows.append(np.concatenate([np.zeros(size), np.ones(n)]))
        limits.append(cap * n)
    sums = np.zeros((n, size + high))
    for x in range(n):
        sums[x, x * n : (x + 1) * n] = 1.0
    cost = np.concatenate([distance.ravel() / n, np.zeros(high)])
    found = linprog(cost, np.array(rows), limits, sums, np.ones(n), (0, 1), method="highs")
    assert found.status == 0
    return float(found.fun)


def expected(channel: Floats, distance: Floats) -> float:
    return float((channel * distance).sum() / len(distance))


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("count", [2, 5, 9])
def test_nothing_is_better(count: int, epsilon: float) -> None:
    distance = distances(count, count)
    found = least_distance(distance, epsilon)
    assert expected(found, distance) == pytest.approx(full_program(distance, epsilon), abs=1e-6)


@pytest.mark.parametrize("epsilon", [*EPSILONS, 1e-9, 20.0, 3000.0])
@pytest.mark.parametrize("cap", [None, 0.3])
@pytest.mark.parametrize("spread_out", [False, True])
def test_it_is_a_channel_that_loses_at_most_epsilon(
    epsilon: float, cap: float | None, spread_out: bool
) -> None:
    found = least_distance(distances(12), epsilon, cap, np.arange(12) if spread_out else None)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
    assert found.min() >= 0.0
    assert largest_loss(found) <= epsilon
    if cap is not None:
        assert bayes_success(found) <= cap + 1e-6


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_certified_loss_is_epsilon_to_1e_7_and_never_above(epsilon: float) -> None:
    source = np.random.default_rng(1)
    space = Space.from_arrays([f"w{i}" for i in range(60)], source.normal(size=(60, 8)))
    found = mechanism("optimal", epsilon=epsilon, K=20).bind(space).certify()
    assert found.holds
    assert epsilon - 1e-6 <= found.max_loss <= epsilon + 1e-9


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_a_cap_on_the_best_guess_is_kept_at_the_least_distance(epsilon: float) -> None:
    distance = distances(6)
    free = least_distance(distance, epsilon)
    cap = 0.75 * bayes_success(free) + 0.25 / 6
    found = least_distance(distance, epsilon, cap)
    assert bayes_success(found) == pytest.approx(cap, abs=1e-6)
    assert expected(found, distance) == pytest.approx(
        full_program(distance, epsilon, cap), abs=1e-6
    )
    assert expected(found, distance) > expected(free, distance)


def test_a_cap_below_one_of_n_is_one_of_n() -> None:
    found = least_distance(distances(2), 3.0, 0.3)
    assert bayes_success(found) == pytest.approx(0.5, abs=1e-6)


@pytest.mark.parametrize("epsilon", [1.0, 3.0, 8.0])
def test_adaptive_protects_the_word_that_survives_most_often(epsilon: float) -> None:
    distance = distances(15)
    plain, spread = (least_distance(distance, epsilon, None, s) for s in (None, np.arange(15)))
    assert np.diag(spread).max() <= np.diag(plain).max() + 1e-7
    allowed = (1 + ALLOWANCE) * expected(plain, distance)
    assert expected(spread, distance) <= allowed + 1e-6
    if epsilon == 3.0:
        assert np.diag(spread).max() < 0.95 * np.diag(plain).max()


@pytest.mark.parametrize("name", ["custext", "permute-and-flip", "randomised-response"])
@pytest.mark.parametrize("epsilon", [0.5, 3.0, 8.0])
def test_no_other_mechanism_is_nearer_at_its_recomputed_loss(name: str, epsilon: float) -> None:
    source = np.random.default_rng(4)
    space = Space.from_arrays([f"w{i}" for i in range(40)], source.normal(size=(40, 5)))
    tight = {} if name == "randomised-response" else {"calibrate": "tight"}
    ids, distance = np.arange(40), space.distances(np.arange(40))
    other = mechanism(name, epsilon=epsilon, K=10, **tight).bind(space)
    best = mechanism("optimal", epsilon=other.certify().max_loss, K=10).bind(space)
    # The sets are scaled each by its largest distance, so each is compared by itself.
    for words in best.mapping.outputs:  # type: ignore[attr-defined]
        inside = np.ix_(words, words)
        rows = [np.exp(kernel.log_probs(ids))[inside] for kernel in (best, other)]
        mean = [expected(row, distance[inside]) for row in rows]
        assert mean[0] <= mean[1] + 1e-6


def test_adaptive_knows_which_of_equal_words_is_which() -> None:
    points = np.array([0.0, 0.0, 1.0, 2.0])
    distance = np.abs(points[:, None] - points[None])
    plain, spread = (least_distance(distance, 2.0, None, s) for s in (None, np.arange(4)))
    assert np.diag(spread).max() <= np.diag(plain).max() + 1e-9


def test_equal_words_cost_nothing() -> None:
    kernel = mechanism("optimal", epsilon=1.0, K=4).bind(toys.space("all alike"))
    assert kernel.certify().holds


def test_mending_leaves_a_sound_channel_as_it_is() -> None:
    sound = np.array([[0.7, 0.3], [0.3, 0.7]])
    assert (within(sound, 1.0) == sound).all()
    mended = within(np.array([[1.0, -1e-10], [1e-7, 1.0]]), 1.0)
    assert largest_loss(mended) <= 1.0


def test_channels_are_found_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DENIABLE_CACHE", str(tmp_path))
    space, made = toys.space("random"), mechanism("optimal", epsilon=2.0, K=5)
    first = made.bind(space).log_probs(np.arange(16))

    def never(*_: object, **__: object) -> Floats:
        raise AssertionError("solved again")

    monkeypatch.setattr(optimal, "least_distance", never)
    assert (made.bind(space).log_probs(np.arange(16)) == first).all()
    with pytest.raises(AssertionError, match="solved again"):
        mechanism("optimal", epsilon=2.5, K=5).bind(space)


@pytest.mark.parametrize("damage", [np.nan, 0.0, np.inf, -np.inf, -3.0])
def test_a_damaged_channel_in_the_cache_is_solved_again(
    damage: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DENIABLE_CACHE", str(tmp_path))
    space, made = toys.space("random"), mechanism("optimal", epsilon=20.0, K=5)
    first = made.bind(space).log_probs(np.arange(16))
    (path,) = tmp_path.glob("optimal*")
    table = np.load(path)
    table[9, 0] = damage
    np.save(path, table, allow_pickle=False)
    assert (made.bind(space).log_probs(np.arange(16)) == first).all()


def test_sets_that_are_too_large_are_refused() -> None:
    source = np.random.default_rng(0)
    space = Space.from_arrays([f"w{i}" for i in range(300)], source.normal(size=(300, 2)))
    with pytest.raises(ParameterError, match="at most 200 words"):
        mechanism("optimal", epsilon=1.0, K=250).bind(space)


def test_the_numbers_of_a_typical_space() -> None:
    """K = 20: what the exponential mechanism leaves on the table, as correctness.md has it."""
    source = np.random.default_rng(0)
    points = source.normal(size=(400, 50))
    space = Space.from_arrays([f"w{i}" for i in range(400)], points)
    ids, distance = np.arange(400), space.distances(np.arange(400))

    def mean(name: str, **more: str) -> float:
        kernel = mechanism(name, epsilon=3.0, K=20, **more).bind(space)
        rows = np.exp(kernel.log_probs(ids))
        return float((rows * distance).sum() / 400)

    plain, tight, best = mean("custext"), mean("custext", calibrate="tight"), mean("optimal")
    assert best < 0.85 * tight
    assert tight < 0.9 * plain
