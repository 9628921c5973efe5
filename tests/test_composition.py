"""Composition: replay laws for every release and method, closed forms, known numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.budget import (
    Approximate,
    Cost,
    Gaussian,
    Pure,
    Release,
    account,
    compose,
    methods,
)
from deniable.budget.methods import APPROXIMATION, BOUND
from deniable.errors import ParameterError

DELTA = 1e-5
RELEASES: dict[str, Release] = {
    "pure": Pure(0.7),
    "bounded range": Pure(1.0, spread=1.0),
    "approximate": Approximate(0.4, 1e-8),
    "gaussian": Gaussian(3.0),
    "sampled gaussian": Gaussian(1.5, sample_rate=0.02),
}
MIXED = {RELEASES["pure"]: 3, RELEASES["bounded range"]: 2, RELEASES["approximate"]: 1}


def told(composition: dict[Release, int], delta: float = DELTA) -> dict[str, float]:
    """What each method says."""
    return {one.method.name: one.epsilon for one in account(composition, delta)}


def close(a: dict[str, float], b: dict[str, float]) -> bool:
    return a.keys() == b.keys() and all(math.isclose(a[k], b[k], rel_tol=1e-6) for k in a)


@pytest.mark.parametrize("name", RELEASES)
@pytest.mark.parametrize("count", [1, 7])
def test_a_count_is_a_list_is_a_replay(name: str, count: int) -> None:
    one = RELEASES[name]
    counted = compose({one: count})
    assert compose([one] * count) == counted
    assert compose(*([one] for _ in range(count))) == counted
    replayed = sum((release.cost() for release in [one] * count), Cost())
    multiplied = one.cost() * count
    for sums in zip(vars(replayed).values(), vars(multiplied).values(), strict=True):
        assert sums[0] == pytest.approx(sums[1], rel=1e-12)


def test_the_order_and_the_grouping_don_t_matter() -> None:
    one, *rest = MIXED.items()
    forwards, backwards = told(dict([one, *rest])), told(dict([*rest[::-1], one]))
    assert close(forwards, backwards)
    assert compose({one[0]: 1}, {one[0]: one[1] - 1}, dict(rest)) == compose(MIXED)


def test_seven_randomised_responses_are_seven() -> None:
    """The library's accountant forgets the count of this event, and says what one of them costs."""
    library = pytest.importorskip("dp_accounting")
    # A fair coin among two with noise 0.026: epsilon 4.33 for one.
    noise = 0.026
    epsilon = math.log((1 - noise / 2) / (noise / 2))
    event = library.SelfComposedDpEvent(library.dp_event.RandomizedResponseDpEvent(noise, 2), 7)
    relation = library.NeighboringRelation.REPLACE_ONE
    theirs = library.pld.PLDAccountant(relation).compose(event).get_epsilon(1e-10)
    assert theirs == pytest.approx(epsilon, rel=1e-3)
    assert told({Pure(epsilon): 7}, 1e-10)["pld"] == pytest.approx(7 * epsilon, rel=1e-3)


@pytest.mark.parametrize("name", RELEASES)
def test_more_releases_never_cost_less_and_more_delta_never_more(name: str) -> None:
    counts, deltas = (1, 2, 5, 30), (1e-9, 1e-6, 1e-3)
    by_count = [told({RELEASES[name]: count}) for count in counts]
    by_delta = [told({RELEASES[name]: 5}, delta) for delta in deltas]
    for less, more in pairwise(by_count):
        for method in less.keys() & more.keys():
            assert more[method] >= less[method] * (1 - 1e-9), method
    for strict, lax in pairwise(by_delta):
        for method in strict.keys() & lax.keys():
            assert lax[method] <= strict[method] * (1 + 1e-6), method


@given(st.lists(st.tuples(st.floats(1e-3, 9.0), st.integers(1, 500)), min_size=1, max_size=6))
def test_the_best_is_the_least_bound_and_never_an_approximation(
    parts: list[tuple[float, int]],
) -> None:
    composition: dict[Release, int] = {Pure(epsilon): count for epsilon, count in parts}
    found = account(composition, DELTA, ("basic", "advanced", "zcdp", "gdp", "paper:advanced"))
    [best] = [one for one in found if one.best]
    assert best.method.kind == BOUND
    assert best.epsilon <= min(one.epsilon for one in found if one.method.kind == BOUND) * 1.000001
    ledger = sum((Pure(e).cost() * n for e, n in parts), Cost()).best(DELTA)
    assert best.epsilon <= ledger.epsilon * (1 + 1e-9)


def test_an_approximation_below_the_truth_is_not_chosen() -> None:
    found = account({Gaussian(0.6, sample_rate=0.01): 1000}, DELTA)
    wrong = {a.method.name: a.epsilon for a in found if a.method.kind == APPROXIMATION}
    [best] = [one for one in found if one.best]
    assert wrong["paper:gdp-clt"] == pytest.approx(5.56, abs=0.01)
    assert best.method.name == "pld"
    assert 7.38 <= best.epsilon <= 7.44


