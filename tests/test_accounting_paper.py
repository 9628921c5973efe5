"""The thesis's formulas, written down once more from its pages, say what `paper:` methods say."""

from __future__ import annotations

import math
from math import comb, exp, log, sqrt

import pytest

from deniable.budget import Approximate, Gaussian, Pure, Release, methods
from deniable.budget.gaussian import delta_of

DELTA = 1e-5


def says(name: str, composition: dict[Release, int], delta: float = DELTA) -> float:
    return methods()[name].compute(composition, delta)


def at(delta: float, mu: float) -> float:
    """The epsilon of (2.3.11), by bisection."""
    low, high = 0.0, 1e6
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_of(middle, mu) > delta else (low, middle)
    return high


@pytest.mark.parametrize("steps", [1, 7, 100])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 4.0])
def test_theorem_1_is_the_sum(epsilon: float, steps: int) -> None:
    assert says("paper:basic", {Pure(epsilon): steps}) == pytest.approx(steps * epsilon)
    both: dict[Release, int] = {Pure(epsilon): steps, Approximate(0.5, 1e-9): 2}
    assert says("paper:basic", both) == pytest.approx(steps * epsilon + 1.0)
    assert says("paper:basic", both, 1.9e-9) == math.inf


@pytest.mark.parametrize("steps", [1, 7, 100])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 4.0])
def test_equation_2_3_3(epsilon: float, steps: int) -> None:
    """With half of delta as delta', and the other half for the steps."""
    k, rest = steps, DELTA / 2
    printed = sqrt(2 * k * log(1 / rest)) * epsilon + k * epsilon * (exp(epsilon) - 1)
    assert says("paper:advanced", {Pure(epsilon): steps}) == pytest.approx(printed, rel=1e-9)
    each = at(rest / steps, 0.5)
    printed = sqrt(2 * k * log(1 / rest)) * each + k * each * (exp(each) - 1)
    assert says("paper:advanced", {Gaussian(2.0): steps}) == pytest.approx(printed, rel=1e-9)


@pytest.mark.parametrize("steps", [1, 30, 1000])
@pytest.mark.parametrize(("sigma", "sensitivity"), [(0.75, 1.0), (4.0, 2.0), (90.0, 1.0)])
def test_lemmas_1_to_3(sigma: float, sensitivity: float, steps: int) -> None:
    """Noise (Lemma 2), composed (Lemma 3), and turned into epsilon (Lemma 1)."""
    printed = min(
        steps * order * sensitivity**2 / (2 * sigma**2) + log(1 / DELTA) / (order - 1)
        for order in range(2, 257)
    )
    found = says("paper:rdp", {Gaussian(sigma, sensitivity): steps})
    assert found == pytest.approx(printed, rel=1e-9)


@pytest.mark.parametrize("steps", [1, 1000])
@pytest.mark.parametrize(("sigma", "rate"), [(0.6, 0.01), (2.0, 0.1), (8.0, 0.001), (1.0, 0.9)])
def test_equation_2_3_4_as_printed(sigma: float, rate: float, steps: int) -> None:
    """The sum stands outside of the logarithm, and isn't divided; e(infinity) is infinite."""

    def renyi(order: int) -> float:
        return order / (2 * sigma**2)

    def sampled(order: int) -> float:
        second = min(4 * (exp(renyi(2)) - 1), exp(renyi(2)) * min(2, math.inf))
        first = log(1 + rate**2 * comb(order, 2) * second) / (order - 1)
        terms = (
            log(comb(order, j)) + j * log(rate) + (j - 1) * renyi(j) + log(2)
            for j in range(3, order + 1)
        )
        return first + sum(exp(min(term, 700)) for term in terms)

    printed = min(steps * sampled(a) + log(1 / DELTA) / (a - 1) for a in range(2, 257))
    found = says("paper:rdp", {Gaussian(sigma, sample_rate=rate): steps})
    assert found == pytest.approx(printed, rel=1e-9)


