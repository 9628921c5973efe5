"""Noise has the density that its theorem needs, at any epsilon; and 30 % off is rejected."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

import toys
from deniable import Space, mechanism
from deniable.errors import NoTableError, ParameterError
from deniable.guarantee import AUDITED
from deniable.kernels.laplace import LaplaceKernel
from deniable.mechanisms.mahalanobis import covariance
from deniable.nearest import NearestWords
from deniable.noise import directions, gammas, normals, uniforms
from deniable.testing import seeded

Floats = npt.NDArray[np.float64]
NEVER = 1e-9
DIMENSIONS = (1, 2, 3, 50, 300)
LAPLACE = (("fbdd", {}), ("mahalanobis", {"lam": 0.6}), ("vickrey", {"lam": 0.6, "t": 0.0}))


def fits(values: Floats, law: Any) -> bool:
    return bool(stats.kstest(values, law.cdf).pvalue > NEVER)


def test_uniforms_are_uniform_and_never_0() -> None:
    with seeded(1):
        drawn = uniforms(200_000)
    assert 0.0 < drawn.min() <= drawn.max() <= 1.0
    assert fits(drawn, stats.uniform())


@pytest.mark.parametrize("columns", [1, 2, 7])
def test_normals_are_normal_and_independent(columns: int) -> None:
    with seeded(2):
        drawn = normals(30_000, columns)
    assert fits(drawn.ravel(), stats.norm())
    # The two numbers that Box and Muller make from one pair stand half a table apart.
    half = drawn.size // 2
    first, second = drawn.ravel()[:half], drawn.ravel()[half : 2 * half]
    assert stats.spearmanr(first, second).pvalue > NEVER
    assert stats.spearmanr(first**2, second**2).pvalue > NEVER
    assert fits((first**2 + second**2) / 2.0, stats.expon())


@pytest.mark.parametrize("dimensions", DIMENSIONS)
def test_the_radius_follows_its_law_and_30_percent_off_does_not(dimensions: int) -> None:
    with seeded(3):
        radius = gammas(20_000, dimensions)
    assert fits(radius, stats.gamma(dimensions))
    assert not fits(1.3 * radius, stats.gamma(dimensions))
    assert not fits(radius / 1.3, stats.gamma(dimensions))


@pytest.mark.parametrize("dimensions", [2, 3, 50, 300])
def test_directions_are_uniform_on_the_sphere(dimensions: int) -> None:
    with seeded(4):
        drawn = directions(20_000, dimensions)
    np.testing.assert_allclose(np.linalg.norm(drawn, axis=1), 1.0, rtol=1e-12)
    law = stats.beta(0.5, (dimensions - 1) / 2)
    probe = np.random.default_rng(0).normal(size=dimensions)
    probe /= np.linalg.norm(probe)
    along = drawn @ probe
    assert fits(along**2, law)
    assert stats.binomtest(int((along > 0).sum()), len(along)).pvalue > NEVER
    # Noise of independent Laplace coordinates isn't round: its direction leans to the axes.
    square = np.random.default_rng(0).laplace(size=(20_000, dimensions))
    square /= np.linalg.norm(square, axis=1, keepdims=True)
    assert not fits(square[:, 0] ** 2, law)


def cloud(dimensions: int) -> Space:
    source = np.random.default_rng(dimensions)
    stretched = source.normal(size=(40, dimensions)) * np.linspace(0.2, 3.0, dimensions)
    return Space.from_arrays([f"w{i}" for i in range(40)], stretched + 7.0)


@pytest.mark.parametrize("dimensions", [2, 5, 60])
@pytest.mark.parametrize(("name", "parameters"), LAPLACE)
def test_noisy_points_have_the_density_of_the_theorem(
    name: str, parameters: dict[str, Any], dimensions: int
) -> None:
    space, epsilon = cloud(dimensions), 3.0
    kernel = mechanism(name, epsilon=epsilon, **parameters).bind(space)
    assert isinstance(kernel, LaplaceKernel)
    words = np.full(20_000, 11)
    with seeded(5):
        points, scales, _ = kernel.noisy_points(words)
    reach = np.sqrt(space.geometry.squares.max())
    noise = points / scales[:, None] * reach - space.geometry.points[11]
    values, axes = np.linalg.eigh(covariance(space, parameters.get("lam", 0.0)))
    straight = noise @ axes / np.sqrt(values)
    radius = np.linalg.norm(straight, axis=1)
    assert fits(epsilon * radius, stats.gamma(dimensions))
    assert not fits(1.3 * epsilon * radius, stats.gamma(dimensions))
    for axis in (0, dimensions - 1):
        law = stats.beta(0.5, (dimensions - 1) / 2)
        assert fits((straight[:, axis] / radius) ** 2, law)


def test_the_covariance_has_the_trace_of_the_dimension() -> None:
    space = cloud(5)
    for lam in (0.0, 0.3, 0.999):
        assert np.trace(covariance(space, lam)) == pytest.approx(5.0)
    expected = np.cov(space.vectors.astype(float).T, bias=True)
    np.testing.assert_allclose(covariance(space, 1.0), expected * 5 / np.trace(expected), rtol=1e-5)


def two_words(dimensions: int, apart: float) -> Space:
    vectors = np.zeros((2, dimensions))
    vectors[1, 0] = apart
    return Space.from_arrays(["a", "b"], vectors)


def chance_to_stay(dimensions: int, half: float) -> float:
    """P(one coordinate of noise of density exp(-|z|) is below `half`), in closed form."""
    if dimensions == 1:
        return 1.0 - math.exp(-half) / 2.0
    assert dimensions == 3
    return 1.0 - (2.0 + half) * math.exp(-half) / 4.0


@pytest.mark.parametrize("dimensions", [1, 3])
@pytest.mark.parametrize("apart", [0.3, 2.0, 9.0])
def test_a_word_survives_as_often_as_its_theorem_says(dimensions: int, apart: float) -> None:
    """End to end; the same samples refuse noise that is 30 % off."""
    times, epsilon = 400_000, 1.0
    kernel = mechanism("fbdd", epsilon=epsilon).bind(two_words(dimensions, apart))
    with seeded(6):
        stayed = int((kernel.sample(np.zeros(times, dtype=np.int64)) == 0).sum())

    def p_value(scale: float) -> float:
        chance = chance_to_stay(dimensions, scale * epsilon * apart / 2.0)
        return float(stats.binomtest(stayed, times, chance).pvalue)

    assert p_value(1.0) > NEVER
    assert p_value(0.7) < NEVER
    assert p_value(1.3) < NEVER


@pytest.mark.parametrize("t", [0.0, 0.25, 0.5, 1.0])
def test_vickrey_takes_the_second_word_as_often_as_its_formula_says(t: float) -> None:
    times = 200_000
    kernel = mechanism("vickrey", epsilon=1.0, t=t).bind(two_words(1, 2.0))
    with seeded(7):
        seen = int((kernel.sample(np.zeros(times, dtype=np.int64)) == 0).sum())

    def first_chosen(z: float) -> float:
        near, far = sorted([abs(z), abs(z - 2.0)])
        second = t * near / (t * near + (1.0 - t) * far)
        return 1.0 - second if abs(z) < abs(z - 2.0) else second

    chance = sum(
        integrate.quad(lambda z: math.exp(-abs(z)) / 2.0 * first_chosen(z), a, b)[0]
        for a, b in ((-60, 0), (0, 1), (1, 2), (2, 60))
    )
    assert stats.binomtest(seen, times, chance).pvalue > NEVER


def slow_order(words: Floats, point: Floats, scale: float) -> list[int]:
    """Words by their distance from a point, in exact arithmetic."""
    from fractions import Fraction  # noqa: PLC0415

    exact = [[Fraction(float(x)) for x in word] for word in words]
    q, a = [Fraction(float(x)) for x in point], Fraction(float(scale))
    far = [sum((x - a * y) ** 2 for x, y in zip(q, word, strict=True)) for word in exact]
    return sorted(range(len(words)), key=lambda i: (far[i], i))


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 6),
    st.integers(1, 25),
    st.sampled_from([1.0, 1e-3, 1e-6]),
    st.sampled_from([1.0, 0.3, 1e-5]),
)
def test_the_nearest_words_are_exact(
    seed: int, dimensions: int, count: int, spread: float, scale: float
) -> None:
    """Also where words stand so close together that float32 can't tell them apart."""
    source = np.random.default_rng(seed)
    words = np.array([0.4] * dimensions) + spread * source.normal(size=(count, dimensions))
    words /= max(1.0, float(np.linalg.norm(words, axis=1).max()))
    points = scale * words[:1] + source.normal(size=(8, dimensions)) * spread
    scales = np.full(8, scale)
    search = NearestWords(words)
    first, (two, distances) = search.first(points, scales), search.first_two(points, scales)
    for row, point in enumerate(points):
        order = slow_order(words, point, scale)
        assert first[row] == order[0]
        assert two[row].tolist() == [order[0], order[min(1, count - 1)]]
    assert (distances[:, 0] <= distances[:, 1] * (1 + 1e-9)).all()


