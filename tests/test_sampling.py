"""Integer tables, draws from them, and draws made ahead: each keeps the distribution exactly."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import toys
from deniable import mechanism
from deniable.errors import ParameterError
from deniable.sampling import (
    FLOOR,
    SLACK,
    TOTAL,
    Counts,
    Randomness,
    RowTables,
    draw,
    log_of,
    table_slack,
    to_counts,
)
from deniable.stock import Stock
from deniable.testing import seeded

NEVER = 1e-9
weights = st.lists(st.floats(0, 1, allow_subnormal=True), min_size=1, max_size=40).filter(
    lambda row: sum(row) > 1e-200
)


@given(weights)
def test_a_row_adds_up_exactly_and_no_entry_is_below_the_floor(row: list[float]) -> None:
    counts = to_counts(np.array([row]))[0]
    assert sum(counts.tolist()) == TOTAL
    assert min(counts.tolist()) >= int(FLOOR * TOTAL) - 1


@given(weights)
def test_a_table_is_the_formula_mixed_with_a_small_uniform_share(row: list[float]) -> None:
    counts = to_counts(np.array([row]))[0]
    total = math.fsum(row)
    for weight, count in zip(row, counts.tolist(), strict=True):
        mixed = (1 - len(row) * FLOOR) * weight / total + FLOOR
        assert count / TOTAL == pytest.approx(mixed, rel=SLACK / 2)


@given(weights, weights)
def test_rounding_adds_at_most_the_slack_to_a_loss(a: list[float], b: list[float]) -> None:
    size = min(len(a), len(b))
    rows = np.array([a[:size], b[:size]])
    if (rows.sum(axis=1) < 1e-200).any():
        return
    logs = log_of(to_counts(rows))
    with np.errstate(divide="ignore", invalid="ignore"):
        exact = np.log(rows / rows.sum(axis=1, keepdims=True))
        loss = np.abs(exact[0] - exact[1])
    true = np.nan_to_num(loss, nan=0.0, posinf=np.inf).max()
    assert np.abs(logs[0] - logs[1]).max() <= true + SLACK


def test_a_row_wider_than_can_be_certified_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deniable.sampling.WIDEST", 3)
    with pytest.raises(ParameterError, match="4 outputs are more than the 3"):
        to_counts(np.ones((1, 4)))


@given(st.lists(st.integers(0, 5), min_size=1, max_size=9).filter(any), st.data())
def test_a_point_falls_into_its_column(parts: list[int], data: st.DataObject) -> None:
    """Exactly `n` of all points fall into a column of `n` units."""
    unit = TOTAL // sum(parts)
    units = [part * unit for part in parts]
    units[parts.index(max(parts))] += TOTAL - sum(units)
    counts = np.array(units, dtype=np.uint64)
    column = data.draw(st.sampled_from([i for i, n in enumerate(units) if n]))
    first = sum(units[:column])
    ends = np.array([first, first + units[column] - 1], dtype=np.uint64)
    assert draw(counts, ends).tolist() == [column, column]
    tables = RowTables(np.stack([counts, counts[::-1]]))
    assert tables.draw(np.zeros(2, dtype=np.int64), ends).tolist() == [column, column]


class Counted(Randomness):
    """Gives out the words that a test chose."""

    def __init__(self, words: list[int]) -> None:
        self.left = words

    def words(self, count: int) -> Counts:
        found, self.left = self.left[:count], self.left[count:]
        return np.array(found, dtype=np.uint64)


@pytest.mark.parametrize("bound", [1, 2, 3, 10, 1000, 36_000, (1 << 62) + 1, TOTAL - 1])
def test_below_is_exactly_uniform(bound: int) -> None:
    """The largest accepted word completes the last whole round; the next ones are drawn again."""
    last = (1 << 64) // bound * bound - 1
    refused = [last + 1] if last + 1 < 1 << 64 else []
    source = Counted([last, *(refused or [0]), 0, 0])
    assert source.below(bound, 2).tolist() == [bound - 1, 0]
    assert len(source.left) == (1 if refused else 2)


@pytest.mark.parametrize("bound", [0, -1, TOTAL])
def test_below_refuses_a_bound_out_of_range(bound: int) -> None:
    with pytest.raises(ParameterError, match="a bound must be"):
        Randomness().below(bound, 1)


def test_below_without_rejection_would_be_seen() -> None:
    """2^64 is 2 2/3 times the bound, so a remainder is in its first two thirds too often."""
    bound, times = 3 << 61, 40_000
    biased = Randomness().words(times) % np.uint64(bound)
    fair = Randomness().below(bound, times)
    limit = 1 << 62
    for values, is_fair in ((biased, False), (fair, True)):
        seen = int((values.astype(np.float64) < limit).sum())
        chance = stats.binomtest(seen, times, 2 / 3).pvalue
        assert bool(chance > NEVER) is is_fair


def stock_and_kernel() -> tuple[Any, Stock]:
    kernel = mechanism("santext", epsilon=1.0).bind(toys.space("random"))
    return kernel, Stock(kernel)


def fits(drawn: npt.NDArray[np.int64], chances: npt.NDArray[np.float64]) -> float:
    seen = np.bincount(drawn, minlength=len(chances))
    expected = chances / chances.sum() * len(drawn)
    return float(stats.chisquare(seen, expected).pvalue)


def test_stock_keeps_the_distribution_over_many_batches() -> None:
    kernel, stock = stock_and_kernel()
    source = np.random.default_rng(1)
    words, outputs = [], []
    with seeded(3):
        for _ in range(300):
            ids = source.integers(0, 4, size=int(source.integers(0, 120)))
            words.append(ids)
            outputs.append(stock.sample(ids))
    of, drawn = np.concatenate(words), np.concatenate(outputs)
    for word in range(4):
        chances = np.exp(kernel.log_probs([word])[0])
        assert fits(drawn[of == word], chances) > NEVER
    # And it would be seen if one word were given another's draws.
    assert fits(drawn[of == 0], np.exp(kernel.log_probs([3])[0])) < NEVER


def test_stock_draws_are_independent() -> None:
    """Two draws in a row, in one batch and over two, have the product distribution."""
    kernel, stock = stock_and_kernel()
    chances = np.exp(kernel.log_probs([0])[0])
    pairs = []
    with seeded(4):
        for _ in range(8_000):
            pairs.append(stock.sample(np.zeros(3, dtype=np.int64)))
    drawn = np.array(pairs)
    top = np.argsort(-chances)[:4]
    codes = np.full(len(chances), 4)
    codes[top] = np.arange(4)
    small = np.append(chances[top], 1 - chances[top].sum())
    for first, second in ((drawn[:, 0], drawn[:, 1]), (drawn[:-1, 2], drawn[1:, 0])):
        joint = codes[first] * 5 + codes[second]
        assert fits(joint, np.outer(small, small).ravel()) > NEVER


class Numbered:
    """A kernel whose every draw is a new number."""

    def __init__(self) -> None:
        self.made = 0

    def draws(self, words: npt.NDArray[np.int64], how_many: npt.NDArray[np.int64]) -> Any:
        count = int(how_many.sum())
        self.made += count
        tagged = np.arange(self.made - count, self.made)
        return tagged * 1000 + np.repeat(words, how_many)


def test_stock_hands_each_draw_out_once_and_to_its_own_word() -> None:
    stock = Stock(Numbered())  # type: ignore[arg-type]  # only draws() is used
    source = np.random.default_rng(2)
    seen: list[int] = []
    for _ in range(200):
        ids = source.integers(0, 9, size=int(source.integers(0, 60)))
        drawn = stock.sample(ids)
        assert (drawn % 1000 == ids).all()
        seen += drawn.tolist()
    assert len(set(seen)) == len(seen)


def test_stock_forgets_what_was_made_with_another_source_of_randomness() -> None:
    _, stock = stock_and_kernel()
    ids = np.zeros(50, dtype=np.int64)
    with seeded(1):
        stock.sample(ids)
        ahead = stock.sample(ids)
    system = stock.sample(ids)
    with seeded(1):
        stock.sample(ids)
        again = stock.sample(ids)
    assert (ahead == again).all()
    assert (system != ahead).any()


def test_stock_starts_anew_when_it_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deniable.stock.LARGEST", 100)
    stock = Stock(Numbered())  # type: ignore[arg-type]
    seen: list[int] = []
    for _ in range(60):
        seen += stock.sample(np.zeros(20, dtype=np.int64)).tolist()
    assert len(set(seen)) == len(seen)


def test_a_kernel_draws_nothing_for_nothing() -> None:
    for name in ("santext", "custext", "random", "clusant"):
        kernel = mechanism(name, epsilon=1.0).bind(toys.space("random"))
        assert kernel.sample([]).shape == (0,)
        assert kernel.sample(np.zeros((3, 0), dtype=np.int64)).shape == (3, 0)
        assert kernel.sample(np.zeros((2, 3), dtype=np.int64)).shape == (2, 3)


@pytest.mark.parametrize("outputs", [1000, 400_000, 2_000_000])
def test_the_slack_of_wide_tables_covers_what_rounding_adds(outputs: int) -> None:
    """The largest entry takes what all others lost: with many of them that is seen."""
    tilt = np.linspace(0.0, 1e-9, outputs)
    logs = log_of(np.concatenate([to_counts(np.exp(sign * tilt)[None, :]) for sign in (1, -1)]))
    assert np.abs(logs[0] - logs[1]).max() <= 4e-9 + table_slack(outputs)
