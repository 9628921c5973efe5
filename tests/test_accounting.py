"""What holds whatever is composed: counting, order, more and less, and what is refused."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

import pytest
from hypothesis import given, settings
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
    numerical,
)
from deniable.budget.calibration import noise_needed
from deniable.budget.cost import CLOSED_FORMS, epsilon_of_rho
from deniable.budget.gaussian import epsilon_of, mu_of
from deniable.budget.methods import BOUND, total
from deniable.errors import ParameterError

pytest.importorskip("dp_accounting", reason="SKIPPED FOR WANT OF dp-accounting")

METHODS = methods()
GRIDS = ("pld",)
NAN, INF = math.nan, math.inf
DELTA = 1e-6
KINDS: tuple[Release, ...] = (
    Pure(0.0),
    Pure(1e-12),
    Pure(0.3),
    Pure(2.0, spread=2.0),
    Pure(7.0, spread=9.0),
    Approximate(0.2, 1e-9),
    Gaussian(3.0),
    Gaussian(0.9, sensitivity=2.0),
    Gaussian(0.8, sample_rate=0.01),
)
RELEASES = st.one_of(
    st.builds(Pure, st.floats(0, 50), st.floats(0, 100)),
    st.builds(Approximate, st.floats(0, 5), st.floats(1e-12, 1e-9)),
    st.builds(Gaussian, st.floats(0.1, 100), st.floats(0.1, 10)),
)
COUNTED = st.dictionaries(RELEASES, st.integers(1, 10**6), min_size=1, max_size=5)


@pytest.fixture
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is looked at holds on every grid, and a coarse one is quick."""
    monkeypatch.setattr(numerical, "POINTS", 50_000)
    monkeypatch.setattr(numerical, "ONCE", 5_000)


def epsilons(composition: Any, delta: float = DELTA) -> dict[str, float]:
    """Every method's answer, infinite where it has none."""
    found = {one.method.name: one.epsilon for one in account(composition, delta)}
    return {name: found.get(name, INF) for name in METHODS}


def same(name: str) -> Callable[[float], Any]:
    """A grid is chosen for all releases together, so that only nearly the same comes out of it."""
    return partial(pytest.approx, rel=5e-3 if name in GRIDS else 1e-6, abs=1e-100)


@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize("one", KINDS, ids=repr)
@pytest.mark.parametrize("count", [1, 7])
def test_a_count_is_that_many_releases(one: Release, count: int) -> None:
    """Also for releases that only nearly are the same, and so are counted one by one."""
    whole = epsilons({one: count})
    assert whole == epsilons(compose([one] * count))
    assert whole == epsilons(compose(*[[one]] * count))
    nearly = [_a_bit_more(one, 1.0 + 1e-9 * i) for i in range(count)]
    assert len(compose(nearly)) == count or one == Pure(0.0)
    replayed = epsilons(compose(nearly))
    for name, epsilon in whole.items():
        assert replayed[name] == same(name)(epsilon), name


def _a_bit_more(one: Release, times: float) -> Release:
    if isinstance(one, Pure):
        return Pure(one.epsilon * times, one.spread * times)
    if isinstance(one, Gaussian):
        return Gaussian(one.sigma, one.sensitivity * times, one.sample_rate)
    assert isinstance(one, Approximate)
    return Approximate(one.epsilon * times, one.delta)


@pytest.mark.usefixtures("coarse")
def test_the_order_of_releases_does_not_matter() -> None:
    parts: list[Any] = [{Gaussian(2.0): 3, Pure(0.7): 20}, [Pure(0.2, 0.2)], {Gaussian(9.0): 50}]
    forth, back = epsilons(compose(*parts)), epsilons(compose(*reversed(parts)))
    for name, epsilon in forth.items():
        assert back[name] == pytest.approx(epsilon, rel=1e-9), name
    sampled = {Gaussian(1.0, sample_rate=0.1): 9, Gaussian(2.0): 1, Gaussian(0.5): 2}
    assert epsilons(sampled) == epsilons(dict(reversed(sampled.items())))


