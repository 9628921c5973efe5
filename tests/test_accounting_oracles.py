"""What methods say, against what is known otherwise: fractions, many digits, other formulas."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from deniable.budget import Approximate, Cost, Gaussian, Pure, Release, account, methods, numerical
from deniable.budget.calibration import TOLERANCE, noise_needed
from deniable.budget.cost import epsilon_of_rho
from deniable.budget.gaussian import delta_of, epsilon_of, mu_of, mu_of_pure
from deniable.budget.renyi import curve

DP: Any = pytest.importorskip("dp_accounting", reason="SKIPPED FOR WANT OF dp-accounting")
MP: Any = pytest.importorskip("mpmath", reason="SKIPPED FOR WANT OF mpmath")

INF = math.inf
PLD, RDP = methods()["pld"].compute, methods()["rdp"].compute
ORDERS = np.array([1.02, 1.3, 1.5, 2.0, 2.7, 3.0, 6.4, 10.9, 17.0, 64.0])


@pytest.fixture(autouse=True)
def digits() -> Any:
    """Compute with many digits."""
    with MP.workdps(60):
        yield


@pytest.fixture
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is looked at holds on every grid, and a coarse one is quick."""
    monkeypatch.setattr(numerical, "POINTS", 50_000)
    monkeypatch.setattr(numerical, "ONCE", 4_000)


def says(name: str, composition: dict[Release, int], delta: float) -> float:
    return methods()[name].compute(composition, delta)


# Randomised response: the best bound for pure releases is the one that is met.


def met(ratio: Fraction, count: int, delta: Fraction) -> float:
    """The least epsilon of so many responses whose epsilon is ln ratio (Kairouz, Oh, Viswanath).

    At exp(epsilon) = s the delta is sum of max(0, P - s Q) over the number k of false answers,
    a falling polygon in s.
    """
    upper = lower = Fraction(0)
    whole = (1 + ratio) ** count
    for k in range(count + 1):
        upper += math.comb(count, k) * ratio ** (count - k) / whole
        lower += math.comb(count, k) * ratio**k / whole
        s = (upper - delta) / lower
        if s >= ratio ** (count - 2 * k - 2):
            break
    return max(0.0, float(_log(s))) if s > 0 else 0.0


def _log(ratio: Fraction) -> Any:
    return MP.log(MP.mpf(ratio.numerator) / MP.mpf(ratio.denominator))


@pytest.mark.parametrize("ratio", ["1000001/1000000", "101/100", "6/5", "3", "150", "1e22"])
@pytest.mark.parametrize("count", [1, 2, 7, 100, 400])
def test_pure_releases_cost_what_the_best_attack_shows(ratio: str, count: int) -> None:
    exact, epsilon = Fraction(ratio), float(_log(Fraction(ratio)))
    for delta in (1e-300, 1e-15, 1e-12, 1e-6, 0.01, 0.3, 0.9):
        truth = met(exact, count, Fraction(delta))
        found = PLD({Pure(epsilon): count}, delta)
        assert truth * (1 - 1e-9) <= found <= truth * (1 + 1e-6), delta
        for one in account({Pure(epsilon): count}, delta):
            assert one.epsilon >= truth * (1 - 1e-9), one


@pytest.mark.parametrize(("count", "more"), [(1, 1), (3, 40), (200, 300)])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.1])
def test_releases_of_two_kinds_are_rounded_up_but_not_far(
    count: int, more: int, delta: float
) -> None:
    for one, two in ((Pure(1.0), Pure(0.37)), (Pure(0.02), Pure(6.0))):
        truth = _two_kinds(one, count, two, more, delta)
        assert truth * (1 - 1e-9) <= PLD({one: count, two: more}, delta) <= truth * 1.006


def _two_kinds(one: Pure, count: int, two: Pure, more: int, delta: float) -> float:
    """The least epsilon, from all pairs of numbers of false answers."""
    losses, upper = np.zeros(1), np.ones(1)
    for each, n in ((one, count), (two, more)):
        k = np.arange(n + 1)
        logs = np.array(
            [math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) for i in k]
        )
        logs -= k * each.epsilon + n * math.log1p(math.exp(-each.epsilon))
        losses = np.add.outer(losses, (n - 2 * k) * each.epsilon).ravel()
        upper = np.multiply.outer(upper, np.exp(logs)).ravel()
    return least(losses, upper, delta)


def least(losses: Any, upper: Any, delta: float) -> float:
    """The least epsilon of a finite pair, from its losses and how likely each is."""
    order = np.argsort(-losses)
    before, mass, rest = float(losses.max()), 0.0, 0.0
    for loss, chance in zip([*losses[order], -INF], [*upper[order], 0.0], strict=True):
        # Down to the next loss, delta is mass - exp(epsilon - before) rest.
        if mass > delta and (found := before + math.log((mass - delta) / rest)) >= loss:
            return max(0.0, float(found))
        mass, rest, before = mass + chance, rest * math.exp(loss - before) + chance, loss
    return 0.0