def true_delta(epsilon: float, count: int, at: float) -> float:
    """Of so many randomised responses, exactly (Kairouz, Oh, Viswanath 2017)."""
    likely = Fraction(math.exp(epsilon)) / (1 + Fraction(math.exp(epsilon)))
    total = Fraction(0)
    for lies in range(count + 1):
        loss = (count - 2 * lies) * epsilon
        if loss > at:
            chance = math.comb(count, lies) * likely ** (count - lies) * (1 - likely) ** lies
            total += chance * Fraction(-math.expm1(at - loss))
    return float(total)


@pytest.mark.parametrize(("epsilon", "count"), [(0.1, 40), (1.0, 100), (2.0, 9), (0.01, 200)])
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-2])
def test_pure_releases_compose_as_randomised_responses(
    epsilon: float, count: int, delta: float
) -> None:
    found = told({Pure(epsilon): count}, delta)
    for name, bound in found.items():
        assert true_delta(epsilon, count, bound) <= delta * (1 + 1e-6), name
    # And pld is tight: a little less is too little.
    assert found["pld"] == 0 or true_delta(epsilon, count, found["pld"] * 0.999 - 1e-6) > delta


def test_gaussian_releases_compose_as_one() -> None:
    for count in (1, 4, 100):
        one = Gaussian(2.0 / math.sqrt(count), sensitivity=1.0)
        many, alone = told({Gaussian(2.0): count}), told({one: 1})
        for name in ("gdp", "pld"):
            assert many[name] == pytest.approx(alone[name], rel=1e-4)


KNOWN: list[tuple[dict[Release, int], float, str, float, float]] = [
    # Composition, delta, method, and between which numbers.
    ({Pure(1.0): 100}, 1e-6, "pld", 83.5, 83.6),
    ({Pure(1.0, spread=1.0): 100}, 1e-5, "zcdp", 34.0, 36.5),
    ({Gaussian(0.75, sensitivity=1.0): 1}, 1e-5, "gdp", 6.12, 6.14),
    ({Gaussian(0.75, sensitivity=2.0): 1}, 1e-5, "gdp", 14.32, 14.35),
    ({Pure(0.5): 12}, 0.0, "basic", 6.0, 6.0),
]


@pytest.mark.parametrize(("composition", "delta", "method", "low", "high"), KNOWN)
def test_known_numbers(
    composition: dict[Release, int], delta: float, method: str, low: float, high: float
) -> None:
    assert low <= told(composition, delta)[method] <= high


def test_an_exponential_mechanism_has_the_renyi_divergence_that_its_spread_allows() -> None:
    source = np.random.default_rng(2)
    for _ in range(50):
        scores = source.random((2, 6))
        epsilon = float(source.uniform(0.1, 6.0))
        rows = np.exp(epsilon / 2 * scores)
        p, q = rows / rows.sum(axis=1, keepdims=True)
        spread = float(np.ptp(np.log(p / q)))
        assert spread <= epsilon
        for order in (1.01, 1.5, 2.0, 8.0, 60.0):
            divergence = math.log(float((p**order * q ** (1 - order)).sum())) / (order - 1)
            assert divergence <= order * Pure(epsilon, spread).cost().rho + 1e-12


def all_products(chances: Iterable[np.ndarray]) -> np.ndarray:
    found = np.ones(1)
    for one in chances:
        found = np.outer(found, one).ravel()
    return found


def test_every_bound_holds_for_random_channels() -> None:
    source = np.random.default_rng(4)
    for _ in range(40):
        pairs = [source.dirichlet(np.ones(3), size=2) for _ in range(3)]
        gaps = [np.log(p / q) for p, q in pairs]
        releases = compose(Pure(float(np.abs(gap).max()), float(np.ptp(gap))) for gap in gaps)
        p, q = (all_products(pair[side] for pair in pairs) for side in (0, 1))
        for delta in (1e-6, 1e-3, 0.1):
            for one in account(releases, delta):
                if one.method.kind == BOUND:
                    lost = max(
                        float(np.maximum(a - math.exp(min(one.epsilon, 700.0)) * b, 0.0).sum())
                        for a, b in ((p, q), (q, p))
                    )
                    assert lost <= delta * (1 + 1e-9), one.method.name


@pytest.mark.parametrize(
    "make",
    [
        Pure,
        lambda x: Pure(1.0, spread=x),
        lambda x: Approximate(x, 1e-6),
        lambda x: Approximate(1.0, x),
        Gaussian,
        lambda x: Gaussian(1.0, sensitivity=x),
        lambda x: Gaussian(1.0, sample_rate=x),
        lambda x: account({Pure(1.0): 1}, x),
    ],
)
@pytest.mark.parametrize("number", [math.nan, -1.0])
def test_what_is_no_number_is_refused(make: object, number: float) -> None:
    with pytest.raises(ParameterError):
        make(number)  # type: ignore[operator]


def test_every_method_is_named_and_marked() -> None:
    assert {one.kind for one in methods().values()} == {BOUND, APPROXIMATION}
    names = set(methods())
    assert {"basic", "advanced", "rdp", "zcdp", "pld", "gdp"} <= names
    assert {"paper:gdp-clt", "paper:rdp", "paper:advanced"} <= names