def test_of_equal_vectors_the_first_word_is_drawn() -> None:
    kernel = mechanism("fbdd", epsilon=1.0).bind(toys.space("duplicates"))
    firsts = np.unique(kernel.space.twins)
    assert np.isin(kernel.sample(np.tile(np.arange(len(kernel.space)), 500)), firsts).all()


@pytest.mark.parametrize("epsilon", [5e-324, 1e-300, 1e-12, 1e12, 1e300, 1.7e308])
@pytest.mark.parametrize("toy", ["scale of a million", "scale of a millionth", "one word"])
@pytest.mark.parametrize(("name", "parameters"), [*LAPLACE, ("vickrey", {"t": 0.5})])
def test_noise_of_any_size_neither_overflows_nor_warns(
    name: str, parameters: dict[str, Any], toy: str, epsilon: float
) -> None:
    space = toys.space(toy)
    if not math.isfinite(epsilon * max(space.diameter, 1.0)):
        return
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        kernel = mechanism(name, epsilon=epsilon, **parameters).bind(space)
        drawn = kernel.sample(np.arange(len(space)))
    if epsilon > 1 and parameters.get("t", 0.0) == 0.0:
        assert drawn.tolist() == list(range(len(space)))


def test_at_a_tiny_epsilon_the_input_does_not_matter() -> None:
    kernel = mechanism("fbdd", epsilon=1e-200).bind(toys.space("random"))
    with seeded(8):
        seen = [np.bincount(kernel.sample(np.full(20_000, word)), minlength=16) for word in (1, 9)]
    assert stats.chi2_contingency(np.array(seen)[:, np.sum(seen, axis=0) > 0]).pvalue > NEVER
    assert (np.count_nonzero(seen, axis=1) > 1).all()