def test_small_losses_are_not_lost_in_rounding() -> None:
    """Many releases of 1e-9 lose more than nothing, and no method says otherwise."""
    count, delta = 10**7, 1e-10
    # The sum of so many losses is normal, but for its last digits.
    truth = epsilon_of(delta, math.sqrt(count) * 1e-9)
    assert truth > 1e-5
    for one in account({Pure(1e-9): count}, delta):
        assert one.epsilon > 0.999 * truth, one
    assert PLD({Pure(1e-9): count}, delta) < 1.001 * truth
    tiny: dict[Release, int] = {Gaussian(1.0, sample_rate=1e-9): count}
    for one in account(tiny, delta):
        if one.method.kind == "bound":
            # At the truth delta is at most the chance to take part: it can't be 0.
            assert one.epsilon > 0, one


def test_a_huge_loss_is_not_nothing() -> None:
    """Floats can't tell its best order from 1."""
    for rho in (1e10, 1e30, 1e40, 1e150, 1e300):
        assert rho <= epsilon_of_rho(rho, 1e-6) <= rho * (1 + 1e-4) + 2 * math.sqrt(14 * rho)
    for one in account({Pure(1e20): 3}, 1e-6):
        assert one.epsilon >= 1.3e20, one
    assert Cost.gaussian(1e20).best(1e-6).epsilon >= 4.9e39


# Gaussian noise.


def delta_at(epsilon: Any, mu: Any) -> Any:
    """The delta of a Gaussian trade-off, with many digits."""
    epsilon, mu = MP.mpf(epsilon), MP.mpf(mu)
    upper = MP.erfc((epsilon / mu - mu / 2) / MP.sqrt(2)) / 2
    return upper - MP.exp(epsilon) * MP.erfc((epsilon / mu + mu / 2) / MP.sqrt(2)) / 2


@pytest.mark.parametrize("mu", [1e-12, 1e-3, 0.02, 0.3, 0.5, 0.7, 1.0, 4.0, 11.0, 50.0])
def test_the_epsilon_of_gaussian_noise_holds_and_is_tight(mu: float) -> None:
    for delta in (1e-300, 1e-100, 1e-20, 1e-10, 1e-5, 1e-3, 0.1, 0.5):
        found = epsilon_of(delta, mu)
        assert delta_at(found, mu) <= delta
        slack = 0.06 if delta < 1e-290 else 1e-9
        assert found == 0 or delta_at(found * (1 - slack), mu) > delta
        for epsilon in (0.0, found / 3, found):
            truth = delta_at(epsilon, mu)
            # Smaller numbers have fewer digits.
            assert truth < 1e-300 or abs(delta_of(epsilon, mu) / truth - 1) < 1e-11


def test_gaussian_delta_is_what_scipy_says() -> None:
    for epsilon, mu in ((0.0, 1.0), (1.0, 1.0), (4.0, 2.5), (0.1, 0.2)):
        a, b = epsilon / mu - mu / 2, epsilon / mu + mu / 2
        truth = norm.sf(a) - math.exp(epsilon) * norm.sf(b)
        assert delta_of(epsilon, mu) == pytest.approx(truth, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 3.0, 40.0])
def test_mu_of_is_the_inverse(epsilon: float) -> None:
    mu = mu_of(epsilon, 1e-5)
    assert epsilon_of(1e-5, mu) <= epsilon < epsilon_of(1e-5, mu * 1.000001) + 1e-12


@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize("count", [1, 9, 1000])
@pytest.mark.parametrize("mu", [0.01, 0.3, 2.0])
def test_many_gaussian_releases_are_one_with_less_noise(mu: float, count: int) -> None:
    for delta in (1e-9, 0.1):
        truth = says("gdp", {Gaussian(1.0, mu * math.sqrt(count)): 1}, delta)
        assert says("gdp", {Gaussian(1.0, mu): count}, delta) == pytest.approx(truth, rel=1e-9)
        # A grid rounds a little, and up.
        assert truth <= PLD({Gaussian(1.0, mu): count}, delta) <= truth * 1.001 + 1e-4