@pytest.mark.parametrize(("sigma", "rate", "steps"), [(0.6, 0.01, 1000), (4.0, 0.1, 77), (1, 1, 3)])
def test_the_central_limit_theorem(sigma: float, rate: float, steps: int) -> None:
    total = rate * sqrt(steps * (exp(1 / sigma**2) - 1))
    once: Release = Gaussian(sigma, 1.0, rate)
    assert says("paper:gdp-clt", {once: steps}) == pytest.approx(at(DELTA, total), rel=1e-9)
    # (2.3.13) prints its inverse: from the total to a step, with T for t.
    assert sqrt(log(total**2 / (rate**2 * steps) + 1)) == pytest.approx(1 / sigma)


@pytest.mark.parametrize(("sigma", "rate", "steps"), [(0.6, 0.01, 1000), (4.0, 0.1, 77), (1, 1, 3)])
def test_equations_4_3_7_and_4_3_8_as_printed(sigma: float, rate: float, steps: int) -> None:
    """(4.3.5) for mu, and t for the number of the step."""
    mu = 1 / sigma
    of_steps = [sqrt(log(mu**2 / (rate**2 * t) + 1)) for t in range(1, steps + 1)]
    total = sqrt(sum(each**2 for each in of_steps))
    found = says("paper:gdp-clt-as-printed", {Gaussian(sigma, 1.0, rate): steps})
    assert found == pytest.approx(at(DELTA, total), rel=1e-9)


def test_many_steps_as_printed_are_the_sum_of_them() -> None:
    """Beyond some steps the sum is an integral; nothing shows where."""
    steps, a = 250_000, (0.5 / 0.01) ** 2
    total = sqrt(math.fsum(math.log1p(a / t) for t in range(1, steps + 1)))
    found = says("paper:gdp-clt-as-printed", {Gaussian(2.0, 1.0, 0.01): steps})
    assert found == pytest.approx(at(DELTA, total), rel=1e-9)


def test_of_several_kinds_those_that_lose_most_are_first() -> None:
    """That order gives the most of all orders of the printed steps."""
    large, small = Gaussian(1.0, 1.0, 0.1), Gaussian(3.0, 1.0, 0.5)
    ratios = [100.0] * 2 + [4 / 9] * 3
    total = sqrt(sum(math.log1p(a / (t + 1)) for t, a in enumerate(ratios)))
    back = sqrt(sum(math.log1p(a / (t + 1)) for t, a in enumerate(reversed(ratios))))
    found = says("paper:gdp-clt-as-printed", {small: 3, large: 2})
    assert found == pytest.approx(at(DELTA, total), rel=1e-9)
    assert total > back


@pytest.mark.parametrize("steps", [1, 50, 10_000])
@pytest.mark.parametrize("rate", [1.0, 0.1, 0.001])
@pytest.mark.parametrize("sigma", [0.5, 1.0, 5.0, 60.0])
def test_what_is_known_today_is_never_worse(sigma: float, rate: float, steps: int) -> None:
    pytest.importorskip("dp_accounting", reason="SKIPPED FOR WANT OF dp-accounting")
    once: dict[Release, int] = {Gaussian(sigma, 1.0, rate): steps}
    for delta in (1e-10, 1e-5, 1e-2):
        assert says("rdp", once, delta) <= says("paper:rdp", once, delta)
        assert says("basic", once, delta) <= says("paper:basic", once, delta) * (1 + 1e-9)
        assert says("advanced", once, delta) <= says("paper:advanced", once, delta) * (1 + 1e-9)


def test_other_releases_than_gaussian_have_no_answer_of_the_gaussian_formulas() -> None:
    for name in ("paper:rdp", "paper:gdp-clt", "paper:gdp-clt-as-printed"):
        assert says(name, {Pure(1.0): 1, Gaussian(1.0): 1}) == math.inf
        assert says(name, {Pure(1.0): 0, Gaussian(1.0): 1}) < math.inf
