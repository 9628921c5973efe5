"""The audit: exact intervals, and promises that are false are refuted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

import toys
from deniable import Kernel, Space, mechanism
from deniable.audit import ERROR, METHOD, at_least, at_most, audit, loss_at_least, telling_pairs
from deniable.testing import seeded

Ids = npt.NDArray[np.int64]


@pytest.mark.parametrize("trials", [1, 7, 1000, 20_000])
@pytest.mark.parametrize("error", [0.05, 1e-9])
def test_intervals_are_those_of_clopper_and_pearson(trials: int, error: float) -> None:
    for hits in sorted({0, 1, trials // 3, trials - 1, trials}):
        low = stats.beta.ppf(error, hits, trials - hits + 1) if hits else 0.0
        high = stats.beta.ppf(1 - error, hits + 1, trials - hits) if hits < trials else 1.0
        assert at_least(hits, trials, error) == pytest.approx(low, rel=1e-6, abs=1e-15)
        assert at_most(hits, trials, error) == pytest.approx(high, rel=1e-6)


def test_a_bound_is_wrong_as_seldom_as_it_says() -> None:
    """Random intervals at 5 % miss the truth in about 5 % of all trials, never much more."""
    draws = np.random.default_rng(0).binomial(500, 0.3, size=2000)
    missed = sum(at_least(int(hits), 500, 0.05) > 0.3 for hits in draws)
    assert 0.02 < missed / 2000 < 0.06


class Claiming(Kernel):
    """A kernel that draws like another, with a promise of its own."""

    def __init__(self, inner: Kernel, share: float) -> None:
        self._inner, self._share = inner, share
        self.mechanism, self.space, self.outputs = inner.mechanism, inner.space, inner.outputs
        self.guarantee = replace(inner.guarantee, epsilon=inner.guarantee.epsilon * share)

    def draws(self, words: Ids, how_many: Ids) -> Ids:
        return self._inner.draws(words, how_many)

    def promised(self, a: Ids, b: Ids) -> npt.NDArray[np.float64]:
        return self._inner.promised(a, b) * self._share

    def certify(self):
        return audit(self)


def line() -> Space:
    return Space.from_arrays([f"w{i}" for i in range(8)], np.linspace(0, 3, 8)[:, None])


@pytest.mark.parametrize("name", ["fbdd", "mahalanobis", "vickrey"])
def test_a_promise_of_which_30_percent_are_missing_is_refuted(name: str) -> None:
    parameters = {"t": 0.0} if name == "vickrey" else {}
    kernel = mechanism(name, epsilon=1.0, **parameters).bind(line())
    with seeded(1):
        assert audit(kernel, draws=100_000).holds
        refuted = audit(Claiming(kernel, 0.7), draws=100_000)
    assert not refuted.holds
    assert refuted.worst > 1.0
    assert refuted.worst_pair is not None


class DroppingTheWord(Claiming):
    """Vickrey gone wrong: the private word itself may not be the answer."""

    def draws(self, words: Ids, how_many: Ids) -> Ids:
        every = np.repeat(words, how_many)
        drawn = self._inner.draws(words, how_many)
        while (same := np.flatnonzero(drawn == every)).size:
            drawn[same] = self._inner.sample(every[same])
        return drawn


def test_a_mechanism_that_never_returns_the_word_itself_is_refuted() -> None:
    kernel = mechanism("vickrey", epsilon=1.0).bind(line())
    with seeded(2):
        assert kernel.certify().holds
        found = audit(DroppingTheWord(kernel, 1.0))
    assert not found.holds


def test_equal_words_are_promised_nothing_to_tell_them_apart_by() -> None:
    kernel = mechanism("fbdd", epsilon=1.0).bind(toys.space("all alike"))
    with seeded(3):
        found = kernel.certify()
    assert found.holds
    assert found.max_loss == 0.0


def test_the_lower_bound_is_near_the_truth() -> None:
    space = Space.from_arrays(["a", "b"], [[0.0], [1.0]])
    kernel = mechanism("fbdd", epsilon=1.0).bind(space)
    stay = 1 - np.exp(-0.5) / 2
    truth = float(np.log(stay / (1 - stay)))
    with seeded(4):
        bound = loss_at_least(kernel, 0, 1, 200_000, ERROR)
    assert 0.9 * truth < bound < truth


def test_pairs_are_chosen_over_the_whole_range() -> None:
    kernel = mechanism("fbdd", epsilon=2.0).bind(toys.space("random"))
    pairs = telling_pairs(kernel, 6)
    promised = [kernel.promised(a[None], b[None])[0, 0] for a, b in pairs]
    assert len(pairs) >= 2
    assert min(promised) < np.median(kernel.promised(np.arange(16), np.arange(16)))
    assert len(telling_pairs(mechanism("fbdd", epsilon=2.0).bind(toys.space("one word")), 6)) == 0


def test_pairs_are_spread_even_where_every_promise_is_large() -> None:
    kernel = mechanism("fbdd", epsilon=500.0).bind(toys.space("random"))
    assert len(telling_pairs(kernel, 6)) >= 4
    with seeded(5):
        found = audit(kernel, draws=2000)
    assert found.pairs >= 4
    far = mechanism("fbdd", epsilon=1e-6).bind(toys.space("random"))
    assert any("no loss was seen" in note for note in audit(far, draws=200).notes)


def test_the_certification_names_its_method_and_confidence() -> None:
    kernel = mechanism("fbdd", epsilon=2.0).bind(toys.space("two words"))
    found = kernel.certify()
    assert found.method == METHOD == "theorem+audit"
    assert "1e-09" in found.notes[0]
    assert "theorem+audit" in found.describe()