@pytest.mark.parametrize("epsilon", [1e-12, 1e-8, 9e-4, 1.1e-3, 0.1, 1.0, 8.0, 30.0])
def test_the_gaussian_trade_off_of_a_pure_release_lies_below_its_own(epsilon: float) -> None:
    """At every error of the first kind, and they meet at one."""
    mu = mu_of_pure(epsilon)
    alike = MP.sqrt(2) * 2 * MP.erfinv(MP.tanh(MP.mpf(epsilon) / 2))
    assert alike <= mu <= alike * (1 + 1e-11)
    kink = 1 / (1 + math.exp(epsilon))
    first = np.concatenate([np.geomspace(kink / 1e6, kink, 400), np.linspace(kink, 1, 400)])
    gaussian = norm.cdf(norm.isf(first) - mu)
    pure = np.maximum(1 - math.exp(epsilon) * first, math.exp(-epsilon) * (1 - first))
    assert (gaussian <= pure + 1e-15).all()
    assert gaussian[399] == pytest.approx(pure[399], rel=1e-6)


# Renyi divergences.


@pytest.mark.parametrize("epsilon", [1e-12, 1e-5, 0.1, 1.0, 20.0, 900.0])
def test_the_curve_of_a_pure_release(epsilon: float) -> None:
    found = curve(Pure(epsilon), ORDERS)
    for order, divergence in zip(ORDERS.tolist(), found, strict=True):
        a, e = MP.mpf(order), MP.mpf(epsilon)
        response = MP.log(MP.cosh((a - 0.5) * e) / MP.cosh(e / 2)) / (a - 1)
        assert divergence == pytest.approx(float(response), rel=1e-9)


@pytest.mark.parametrize(
    ("mu", "rate"),
    [(1e-3, 0.5), (0.05, 1e-9), (1.0, 0.01), (1 / 0.6, 0.01), (2.0, 0.999), (5, 0.1)],
)
def test_the_curve_of_sampled_noise(mu: float, rate: float) -> None:
    """Against the integral that defines it."""
    orders = np.array([1.02, 2.0, 5.3])
    found = curve(Gaussian(1.0, mu, rate), orders)
    for order, divergence in zip(orders.tolist(), found, strict=True):
        truth = float(_divergence(mu, rate, order))
        assert truth * (1 - 1e-12) <= divergence <= truth * (1 + 1e-8)


def _divergence(mu: float, rate: float, order: float) -> Any:
    m, q = MP.mpf(mu), MP.mpf(rate)

    def integrand(x: Any) -> Any:
        gain = MP.log1p(q * MP.expm1(m * x - m * m / 2))
        return MP.npdf(x) * MP.expm1(MP.mpf(order) * gain)

    with MP.workdps(25):
        return MP.log1p(MP.quad(integrand, [*range(-12, int(order * mu) + 15, 3)])) / (order - 1)


@pytest.mark.parametrize(
    ("sigma", "rate", "steps"), [(0.6, 0.01, 1000), (2.0, 0.1, 500), (1, 1, 30)]
)
def test_renyi_accounting_agrees_with_another_program(
    sigma: float, rate: float, steps: int
) -> None:
    once = DP.GaussianDpEvent(sigma)
    event = DP.PoissonSampledDpEvent(rate, once) if rate < 1 else once
    truth = DP.rdp.RdpAccountant().compose(event, steps).get_epsilon(1e-5)
    found = RDP({Gaussian(sigma, 1.0, rate): steps}, 1e-5)
    # It takes some terms to be positive that aren't, for orders that aren't whole.
    assert 0.99 * truth < found <= truth * (1 + 1e-9)


@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize(("sigma", "rate", "steps"), [(1, 0.1, 50), (0.3, 0.01, 20), (30, 0.5, 99)])
def test_sampled_noise_costs_no_less_than_an_optimist_says(
    sigma: float, rate: float, steps: int
) -> None:
    """A distribution whose losses are all rounded down is a bound from below."""
    make, step = DP.pld.privacy_loss_distribution.from_gaussian_mechanism, 1e-3
    once = make(sigma, 1.0, False, step, sampling_prob=rate, use_connect_dots=False)
    below = once.self_compose(steps)
    for delta in (1e-9, 1e-5, 0.01):
        truth = below.get_epsilon_for_delta(delta)
        assert truth <= PLD({Gaussian(sigma, 1.0, rate): steps}, delta) <= truth + steps * step


def test_zcdp_finds_the_best_order() -> None:
    for rho in (1e-8, 1e-3, 0.1, 1.0, 12.5, 1e4):
        for delta in (1e-200, 1e-12, 1e-5, 0.1, 0.6):

            def bound(t: float, rho: float = rho, delta: float = delta) -> float:
                above = math.exp(t)
                order = 1 + above
                return rho * order + math.log(above / order) - math.log(delta * order) / above

            best = minimize_scalar(
                bound, bounds=(-15, 25), method="bounded", options={"xatol": 1e-9}
            )
            found = epsilon_of_rho(rho, delta)
            assert max(0.0, best.fun) * (1 - 1e-9) <= found <= max(0.0, best.fun) * 1.001 + 1e-9
            assert found <= rho + 2 * math.sqrt(rho * math.log(1 / delta))


