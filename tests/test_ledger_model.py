"""Any sequence of charges and budgets, against a model that keeps everything in plain lists."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deniable.budget.charging import Asked, Rate, Run
from deniable.budget.cost import epsilon_of_rho
from deniable.budget.ledger import Ledger
from deniable.budget.limits import Budget
from deniable.budget.replay import replay
from deniable.errors import BudgetError
from ledgers import Clock, clear

NAMES = ("ann", "bob", "Ann", "'; --")
RATES = (
    Rate(1.0, rho=0.5),
    Rate(0.1, rho=0.005, mechanism="small"),
    Rate(3.0, rho=1.125, mechanism="large"),
    Rate(0.5, delta=1e-7),
)
BUDGETS = (
    Budget(0.0),
    Budget(4.0),
    Budget(10.0),
    Budget(7.0, 1e-6),
    Budget(20.0, 1e-5, period=20.5),
    Budget(5.0, period=8.5),
    Budget(9.0, period=100.5),
)
Key = tuple[str, Run, Rate]

records = st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, 6)), max_size=6)
charges = st.tuples(
    records,
    st.sampled_from(RATES),
    st.builds(Run, st.sampled_from(["one", "two"]), st.integers(0, 2)),
    st.booleans(),
)
budgets = st.tuples(st.sampled_from(BUDGETS), st.sampled_from([None, *NAMES]))
# Time goes on by whole seconds, and no period ends at one.
steps = st.tuples(st.integers(1, 12), st.one_of(charges, charges, budgets))


@dataclass
class Model:
    """What a ledger is to do, without any thought of speed."""

    charged: list[tuple[float, str, Rate, int]] = field(default_factory=list)
    paid: dict[Key, int] = field(default_factory=lambda: defaultdict(int))
    budgets: dict[str | None, Budget] = field(default_factory=dict)

    def spent(self, subject: str, at: float) -> tuple[float, float, float, float]:
        """Return epsilon and rho of pure draws, epsilon and delta of the others."""
        budget = self.budget(subject)
        start = at - budget.period if budget and budget.period else 0.0
        mine = [(r, n) for when, who, r, n in self.charged if who == subject and when > start]
        pure = [(r, n) for r, n in mine if not r.delta]
        beside = [(r, n) for r, n in mine if r.delta]
        return (
            sum(rate.epsilon * count for rate, count in pure),
            sum(rate.rho * count for rate, count in pure),
            sum(rate.epsilon * count for rate, count in beside),
            sum(rate.delta * count for rate, count in beside),
        )

    def budget(self, subject: str) -> Budget | None:
        return self.budgets.get(subject, self.budgets.get(None))

    def allows(self, subject: str, at: float, rate: Rate, draws: int) -> bool:
        budget = self.budget(subject)
        if budget is None or draws == 0:
            return True
        self.charged.append((at, subject, rate, draws))
        epsilon, rho, epsilon_beside, delta_beside = self.spent(subject, at)
        self.charged.pop()
        rest = budget.delta - delta_beside
        if rest < -1e-12:
            return False
        least = min(epsilon, epsilon_of_rho(rho, rest)) + epsilon_beside
        return least <= budget.epsilon * (1 + 1e-6)

    def charge(
        self, at: float, asked: list[tuple[str, int]], rate: Rate, run: Run, stop: bool
    ) -> list[bool] | None:
        """Return which records are accepted, or None where a refusal stops all of them."""
        taken: dict[str, int] = defaultdict(int)
        accepted = []
        for subject, draws in asked:
            paid = self.paid[subject, run, rate]
            accepted.append(self.allows(subject, at, rate, max(0, taken[subject] + draws - paid)))
            taken[subject] += draws if accepted[-1] else 0
        if stop and not all(accepted):
            return None
        for subject, draws in taken.items():
            self.pay(at, subject, rate, run, draws)
        return accepted

    def pay(self, at: float, subject: str, rate: Rate, run: Run, draws: int) -> None:
        more = draws - self.paid[subject, run, rate]
        if more > 0:
            self.charged.append((at, subject, rate, more))
            self.paid[subject, run, rate] = draws


def told(ledger: Ledger, asked: list[tuple[str, int]], rate: Rate, run: Run, stop: bool) -> object:
    names, draws = [one for one, _ in asked], [count for _, count in asked]
    try:
        refused = ledger.charge(Asked(names, draws), rate, run, stop=stop)
    except BudgetError:
        return None
    return [one is None for one in refused]


def agree(ledger: Ledger, model: Model, at: float) -> None:
    """Everybody has spent what the model says."""
    for one in ledger.balances():
        epsilon, rho, epsilon_beside, delta_beside = model.spent(one.subject, at)
        cost = one.cost
        found = (cost.epsilon, cost.rho, cost.epsilon_beside, cost.delta_beside)
        assert found == pytest.approx((epsilon, rho, epsilon_beside, delta_beside), abs=1e-9)


@settings(
    deadline=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(made=st.lists(steps, max_size=12))
def test_a_ledger_does_what_the_model_does(
    place: str, made: list[tuple[int, tuple]], clock: Clock
) -> None:
    with Ledger(place) as ledger:
        clear(ledger)
        model = Model()
        for seconds, step in made:
            clock.at += seconds
            if len(step) == 2:
                ledger.set_budget(*step)
                model.budgets[step[1]] = step[0]
            else:
                assert told(ledger, *step) == model.charge(clock.at, *step)
            agree(ledger, model, clock.at)
        assert replay(ledger).problems == []
        assert replay(ledger).draws == sum(draws for *_, draws in model.charged)
