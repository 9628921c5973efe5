"""Charges against budgets, in both databases: what is refused, what is accepted, what adds up."""

from __future__ import annotations

from fractions import Fraction
from math import inf, nan
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deniable.budget.charging import Asked, Counter, NewWords, Rate, Run
from deniable.budget.cost import Cost, epsilon_of_rho
from deniable.budget.ledger import Ledger
from deniable.budget.limits import Budget
from deniable.budget.release import Gaussian, Pure
from deniable.errors import BudgetError, LedgerError
from ledgers import ONE, Clock, clear, draws, pay, spent

# The fixtures are the same for every example: each begins with an empty ledger.
calm = settings(
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def test_a_refusal_that_stops_charges_nobody(ledger: Ledger) -> None:
    ledger.set_budget(Budget(5.0))
    with pytest.raises(BudgetError) as caught:
        ledger.charge(Asked(["ann", "bob", "ann"], [3, 2, 3]), ONE, Run("run", 0), stop=True)
    found = caught.value
    # What comes before it in the call isn't charged either, and so is asked, not spent.
    assert (found.subject, found.spent, found.asked, found.budget) == ("ann", 0.0, 6.0, 5.0)
    assert draws(ledger) == {}


def test_a_charge_that_fails_halfway_leaves_nothing(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Counter.write

    def fail(counter: Counter) -> None:
        write(counter)
        raise KeyboardInterrupt

    monkeypatch.setattr(Counter, "write", fail)
    with pytest.raises(KeyboardInterrupt):
        pay(ledger, "ann", 1)
    monkeypatch.undo()
    assert draws(ledger) == {}
    assert pay(ledger, "ann", 1)


def test_what_does_not_fit_is_left_out_and_smaller_ones_still_fit(ledger: Ledger) -> None:
    ledger.set_budget(Budget(5.0))
    asked = Asked(["ann", "ann", "bob", "ann", "ann", "ann"], [3, 4, 5, 2, 1, 0])
    refused = ledger.charge(asked, ONE, Run("run", 0))
    assert [one is None for one in refused] == [True, False, True, True, False, True]
    said = [(one.subject, one.spent, one.asked, one.budget) for one in refused if one]
    assert said == [("ann", 3.0, 4.0, 5.0), ("ann", 5.0, 1.0, 5.0)]
    assert draws(ledger) == {"ann": 5, "bob": 5}


def test_nobody_asking_is_fine(ledger: Ledger) -> None:
    assert ledger.charge(Asked([], []), ONE, Run("run", 0)) == []
    assert draws(ledger) == {}


FULL = [
    (1.0, 5.0, 5),
    (0.1, 3.0, 30),
    (1.0 / 3.0, 1.0, 3),
    (1.0 + 1e-9, 5.0, 5),
    (1e300, 3e300, 3),
    (8e307, 1.6e308, 2),
    (1e-300, 7e-300, 7),
    (5e-324, 1.5e-323, 3),
]


@pytest.mark.parametrize(("epsilon", "budget", "most"), FULL)
@pytest.mark.parametrize("at_once", [True, False])
def test_a_budget_is_filled_to_the_last_draw_and_no_further(
    ledger: Ledger, epsilon: float, budget: float, most: int, at_once: bool
) -> None:
    ledger.set_budget(Budget(budget))
    rate = Rate(epsilon)
    steps = [most] if at_once else [1] * most
    assert all(pay(ledger, "ann", count, part, rate=rate) for part, count in enumerate(steps))
    assert not pay(ledger, "ann", 1, 1000, rate=rate)
    assert draws(ledger) == {"ann": most}


def test_no_budget_refuses_nothing_and_none_at_all_refuses_everything(ledger: Ledger) -> None:
    assert pay(ledger, "ann", 10**6)
    ledger.set_budget(Budget(0.0))
    assert not pay(ledger, "bob", 1)
    assert pay(ledger, "bob", 0, 1)
    assert draws(ledger) == {"ann": 10**6, "bob": 0}


def test_the_newest_budget_counts_and_ones_own_before_everyones(ledger: Ledger) -> None:
    ledger.set_budget(Budget(1.0))
    ledger.set_budget(Budget(3.0), "ann")
    assert pay(ledger, "ann", 3)
    assert not pay(ledger, "bob", 2)
    ledger.set_budget(Budget(2.0))
    assert pay(ledger, "bob", 2)
    assert not pay(ledger, "ann", 1, 1)
    ledger.set_budget(Budget(4.0), "ann")
    assert pay(ledger, "ann", 1, 1)
    ledger.set_budget(Budget(0.5), "ann")
    assert not pay(ledger, "ann", 1, 2)
    assert draws(ledger) == {"ann": 4, "bob": 2}


def test_the_same_budget_is_set_once(ledger: Ledger) -> None:
    for epsilon in (5.0, 5.0, 6.0, 6.0, 5.0):
        ledger.ensure_budget(Budget(epsilon))
    assert [row.budget.epsilon for row in ledger.budgets()] == [5.0, 6.0, 5.0]


def test_a_period_lets_go_of_a_charge_when_it_has_passed(ledger: Ledger, clock: Clock) -> None:
    ledger.set_budget(Budget(2.0, period=10.0))
    clock.at = 2e9
    assert pay(ledger, "ann", 1, 0)
    clock.at += 4.0
    assert pay(ledger, "ann", 1, 1)
    clock.at += 5.75
    assert not pay(ledger, "ann", 1, 2)
    clock.at += 0.25
    assert spent(ledger) == {"ann": 1.0}
    assert pay(ledger, "ann", 1, 2)
    clock.at += 3.75
    assert not pay(ledger, "ann", 1, 3)
    clock.at += 1000.0
    assert spent(ledger) == {"ann": 0.0}
    assert pay(ledger, "ann", 2, 3)
    assert draws(ledger) == {"ann": 5}


def test_periods_are_each_subjects_own(ledger: Ledger, clock: Clock) -> None:
    ledger.set_budget(Budget(1.0, period=10.0))
    ledger.set_budget(Budget(1.0, period=100.0), "bob")
    ledger.set_budget(Budget(1.0), "eve")
    names = ["ann", "bob", "eve"]
    accepted = []
    for part in range(3):
        asked = Asked(names, [1] * 3)
        accepted.append([one is None for one in ledger.charge(asked, ONE, Run("run", part))])
        clock.at += 51.0
    assert accepted == [[True] * 3, [True, False, False], [True, True, False]]
    assert draws(ledger) == {"ann": 3, "bob": 2, "eve": 1}


def test_with_a_delta_charges_are_composed_and_more_fit_in(ledger: Ledger) -> None:
    rate = Rate.of(Pure(0.1))
    ledger.set_budget(Budget(5.0, 1e-6))
    most = max(n for n in range(5000) if epsilon_of_rho(n * rate.rho, 1e-6) <= 5.0)
    assert most > 50  # which is what the sum would allow
    assert pay(ledger, "ann", most - 1, 0, rate=rate)
    assert pay(ledger, "ann", 1, 1, rate=rate)
    assert not pay(ledger, "ann", 1, 2, rate=rate)
    assert draws(ledger) == {"ann": most}
    assert spent(ledger)["ann"] == pytest.approx(epsilon_of_rho(most * rate.rho, 1e-6), rel=1e-9)


def test_gaussian_noise_needs_a_delta(ledger: Ledger) -> None:
    rate = Rate.of(Gaussian(10.0))
    ledger.set_budget(Budget(100.0))
    ledger.set_budget(Budget(5.0, 1e-6), "ann")
    assert not pay(ledger, "bob", 1, rate=rate)
    assert pay(ledger, "ann", 50, rate=rate)
    assert not pay(ledger, "ann", 10_000, 1, rate=rate)
    # From then on nothing of ann's can be had without a delta.
    ledger.set_budget(Budget(100.0), "ann")
    assert not pay(ledger, "ann", 1, 2)
    assert draws(ledger) == {"ann": 50}


@pytest.mark.parametrize("at_once", [True, False])
def test_deltas_add_up_to_that_of_the_budget(ledger: Ledger, at_once: bool) -> None:
    rate = Rate(0.25, delta=1e-7)
    ledger.set_budget(Budget(25.0, 1e-5))
    steps = [100] if at_once else [1] * 100
    assert all(pay(ledger, "ann", count, part, rate=rate) for part, count in enumerate(steps))
    assert spent(ledger) == {"ann": pytest.approx(25.0)}
    ledger.set_budget(Budget(1000.0, 1e-5))
    assert not pay(ledger, "ann", 1, 1000, rate=rate)
    ledger.set_budget(Budget(1000.0))
    assert not pay(ledger, "bob", 1, rate=rate)
    assert draws(ledger) == {"ann": 100}


def test_a_draw_of_unknown_rho_is_added_and_never_composed(ledger: Ledger) -> None:
    ledger.set_budget(Budget(5.0, 1e-6))
    assert pay(ledger, "ann", 5, rate=Rate(1.0))
    assert not pay(ledger, "ann", 1, 1, rate=Rate(1.0))


def test_the_same_part_of_a_run_pays_once(ledger: Ledger) -> None:
    ledger.set_budget(Budget(5.0))
    for _ in range(3):
        assert pay(ledger, "ann", 3)
    # Less than was paid for is paid for; of more, what is beyond.
    assert pay(ledger, "ann", 2)
    assert pay(ledger, "ann", 4)
    assert not pay(ledger, "ann", 6)
    assert pay(ledger, "ann", 5)
    assert draws(ledger) == {"ann": 5}
    # What is paid for stays so when the budget is gone.
    ledger.set_budget(Budget(0.0))
    assert pay(ledger, "ann", 5)
    assert not pay(ledger, "ann", 6)
    assert not pay(ledger, "ann", 1, 1)
    assert not pay(ledger, "ann", 1, run="another")
    ledger.set_budget(Budget(7.0))
    assert pay(ledger, "ann", 6)
    assert pay(ledger, "ann", 1, run="another")
    assert draws(ledger) == {"ann": 7}
    assert [one.records for one in ledger.balances()] == [2]


def test_a_part_that_was_cut_short_goes_on_where_budgets_allow(ledger: Ledger) -> None:
    asked = Asked(["ann", "ann", "ann"], [3, 4, 1])
    for budget, accepted in ((4.0, [1, 0, 1]), (4.0, [1, 0, 1]), (7.0, [1, 1, 0]), (8.0, [1] * 3)):
        ledger.set_budget(Budget(budget))
        found = ledger.charge(asked, ONE, Run("run", 0))
        assert [int(one is None) for one in found] == accepted
        assert draws(ledger) == {"ann": int(budget)}


def test_what_was_paid_at_one_rate_pays_for_no_other(ledger: Ledger) -> None:
    ledger.set_budget(Budget(10.0))
    assert pay(ledger, "ann", 3)
    assert pay(ledger, "ann", 3, rate=Rate(2.0, rho=2.0))
    assert not pay(ledger, "ann", 3, rate=Rate(2.0, rho=1.0))
    assert pay(ledger, "ann", 1, rate=ONE._replace(mechanism="another"))
    assert spent(ledger) == {"ann": 10.0}


def test_a_word_pays_once_and_only_if_its_record_is_accepted(ledger: Ledger) -> None:
    ledger.set_budget(Budget(3.0))
    words = [frozenset({1, 2}), frozenset({2, 3, 4}), frozenset({1, 3}), frozenset({4})]
    refused = ledger.charge(NewWords(["ann"] * 4, words), ONE, Run("run", 0))
    assert [one is None for one in refused] == [True, False, True, False]
    assert draws(ledger) == {"ann": 3}


def test_words_that_were_paid_for_pay_for_no_others(ledger: Ledger) -> None:
    ledger.set_budget(Budget(2.0))
    names = ["ann", "ann"]
    refused = ledger.charge(
        NewWords(names, [frozenset({1, 2}), frozenset({3})]), ONE, Run("run", 0)
    )
    assert [one is None for one in refused] == [True, False]
    # The words 1 and 2 were drawn and are remembered; then the run breaks, and goes on.
    ledger.set_budget(Budget(3.0))
    again = NewWords(names, [frozenset(), frozenset({3})])
    assert ledger.charge(again, ONE, Run("run", 0)) == [None, None]
    assert draws(ledger) == {"ann": 3}


NONSENSE: list[Any] = [
    (Rate(-1.0), [1]),
    (Rate(nan), [1]),
    (Rate(1.0, delta=-1e-9), [1]),
    (Rate(1.0, rho=-1.0), [1]),
    (Rate(1.0, rho=nan), [1]),
    (ONE, [-1]),
    (ONE, [1, -1]),
    (ONE, [2**63]),
    (ONE, [10**400]),
    (ONE._replace(mechanism="\ud800"), [1]),
]


@pytest.mark.parametrize(("rate", "counts"), NONSENSE)
def test_no_charge_gives_anything_back(ledger: Ledger, rate: Rate, counts: list[int]) -> None:
    assert pay(ledger, "ann", 2)
    with pytest.raises(LedgerError) as caught:
        ledger.charge(Asked(["ann"] * len(counts), counts), rate, Run("run", 1))
    assert "\n" not in str(caught.value)
    assert draws(ledger) == {"ann": 2}


def test_half_a_draw_and_uneven_lists_are_no_call() -> None:
    with pytest.raises(TypeError):
        Asked(["ann"], [0.5])  # type: ignore[list-item]
    with pytest.raises(LedgerError):
        Asked(["ann", "bob"], [1])


def test_an_infinite_loss_is_within_no_budget(ledger: Ledger) -> None:
    largest = 1.7976931348623157e308
    ledger.set_budget(Budget(largest))
    ledger.set_budget(Budget(largest, 1e-6), "bob")
    assert not pay(ledger, "ann", 1, rate=Rate(inf))
    assert not pay(ledger, "ann", 3, rate=Rate(largest / 2))
    assert not pay(ledger, "bob", 1, rate=Rate(inf))
    assert pay(ledger, "ann", 1, rate=Rate(largest))
    assert draws(ledger) == {"ann": 1}


@pytest.mark.parametrize("rho", [1e29, 1e33, 1e100, 1e308])
def test_a_huge_rho_is_no_free_draw(ledger: Ledger, rho: float) -> None:
    ledger.set_budget(Budget(5.0, 1e-5))
    assert not pay(ledger, "ann", 1, rate=Rate((2 * rho) ** 0.5, rho=rho))


@pytest.mark.parametrize("huge", [1e17, 1e300])
def test_a_huge_charge_hides_no_later_one(ledger: Ledger, clock: Clock, huge: float) -> None:
    assert pay(ledger, "ann", 1, rate=Rate(huge, rho=huge))
    ledger.set_budget(Budget(5.0, period=10.0))
    clock.at += 100.0
    accepted = sum(pay(ledger, "ann", 1, part) for part in range(10))
    assert accepted <= 5
    draws(ledger)


@calm
@given(rates=st.lists(st.floats(0, 1e12), max_size=20), counts=st.lists(st.integers(0, 9)))
def test_totals_are_never_below_the_sum(
    ledger: Ledger, rates: list[float], counts: list[int]
) -> None:
    clear(ledger)
    charged = list(zip(rates, counts, strict=False))
    for part, (epsilon, count) in enumerate(charged):
        pay(ledger, "ann", count, part, rate=Rate(epsilon, rho=epsilon))
    exact = sum((Fraction(epsilon * count) for epsilon, count in charged), Fraction(0))
    cost = ledger.balances()[0].cost if charged else Cost()
    assert exact <= Fraction(cost.epsilon) <= exact * (1 + Fraction(1, 10**12))
    assert cost.rho == cost.epsilon


def test_a_clock_that_is_set_back_a_little_keeps_times_in_order(
    ledger: Ledger, clock: Clock
) -> None:
    for part, back in enumerate((0.0, 3.0, 0.5, 4.9)):
        clock.at = 2e9 - back
        assert pay(ledger, "ann", 1, part)
        assert pay(ledger, "bob", 1, part)
    times = [charge.at for charge in ledger.charges()]
    assert times == [2e9] * 8
    clock.at = 2e9
    assert draws(ledger) == {"ann": 4, "bob": 4}


def test_a_clock_that_is_far_behind_is_refused(ledger: Ledger, clock: Clock) -> None:
    pay(ledger, "ann", 1)
    clock.at -= 5.1
    said = "the clock is 5 s behind the ledger's newest entry: set it right"
    with pytest.raises(LedgerError, match=said):
        pay(ledger, "ann", 1, 1)
    with pytest.raises(LedgerError, match=said):
        ledger.set_budget(Budget(1.0))
    # A subject who was never charged has no time that could go back.
    assert pay(ledger, "bob", 1)
    clock.at += 5.1
    assert draws(ledger) == {"ann": 1, "bob": 1}


def test_budgets_and_charges_keep_their_order_while_the_clock_stands_still_or_goes_back(
    ledger: Ledger, clock: Clock
) -> None:
    for part in range(6):
        ledger.set_budget(Budget(0.5), "ann")
        assert not pay(ledger, "ann", 1, 100)
        ledger.set_budget(Budget(part + 1.0), "ann")
        clock.at -= 0.75 if part % 2 else 0.0
        assert pay(ledger, "ann", 1, part)
        clock.at += 0.5 if part < 4 else 0.0
    assert [row.at for row in ledger.budgets()] == sorted(row.at for row in ledger.budgets())
    assert draws(ledger) == {"ann": 6}