def test_noise_in_a_thousand_dimensions_is_drawn() -> None:
    source = np.random.default_rng(0)
    space = Space.from_arrays([f"w{i}" for i in range(50)], source.normal(size=(50, 1000)))
    kernel = mechanism("mahalanobis", epsilon=0.01).bind(space)
    assert len(np.unique(kernel.sample(np.full(300, 7)))) > 5


@pytest.mark.parametrize(("name", "parameters"), LAPLACE)
def test_there_is_no_table_and_the_guarantee_says_so(name: str, parameters: dict[str, Any]) -> None:
    kernel = mechanism(name, epsilon=1.0, **parameters).bind(toys.space("random"))
    assert kernel.guarantee.basis == AUDITED
    assert "by theorem, audited" in kernel.guarantee.describe()
    with pytest.raises(NoTableError, match="audits its theorem"):
        kernel.log_probs([0])


def test_mahalanobis_promises_in_its_own_metric() -> None:
    space = cloud(5)
    ids = np.arange(len(space))
    round_noise = mechanism("mahalanobis", epsilon=2.0, lam=0.0).bind(space)
    np.testing.assert_allclose(round_noise.promised(ids, ids), 2.0 * space.distances(ids))
    kernel = mechanism("mahalanobis", epsilon=2.0, lam=0.7).bind(space)
    inverse = np.linalg.inv(covariance(space, 0.7))
    gaps = space.vectors[:, None].astype(float) - space.vectors[None]
    expected = 2.0 * np.sqrt(np.einsum("xyi,ij,xyj->xy", gaps, inverse, gaps))
    np.testing.assert_allclose(kernel.promised(ids, ids), expected, rtol=1e-9, atol=1e-9)
    assert kernel.guarantee.worst_epsilon == pytest.approx(expected.max())


@pytest.mark.parametrize("lam", [-0.1, 0.9999, 1.0, 1.5, math.nan])
def test_a_lam_outside_its_range_is_refused(lam: float) -> None:
    for name in ("mahalanobis", "vickrey"):
        with pytest.raises(ParameterError, match="lam must be"):
            mechanism(name, epsilon=1.0, lam=lam)
