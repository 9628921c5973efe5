"""Hyperbolic noise: its density, its two promises, and how it moves; 30 % off is rejected."""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import integrate, special, stats

import toys
from deniable import Policy, Sanitizer, Space, mechanism
from deniable.audit import audit
from deniable.errors import ParameterError, SpaceError
from deniable.hyperbolic import RadialLaw, lifted, moved, published, volumetric
from deniable.testing import seeded
from test_audit import Claiming

Floats = npt.NDArray[np.float64]
NEVER = 1e-9
TIMES = 20_000


def density(kind: str, epsilon: float, n: int, d: float) -> float:
    """The two densities of the distance, by their definitions."""
    if kind == "volume":
        rise = (n - 1) * math.log(math.sinh(d)) if n > 1 else 0.0
        return math.exp(-epsilon * d + rise)
    r = math.tanh(d / 2)
    return ((1 - r) / (1 + r)) ** epsilon * r ** (n - 1) * (1 - r * r) / 2


def chances(kind: str, epsilon: float, n: int, drawn: Floats) -> Floats:
    """The distribution function at each draw, by quadrature; uniform if the law is right."""
    grid = np.unique(np.quantile(drawn, np.linspace(0, 1, 400)))
    fall = epsilon - n + 1 if kind == "volume" else epsilon + 1
    edges = np.concatenate([[0.0], grid, [grid[-1] + 40 / fall]])
    parts = [
        integrate.quad(lambda d: density(kind, epsilon, n, d), a, b, limit=200)[0]
        for a, b in pairwise(edges)
    ]
    reached = np.concatenate([[0.0], np.cumsum(parts)]) / sum(parts)
    return np.asarray(np.interp(drawn, edges, reached))


def law(kind: str, epsilon: float, n: int) -> RadialLaw:
    return published(epsilon, n) if kind == "published" else volumetric(epsilon, n)


LAWS = [
    ("published", 0.3, 1), ("published", 2.0, 2), ("published", 5.0, 10), ("published", 40.0, 10),
    ("published", 25.0, 50), ("volume", 0.7, 1), ("volume", 3.0, 2), ("volume", 9.5, 10),
    ("volume", 60.0, 10),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "epsilon", "n"), LAWS)
def test_distances_follow_their_law_and_30_percent_off_do_not(
    kind: str, epsilon: float, n: int
) -> None:
    with seeded(1):
        drawn = law(kind, epsilon, n).draw(TIMES)
    assert stats.kstest(chances(kind, epsilon, n, drawn), "uniform").pvalue > NEVER
    for wrong in (1.3 * drawn, drawn / 1.3):
        assert stats.kstest(chances(kind, epsilon, n, wrong), "uniform").pvalue < NEVER


@pytest.mark.parametrize(("epsilon", "n"), [(1.0, 1), (4.0, 3), (9.1, 10), (300.0, 20)])
def test_the_volume_law_is_a_beta_law(epsilon: float, n: int) -> None:
    with seeded(2):
        drawn = volumetric(epsilon, n).draw(TIMES)
    expected = stats.beta((epsilon - n + 1) / 2, n)
    assert stats.kstest(np.exp(-2 * drawn), expected.cdf).pvalue > NEVER


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
def test_in_one_dimension_it_is_the_papers_density_with_its_constant(epsilon: float) -> None:
    """(1 + eps) / (2 F(1, eps; 2 + eps; -1)) (2 / (1 + |x|) - 1)^eps on (-1, 1)."""
    constant = (1 + epsilon) / (2 * special.hyp2f1(1, epsilon, 2 + epsilon, -1))

    def reached(x: float) -> float:
        return float(2 * integrate.quad(lambda t: constant * (2 / (1 + t) - 1) ** epsilon, 0, x)[0])

    assert reached(1.0) == pytest.approx(1.0)
    with seeded(3):
        radius = np.tanh(published(epsilon, 1).draw(2000) / 2)
    assert stats.kstest([reached(r) for r in radius], "uniform").pvalue > NEVER


@pytest.mark.parametrize("epsilon", [1e-300, 1e-9, 1e9, 1e18])
def test_laws_of_any_size_are_drawn_without_overflow(epsilon: float) -> None:
    with np.errstate(over="raise", invalid="raise"):
        drawn = published(epsilon, 7).draw(100)
    assert np.isfinite(drawn).all()
    assert (drawn >= 0).all()
    near = volumetric(6.0 + 1e-9, 7).draw(100)
    assert np.isfinite(near).all()


