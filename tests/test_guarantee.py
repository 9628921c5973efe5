"""Guarantees add up: metric ones as metrics, others through their diameters, never to less."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import toys
from deniable import Guarantee, Relation, mechanism, mechanisms
from deniable.budget.release import Pure
from deniable.errors import ParameterError
from deniable.guarantee import ALL_PAIRS, AUDITED, COMMON, METRIC, WITHIN_SETS

numbers = st.floats(0.0, 50.0)
relations = st.one_of(
    st.just(Relation(ALL_PAIRS)),
    st.builds(lambda d: Relation(METRIC, metric="euclidean", diameter=d), st.floats(0.1, 9.0)),
    st.builds(lambda c: Relation(WITHIN_SETS, covered=c), st.floats(0.0, 1.0)),
)
guarantees = st.builds(
    lambda r, e, s, k: Guarantee("token", r, e, slack=s / 1e6, spread=k),
    relations,
    numbers,
    numbers,
    st.none() | st.floats(0.0, 99.0),
)


@given(guarantees, guarantees, guarantees)
def test_sums_are_never_less_than_their_parts_and_have_no_order(
    a: Guarantee, b: Guarantee, c: Guarantee
) -> None:
    total = a + b
    assert total.worst_epsilon == pytest.approx(a.worst_epsilon + b.worst_epsilon)
    assert total.worst_spread <= 2 * total.worst_epsilon * (1 + 1e-12)
    assert total.relation.covered <= min(a.relation.covered, b.relation.covered)
    assert (b + a).relation == total.relation
    assert (b + a).worst_epsilon == total.worst_epsilon
    left, right = (a + b) + c, a + (b + c)
    assert left.worst_epsilon == pytest.approx(right.worst_epsilon)
    assert left.relation.kind == right.relation.kind
    assert Guarantee.from_dict(total.to_dict()) == total
    assert total.describe()


@given(guarantees, st.integers(1, 20))
def test_repeating_is_adding_to_oneself(one: Guarantee, count: int) -> None:
    total = one
    for _ in range(count - 1):
        total = total + one
    repeated = one.repeat(count)
    assert repeated.worst_epsilon == pytest.approx(total.worst_epsilon)
    # A sum knows the diameter that it went through; repetition needs none.
    assert repeated.relation == one.relation


def test_one_metric_stays_a_metric_and_two_become_pairs() -> None:
    near = Guarantee("token", Relation(METRIC, metric="euclidean", diameter=2.0), 3.0)
    far = Guarantee("token", Relation(METRIC, metric="angular", diameter=5.0), 1.0)
    assert (near + near).relation == near.relation
    assert (near + near).epsilon == 6.0
    assert (near + far).relation == Relation(ALL_PAIRS)
    assert (near + far).epsilon == 3.0 * 2.0 + 1.0 * 5.0


def test_two_partial_promises_cover_only_what_both_do() -> None:
    a = Guarantee("token", Relation(WITHIN_SETS, covered=0.75), 1.0)
    b = Guarantee("token", Relation(WITHIN_SETS, covered=0.75), 2.0)
    assert (a + b).relation == Relation(COMMON, covered=0.5)
    assert (a + b + b).relation == Relation(COMMON, covered=0.25)


def test_units_are_not_mixed_and_an_audit_stays_one() -> None:
    token = Guarantee("token", Relation(ALL_PAIRS), 1.0)
    with pytest.raises(ParameterError, match="a token and a document"):
        token + token.repeat(3)
    audited = Guarantee("token", Relation(ALL_PAIRS), 1.0, basis=AUDITED)
    assert (token + audited).basis == AUDITED


@pytest.mark.parametrize("names", list(product(["santext", "custext", "fbdd"], repeat=2)))
def test_draws_of_two_mechanisms_keep_the_sum(names: tuple[str, str]) -> None:
    """Two independent draws of one word: for pairs that both cover, losses add up to no more."""
    kernels = [mechanism(name, epsilon=1.0).bind(toys.space_for(name)) for name in names]
    total = kernels[0].guarantee + kernels[1].guarantee
    words = np.arange(len(kernels[0].space))
    promised = sum(kernel.promised(words, words) for kernel in kernels)
    assert promised[np.isfinite(promised)].max() <= total.worst_epsilon * (1 + 1e-12)


@pytest.mark.parametrize("name", mechanisms())
def test_a_release_costs_what_the_guarantee_says(name: str) -> None:
    guarantee = toys.bound(name).guarantee
    release = Pure.of(guarantee)
    assert release.at(0.0) == (guarantee.worst_epsilon, 0.0)
    cost = release.cost()
    assert cost.rho == pytest.approx(guarantee.worst_spread**2 / 8)
    assert cost.rho <= guarantee.worst_epsilon**2 / 2 * (1 + 1e-12)


def test_a_spread_that_is_promised_too_small_is_refuted() -> None:
    """Certification recomputes how far losses spread, and sees a promise that is broken."""
    from dataclasses import replace  # noqa: PLC0415

    for name in ("santext", "custext", "clusant", "tem", "santext+"):
        kernel = toys.bound(name)
        found = kernel.certify()
        assert found.holds
        assert found.max_spread is not None
        assert 0 < found.max_spread <= kernel.guarantee.worst_spread
        kernel.guarantee = replace(kernel.guarantee, spread=found.max_spread * 0.999)
        assert not kernel.certify().holds, name