def test_what_spreads_little_is_concentrated() -> None:
    """An exponential mechanism's Renyi divergence is at most order x spread^2 / 8."""
    source = np.random.default_rng(8)
    tightest = 0.0
    for _ in range(300):
        words, scale = source.integers(2, 12), 10 ** source.uniform(-2, 1.5)
        scores = scale * source.normal(size=(2, words))
        if source.random() < 0.5:
            scores = scale * source.integers(0, 2, size=(2, words))
        logs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        losses = logs[0] - logs[1]
        spread, loss = losses.max() - losses.min(), np.abs(losses).max()
        for order in (1.001, 1.5, 2.0, 5.0, 60.0, 300.0):
            exponents = order * logs[0] + (1 - order) * logs[1]
            most = exponents.max()
            divergence = (most + math.log(np.exp(exponents - most).sum())) / (order - 1)
            bound = order * spread**2 / 8
            assert divergence <= bound * (1 + 1e-9) + 1e-12
            assert (
                divergence <= curve(Pure(loss, spread), np.array([order]))[0] * (1 + 1e-9) + 1e-12
            )
            tightest = max(tightest, divergence / bound if bound > 1e-9 else 0.0)
    assert tightest > 0.9


# Numbers that were known before.


def test_known_numbers() -> None:
    hundred = Cost.pure(1.0, spread=1.0) * 100
    assert hundred.best(1e-5).epsilon <= 36.5
    assert hundred.best(1e-5).method == "zcdp"
    assert round(epsilon_of(1e-5, 1 / 0.75), 1) == 6.1
    assert round(epsilon_of(1e-5, 2 / 0.75), 1) == 14.3
    steps: dict[Release, int] = {Gaussian(0.6, sample_rate=0.01): 1000}
    assert round(says("paper:gdp-clt", steps, 1e-5), 2) == 5.56
    assert 7.38 <= PLD(steps, 1e-5) <= 7.44
    assert round(PLD({Pure(1.0): 100}, 1e-6), 1) == 83.5


# Extremes, and noise that is found.

EXTREMES: tuple[Release, ...] = (
    *(Pure(epsilon) for epsilon in (5e-324, 1e-160, 1e-12, 50.0, 500.0, 701.0, 1e20, 1e308)),
    *(Approximate(epsilon, delta) for epsilon in (0.0, 600.0) for delta in (1e-300, 0.95)),
    *(
        Gaussian(sigma, 1.0, rate)
        for sigma in (1e-308, 1e-20, 0.004, 0.05, 1e6, 1e20, 1e308)
        for rate in (1.0, 0.5, 1e-6, 1e-300)
    ),
    Gaussian(1e-300, 1e300),
)


@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize("one", EXTREMES, ids=repr)
def test_extremes_neither_break_nor_vanish(one: Release) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for count, delta in ((1, 1e-15), (1, 0.9), (10**7, 1e-6)):
            found = account({one: count}, delta)
            assert all(each.epsilon >= 0 for each in found)
    # What one Gaussian release without sampling costs is known.
    if isinstance(one, Gaussian) and 1e-4 < one.mu < 1e3 and one.sample_rate == 1.0:
        for each in account({one: 1}, 1e-6):
            assert each.method.kind != "bound" or delta_at(each.epsilon, one.mu) <= 1e-6


@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize(
    "name", ["gdp", "zcdp", "rdp", "pld", "basic", "paper:rdp", "paper:gdp-clt"]
)
@pytest.mark.parametrize(("once", "steps"), [(Gaussian(0.6), 10), (Gaussian(3, 2, 0.05), 100)])
def test_the_noise_that_is_found_is_enough_and_no_more(
    name: str, once: Gaussian, steps: int
) -> None:
    method = methods()[name]
    for target in (0.7, 5.0):
        sigma = noise_needed(method, once, steps, target, 1e-5)
        if sigma == INF:
            assert once.sample_rate < 1
            assert method.compute({Gaussian(1e6, 2, once.sample_rate): steps}, 1e-5) > target
            continue
        enough = Gaussian(sigma, once.sensitivity, once.sample_rate)
        less = Gaussian(sigma * (1 - 2 * TOLERANCE), once.sensitivity, once.sample_rate)
        assert method.compute({enough: steps}, 1e-5) <= target
        assert method.compute({less: steps}, 1e-5) > target


def test_no_noise_is_needed_for_what_is_rarely_looked_at() -> None:
    """A delta above the chance to take part holds without noise; none holds without a delta."""
    once = Gaussian(1.0, sample_rate=0.1)
    assert noise_needed(methods()["basic"], once, 1, 1.0, 0.5) < 1e-8
    assert noise_needed(methods()["gdp"], Gaussian(1.0), 1, 1.0, 0.0) == INF