def ball(count: int, n: int, seed: int = 0) -> Floats:
    points = np.random.default_rng(seed).normal(size=(count, n))
    lengths = np.random.default_rng(seed + 1).uniform(0, 0.95, size=(count, 1))
    return np.asarray(points / np.linalg.norm(points, axis=1, keepdims=True) * lengths)


def mobius(x: Floats, y: Floats) -> Floats:
    """x added to y in the ball (one point each): the translation that takes 0 to x, at y."""
    dot, xx, yy = x @ y, x @ x, y @ y
    return np.asarray(((1 + 2 * dot + yy) * x + (1 - xx) * y) / (1 + 2 * dot + xx * yy))


@pytest.mark.parametrize("n", [1, 2, 5])
def test_moving_is_translating_in_the_ball(n: int) -> None:
    """A direction and a distance at 0, translated to x: the same point by another formula."""
    points = ball(50, n)
    source = np.random.default_rng(3)
    toward = source.normal(size=(50, n))
    toward /= np.linalg.norm(toward, axis=1, keepdims=True)
    distances = source.uniform(0, 5, size=50)
    found = moved(*lifted(points), toward, distances)
    for x, u, d, z in zip(points, toward, distances, found, strict=True):
        reached = mobius(x, np.tanh(d / 2) * u)
        # z is the point on the hyperboloid over its first coordinate.
        np.testing.assert_allclose(z, 2 * reached / (1 + reached @ reached), atol=1e-9)


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("far", [3.0, 12.0, 16.5])
def test_noise_back_through_the_centre_does_not_cancel(n: int, far: float) -> None:
    """A point near the edge, moved through the centre and beyond, in long arithmetic."""
    with decimal.localcontext() as context:
        context.prec = 80
        for distance in (0.5 * far, far, 1.9 * far, 40.0):
            place = np.zeros((1, n))
            place[0, 0] = np.tanh(far / 2)
            toward = np.zeros((1, n))
            toward[0, 0] = -1.0
            first, rest = lifted(place)
            # The rounded point itself is what is moved: its own distance from the centre.
            at = Decimal(float(rest[0, 0]))
            start = (at + (at * at + 1).sqrt()).ln()
            reached = start - Decimal(distance)
            expected = (reached.exp() - (-reached).exp()) / (reached.exp() + (-reached).exp())
            found = moved(first, rest, toward, np.array([distance]))[0, 0]
            assert found == pytest.approx(float(expected), rel=1e-6, abs=1e-6)


def test_the_volume_keeps_its_promise_far_from_the_centre() -> None:
    points = np.tanh(np.array([-16.5, -2.0, 0.0, 16.5]) / 2)[:, None]
    points = np.minimum(points.astype(np.float32), np.float32(1 - 1e-7))
    space = Space.from_arrays(["far", "near", "mid", "edge"], points, "poincare")
    kernel = mechanism("hyperbolic", epsilon=0.1, density="volume").bind(space)
    with seeded(8):
        assert audit(kernel, draws=100_000).holds


def test_the_nearest_word_is_the_one_at_the_least_hyperbolic_distance() -> None:
    space = Space.from_arrays([f"w{i}" for i in range(60)], ball(60, 3), "poincare")
    kernel: Any = mechanism("hyperbolic", epsilon=2.0).bind(space)
    noisy = kernel.noisy_points(np.arange(60))
    found = kernel.settle(noisy)
    points = noisy[0] / (1 + np.sqrt(1 - (noisy[0] ** 2).sum(axis=1)))[:, None]
    words = space.vectors.astype(np.float64)
    for point, word in zip(points, found, strict=True):
        room = (1 - point @ point) * (1 - (words**2).sum(axis=1))
        far = np.arcsinh(np.sqrt(((words - point) ** 2).sum(axis=1) / room))
        assert far[word] <= far.min() * (1 + 1e-9)