@settings(max_examples=60)
@given(COUNTED, st.data())
def test_costs_of_parts_add_up_to_the_whole(whole: dict[Release, int], data: Any) -> None:
    first = {one: data.draw(st.integers(0, n)) for one, n in whole.items()}
    second = {one: n - first[one] for one, n in whole.items()}
    cost, added = total(whole), total(first) + total(second)
    assert added.count == cost.count == sum(whole.values())
    for name in CLOSED_FORMS:
        expected = getattr(cost, name)(1e-2)
        assert getattr(added, name)(1e-2) == pytest.approx(expected, rel=1e-9), name
    spent = added - total(first)
    assert spent.count == sum(second.values())
    sums = zip(spent._sums(), total(second)._sums(), added._sums(), strict=True)
    for got, part, everything in sums:
        # What is infinite in the whole stays so.
        wanted = part if everything < INF else INF
        assert got == pytest.approx(wanted, rel=1e-9, abs=1e-9 * everything)


@settings(max_examples=60)
@given(COUNTED, RELEASES, st.integers(1, 1000), st.sampled_from([1e-300, 1e-9, 1e-2, 0.9]))
def test_more_releases_never_cost_less(
    some: dict[Release, int], one: Release, count: int, delta: float
) -> None:
    names = tuple(name for name in METHODS if name not in GRIDS)
    before = {a.method.name: a.epsilon for a in account(some, delta, names)}
    after = {a.method.name: a.epsilon for a in account(compose(some, {one: count}), delta, names)}
    for name, epsilon in after.items():
        assert epsilon >= before[name] * (1 - 1e-9), name


@pytest.mark.usefixtures("coarse")
def test_a_distribution_of_more_releases_costs_no_less() -> None:
    steps = [{one: n} for n in (1, 40) for one in (*KINDS[:7], Gaussian(5.0, sample_rate=0.2))]
    found = [epsilons(each)["pld"] for each in accumulate(steps, compose)]
    # Each is on a grid of its own, so that the last digits can differ.
    assert all(after >= before * 0.999 for before, after in pairwise(found))
    assert found[-1] < INF


@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize("one", KINDS, ids=repr)
def test_a_larger_delta_never_costs_more(one: Release) -> None:
    deltas = (0.0, 1e-300, 1e-12, 1e-8, 1e-6, 1e-3, 0.1, 0.5, 0.999)
    found = [epsilons({one: 30}, delta) for delta in deltas]
    for name in METHODS:
        numbers = [each[name] for each in found]
        assert numbers == sorted(numbers, reverse=True), name


@pytest.mark.parametrize("nothing", [{}, {Gaussian(1.0): 0, Pure(3.0): 0}], ids=repr)
@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.5])
def test_composing_nothing_costs_nothing(nothing: Any, delta: float) -> None:
    assert set(epsilons(nothing, delta).values()) == {0.0}


def test_a_randomised_response_is_counted() -> None:
    """PLDAccountant of dp-accounting 0.6.0 forgets how often this event happens."""
    dp = pytest.importorskip("dp_accounting")
    event = dp.RandomizedResponseDpEvent(noise_parameter=0.25, num_buckets=25)
    replace_one = dp.NeighboringRelation.REPLACE_ONE
    forgetful = dp.pld.PLDAccountant(replace_one).compose(event, 7)
    each = math.log((0.75 + 0.25 / 25) / (0.25 / 25))
    assert forgetful.get_epsilon(1e-9) == pytest.approx(4.33, abs=0.01)
    assert epsilons({Pure(each): 1}, 1e-9)["pld"] == pytest.approx(4.33, abs=0.01)
    found = epsilons({Pure(each): 7}, 1e-9)
    assert found["pld"] == pytest.approx(30.3, abs=0.05)
    assert found["basic"] == pytest.approx(7 * each)
    assert min(found.values()) > 30.2


def test_an_approximation_is_never_the_best() -> None:
    """Even where it is the smallest, or the only answer."""
    steps = {Gaussian(0.6, sample_rate=0.01): 1000}
    found = account(steps, 1e-5)
    [best] = [one for one in found if one.best]
    low = [one for one in found if one.method.kind != BOUND and one.epsilon < best.epsilon]
    assert [one.method.name for one in low] == ["paper:gdp-clt"]
    assert best.method.name == "pld"
    assert best.epsilon == min(one.epsilon for one in found if one.method.kind == BOUND)
    only = account(steps, 1e-5, ("paper:gdp-clt",))
    assert [one.best for one in only] == [False]