@pytest.mark.parametrize(("kind", "epsilon"), [("published", 1.0), ("volume", 1.0)])
@pytest.mark.parametrize("apart", [0.5, 2.0])
def test_a_word_survives_as_often_as_its_density_says(
    kind: str, epsilon: float, apart: float
) -> None:
    """Two words on a line: the border lies half-way, whichever of them is nearer to the centre."""
    times = 300_000
    start = -0.3
    end = mobius(np.array([start]), np.array([math.tanh(apart / 2)]))
    space = Space.from_arrays(["a", "b"], [[start], [float(end[0])]], "poincare")
    assert space.diameter == pytest.approx(apart, rel=1e-5)
    kernel = mechanism("hyperbolic", epsilon=epsilon, density=kind).bind(space)
    with seeded(4):
        stayed = int((kernel.sample(np.zeros(times, dtype=np.int64)) == 0).sum())

    def p_value(rate: float) -> float:
        total, near = (
            integrate.quad(lambda d: density(kind, rate, 1, d), 0, end)[0]
            for end in (200, apart / 2)
        )
        return float(stats.binomtest(stayed, times, 0.5 + near / total / 2).pvalue)

    assert p_value(epsilon) > NEVER
    assert p_value(0.7 * epsilon) < NEVER
    assert p_value(1.3 * epsilon) < NEVER


def star(n: int) -> Space:
    """Words around the centre and two of them close to each other."""
    far = np.concatenate([0.98 * np.eye(n), -0.98 * np.eye(n)])
    near = np.zeros((2, n))
    near[1, 0] = 0.25
    return Space.from_arrays(
        [f"w{i}" for i in range(2 * n + 2)], np.concatenate([near, far]), "poincare"
    )


def test_the_published_noise_does_not_keep_the_papers_promise() -> None:
    """In five dimensions it loses more than eps d, and never more than (eps + n) d."""
    space, epsilon, n = star(5), 0.5, 5
    kernel = mechanism("hyperbolic", epsilon=epsilon).bind(space)
    assert kernel.guarantee.epsilon == epsilon + n
    with seeded(5):
        assert audit(kernel, draws=50_000).holds
        refuted = audit(Claiming(kernel, epsilon / (epsilon + n)), draws=50_000)
    assert not refuted.holds
    with seeded(6):
        kept = mechanism("hyperbolic", epsilon=4.5, density="volume").bind(space)
        assert kept.guarantee.epsilon == 4.5
        assert audit(kept, draws=50_000).holds


def test_the_volume_needs_an_epsilon_above_its_growth() -> None:
    with pytest.raises(ParameterError, match="density=volume needs an epsilon above 4"):
        mechanism("hyperbolic", epsilon=4.0, density="volume").bind(star(5))
    with pytest.raises(ParameterError, match="density must be one of"):
        mechanism("hyperbolic", epsilon=4.0, density="flat")


def test_a_point_outside_the_ball_is_refused() -> None:
    with pytest.raises(SpaceError, match="row 1 is not inside the unit ball"):
        Space.from_arrays(["a", "b"], [[0.1, 0.0], [0.8, 0.6]], "poincare")


def test_words_out_of_the_vocabulary_follow_the_policy() -> None:
    space = toys.space("random", "poincare")
    for setting, expected in (("mask", "[UNKNOWN]"), ("draw", None)):
        s = Sanitizer("hyperbolic", 3.0, space=space, policy=Policy(unknown=setting))
        out = s.sanitize("w5 unheard w9")
        assert "unheard" not in out.text
        assert (expected or "") in out.text
        assert out.certificate.in_clear["unknown word"]["count"] == 1


def test_the_poincare_metric_is_exact_near_the_edge(shared_data: Any) -> None:
    """Against the hyperboloid's formula in long arithmetic, at norms of 0.99999."""
    from fractions import Fraction  # noqa: PLC0415

    path = shared_data / "wordnet" / "poincare_mammal5.npz"
    space = Space.load(path, "poincare", limit=200)
    found = space.distances(np.arange(12))
    for i in range(12):
        for j in range(0, 200, 17):
            x, y = ([Fraction(float(v)) for v in space.vectors[k]] for k in (i, j))
            gap = sum((a - b) ** 2 for a, b in zip(x, y, strict=True))
            room = (1 - sum(a * a for a in x)) * (1 - sum(b * b for b in y))
            exact = 2 * math.asinh(math.sqrt(gap / room))
            assert found[i, j] == pytest.approx(exact, rel=1e-9, abs=1e-12)