@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize("one", KINDS, ids=repr)
def test_the_best_is_a_bound_and_the_least_of_them(one: Release) -> None:
    for count in (1, 1000):
        found = account({one: count}, DELTA)
        [best] = [each for each in found if each.best]
        bounds = [each.epsilon for each in found if each.method.kind == BOUND]
        assert best.method.kind == BOUND
        assert best.epsilon == pytest.approx(min(bounds), rel=1e-8)


WRONG: list[tuple[str, Callable[[Any], object], tuple[float, ...]]] = [
    ("Pure", Pure, (NAN, INF, -1.0)),
    ("spread", partial(Pure, 1.0), (NAN, -1.0, -INF)),
    ("Approximate", lambda x: Approximate(x, 1e-6), (NAN, INF, -1.0)),
    ("Approximate delta", partial(Approximate, 1.0), (NAN, INF, -1.0, 0.0, 1.0)),
    ("Gaussian", Gaussian, (NAN, INF, -1.0, 0.0)),
    ("sensitivity", lambda x: Gaussian(1.0, x), (NAN, INF, -1.0, 0.0)),
    ("sample_rate", lambda x: Gaussian(1.0, 1.0, x), (NAN, INF, -0.1, 0.0, 1.1)),
    ("Cost.pure", Cost.pure, (NAN, INF, -1.0)),
    ("Cost.pure spread", partial(Cost.pure, 1.0), (NAN, -1.0)),
    ("Cost.gaussian", Cost.gaussian, (NAN, -1.0)),
    ("Cost", lambda x: Cost(1, rho=x), (NAN, -1.0, -INF)),
    ("Cost beside", lambda x: Cost(1, delta_beside=x), (NAN, -1.0)),
    ("Cost * n", lambda x: Cost.pure(1.0) * x, (-1, -5)),
    ("Cost.best", Cost.pure(1.0).best, (NAN, INF, -1e-9, 1.0)),
    ("account delta", lambda x: account({Pure(1.0): 1}, x), (NAN, INF, -1e-9, 1.0)),
    ("count", lambda x: compose({Pure(1.0): x}), (NAN, INF, -1.0, 1.5)),
    ("account count", lambda x: account({Pure(1.0): x}, 0.0), (NAN, INF, -1.0, 0.5)),
    ("target", lambda x: noise_needed(METHODS["gdp"], Gaussian(1.0), 1, x, DELTA),
     (NAN, INF, -1.0, 0.0)),
    ("steps", lambda x: noise_needed(METHODS["gdp"], Gaussian(1.0), x, 1.0, DELTA), (0, -1)),
    ("mu_of", lambda x: mu_of(x, DELTA), (NAN, INF, -1.0)),
    ("mu_of delta", partial(mu_of, 1.0), (NAN, INF, -1.0, 0.0, 1.0)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "value"),
    [pytest.param(call, x, id=f"{name} {x}") for name, call, values in WRONG for x in values],
)
def test_what_is_no_number_of_its_kind_is_refused(call: Any, value: float) -> None:
    with pytest.raises(ParameterError) as refusal:
        call(value)
    assert "\n" not in str(refusal.value)


def test_not_a_number_is_never_private() -> None:
    assert epsilon_of(NAN, 1.0) == epsilon_of(1e-6, NAN) == INF
    assert epsilon_of_rho(1.0, NAN) == epsilon_of_rho(NAN, 1e-6) == INF


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(ParameterError, match="no method magic; there are basic"):
        account({Pure(1.0): 1}, DELTA, ("magic", "basic"))


def test_a_million_charges_of_many_kinds_are_quick() -> None:
    """The limit is generous: see the benchmarks for what is usual."""
    kinds = [Pure(0.5 + 0.37 * i, 0.5 + 0.21 * i) for i in range(20)]
    charges = kinds * 50_000
    account({Pure(1.0): 2, Pure(2.0): 1}, DELTA)  # what has to be loaded is loaded before
    start = time.perf_counter()
    found = account(compose(charges), DELTA)
    assert time.perf_counter() - start < 6.0
    names = {one.method.name for one in found}
    assert names == {"basic", "advanced", "zcdp", "rdp", "gdp", "pld", *_OF_THE_PAPER}
    basic = next(one for one in found if one.method.name == "basic")
    assert basic.epsilon == pytest.approx(50_000 * math.fsum(one.epsilon for one in kinds))


_OF_THE_PAPER = ("paper:basic", "paper:advanced")
