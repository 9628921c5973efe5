"""Every mechanism that has a table keeps its promise on spaces that are hard on it.

The loss is recomputed here with plain loops over `log_probs`, and never by deniable.certify.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

import toys
from deniable import Kernel, Space, mechanism, mechanisms
from deniable import certify as certification
from deniable.errors import SpaceError
from deniable.guarantee import METRIC
from deniable.testing import seeded

Floats = npt.NDArray[np.float64]
CASES = list(toys.cases(tables=True))
NEVER = 1e-9  # the chance at which a true distribution is rejected


def name_of(case: object) -> str:
    if isinstance(case, dict):
        return ",".join(f"{k}={v}" for k, v in case.items()) or "defaults"
    return str(case)


every_case = pytest.mark.parametrize(("name", "parameters", "toy", "metric"), CASES, ids=name_of)


def epsilons(parameters: dict[str, Any]) -> tuple[float, ...]:
    """The epsilons to try; calibration takes time, so it is tried on two."""
    return (0.2, 8.0) if parameters.get("calibrate") == "tight" else toys.EPSILONS


def slow_losses(logs: Floats) -> Floats:
    """max over y of |ln P(y|x) - ln P(y|x')|, by the definition."""
    count = len(logs)
    found = np.zeros((count, count))
    for x in range(count):
        for other in range(count):
            possible = ~(np.isneginf(logs[x]) & np.isneginf(logs[other]))
            gaps = np.abs(logs[x][possible] - logs[other][possible])
            found[x, other] = gaps.max()
    return found


def slow_worst(losses: Floats, promised: Floats) -> tuple[float, float]:
    """The largest loss / promise and the largest loss of the pairs that are covered."""
    worst = largest = 0.0
    for x in range(len(losses)):
        for other in range(x + 1, len(losses)):
            if math.isinf(promised[x, other]):
                continue
            largest = max(largest, losses[x, other])
            if losses[x, other] > 0:
                worst = max(worst, losses[x, other] / promised[x, other])
    return worst, largest


@every_case
def test_the_promise_holds(name: str, parameters: dict[str, Any], toy: str, metric: str) -> None:
    space = toys.space(toy, metric)
    ids = np.arange(len(space))
    for epsilon in epsilons(parameters):
        kernel = mechanism(name, epsilon=epsilon, **parameters).bind(space)
        logs = kernel.log_probs(ids)
        assert logs.shape == (len(space), len(kernel.outputs))
        np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1.0, rtol=0, atol=1e-12)
        assert logs.max() <= 1e-15
        promised = kernel.promised(ids, ids)
        losses = slow_losses(logs)
        worst, largest = slow_worst(losses, promised)
        assert worst <= 1.0
        assert (losses <= promised).all()
        found = kernel.certify()
        assert found.method == "recomputed"
        assert found.holds
        assert 0.0 <= found.worst <= 1.0
        assert found.worst == pytest.approx(worst, rel=1e-12, abs=1e-300)
        assert found.max_loss == pytest.approx(largest, rel=1e-12, abs=1e-300)
        check_coverage(kernel, promised, found.covered)
        check_worst_pair(kernel, found, losses, promised)


def check_coverage(kernel: Kernel, promised: Floats, covered: float) -> None:
    """The covered share is what it says, and no pair is promised more than the guarantee says."""
    apart = ~np.eye(len(promised), dtype=bool)
    if apart.any():
        assert np.isfinite(promised[apart]).mean() == pytest.approx(covered)
    finite = promised[apart & np.isfinite(promised)]
    assert (finite <= kernel.guarantee.worst_epsilon * (1 + 1e-12)).all()
    relation, epsilon = kernel.guarantee.relation, kernel.guarantee.epsilon
    assert kernel.guarantee.slack <= 1e-7 * (1 + epsilon * relation.diameter)
    if relation.kind == METRIC and relation.metric == kernel.space.metric:
        distances = plain_distances(kernel.space)
        expected = epsilon * distances + kernel.guarantee.slack
        np.testing.assert_allclose(promised, expected, rtol=1e-9, atol=1e-9)


def check_worst_pair(
    kernel: Kernel, found: certification.Certification, losses: Floats, promised: Floats
) -> None:
    """The pair that is named is one that reaches the worst ratio."""
    if found.worst_pair is None or found.worst == 0:
        return
    a, b = (kernel.space.index[word] for word in found.worst_pair)
    assert losses[a, b] / promised[a, b] == pytest.approx(found.worst, rel=1e-12)


def plain_distances(space: Space) -> Floats:
    """Distances by their definitions, one pair at a time."""
    points = space.vectors.astype(np.float64)
    found = np.zeros((len(points), len(points)))
    for i, x in enumerate(points):
        for j, y in enumerate(points):
            if space.metric == "euclidean":
                found[i, j] = math.sqrt(sum((x - y) ** 2))
                continue
            if space.metric == "poincare":
                room = (1 - x @ x) * (1 - y @ y)
                found[i, j] = 2 * math.asinh(math.sqrt(((x - y) @ (x - y)) / room))
                continue
            u, v = x / np.linalg.norm(x), y / np.linalg.norm(y)
            if space.metric == "angular":
                chord, away = np.linalg.norm(u - v), np.linalg.norm(u + v)
                found[i, j] = 2 * math.atan2(chord, away) / math.pi
            else:
                found[i, j] = np.linalg.norm(u - v) ** 2 / 2
    return found


def call_every_space_large(patch: pytest.MonkeyPatch) -> None:
    """Make calibration and certification take the way of spaces too large for brute force."""
    patch.setenv("DENIABLE_CACHE", "off")
    patch.setattr(certification, "BRUTE_FORCE", 0)
    for name, module in list(sys.modules.items()):
        if name.startswith("deniable.") and hasattr(module, "is_small"):
            patch.setattr(module, "is_small", lambda *_: False)


@every_case
def test_the_bound_of_large_spaces_holds_and_is_above_the_truth(
    name: str,
    parameters: dict[str, Any],
    toy: str,
    metric: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    space = toys.space(toy, metric)
    ids = np.arange(len(space))
    call_every_space_large(monkeypatch)
    for epsilon in epsilons(parameters)[1:]:
        kernel = mechanism(name, epsilon=epsilon, **parameters).bind(space)
        worst, largest = slow_worst(slow_losses(kernel.log_probs(ids)), kernel.promised(ids, ids))
        found = kernel.certify()
        assert found.method in ("bound", "recomputed")
        assert found.holds
        assert worst <= found.worst * (1 + 1e-12)
        assert found.worst <= 1.0
        assert largest <= found.max_loss + kernel.guarantee.slack
        if found.attained is not None:
            assert found.attained <= worst * (1 + 1e-12)


@pytest.mark.parametrize("metric", toys.METRICS)
@pytest.mark.parametrize("name", mechanisms())
def test_a_metric_that_the_proof_does_not_allow_is_refused(name: str, metric: str) -> None:
    cls = mechanisms()[name]
    made = mechanism(name, epsilon=1.0, **next(toys.settings_of(name, cls)))
    if metric in cls.accepts:
        made.bind(toys.space("random", metric))
        return
    with pytest.raises(SpaceError, match=f"{name.replace('+', '.')} needs a space whose metric is"):
        made.bind(toys.space("random", metric))


def test_santext_does_not_accept_cosine() -> None:
    assert "cosine" not in mechanisms()["santext"].accepts
    assert "cosine" not in mechanisms()["santext+"].accepts


TIGHT = [case for case in CASES if case[1].get("calibrate") == "tight"]


@pytest.mark.parametrize(("name", "parameters", "toy", "metric"), TIGHT, ids=name_of)
def test_tight_is_exactly_the_epsilon_asked_for(
    name: str, parameters: dict[str, Any], toy: str, metric: str
) -> None:
    """Whatever is left of the promise, no pair of this space could use it."""
    space = toys.space(toy, metric)
    epsilon = 1.5
    made = mechanism(name, epsilon=epsilon, **parameters).bind(space)
    found = made.certify()
    assert found.holds
    paper = mechanism(name, epsilon=epsilon, **{**parameters, "calibrate": "paper"}).bind(space)
    assert found.worst >= paper.certify().worst - 1e-9
    if name in LOOSE and parameters.get("w") != 1.0:
        return
    ids = np.arange(len(space))
    promised = made.promised(ids, ids)
    covered = np.isfinite(promised) & ~np.eye(len(ids), dtype=bool)
    if found.epsilon_diameter < 15 and can_be_reached(name, space, made):
        losses = slow_losses(made.log_probs(ids)) + made.guarantee.slack
        assert (losses[covered] / promised[covered]).max() >= 1 - 1e-3


# Calibrated over all pairs of words, so that the promise about sensitive outputs holds for the
# frequent words too; between rare words alone some of the promise may be left.
LOOSE = ("santext+",)


def can_be_reached(name: str, space: Space, made: Kernel) -> bool:
    """Whether a hundredfold scale would break the promise."""
    ids = np.arange(len(space))
    settings = {**made.mechanism.parameters(), "calibrate": "paper"}
    settings["epsilon"] = 100 * made.mechanism.epsilon
    strong = mechanism(name, **settings).bind(space)
    return slow_worst(slow_losses(strong.formula(ids)), made.promised(ids, ids))[0] > 1


def p_value(drawn: npt.NDArray[np.int64], kernel: Kernel, word: int) -> float:
    """The chance of drawing something at least as unlikely, by a pooled chi-square test."""
    chances = np.exp(kernel.log_probs([word])[0])
    columns = np.searchsorted(np.sort(kernel.outputs), drawn)
    seen = np.bincount(np.argsort(kernel.outputs)[columns], minlength=len(chances))
    assert not seen[chances == 0].any(), "something was drawn that can't be"
    expected = chances * len(drawn)
    labels = pooled(expected)
    expected, seen = np.bincount(labels, expected), np.bincount(labels, seen)
    if len(expected) < 2:
        return 1.0
    return float(stats.chi2.sf(((seen - expected) ** 2 / expected).sum(), len(expected) - 1))


def pooled(expected: Floats, least: float = 20.0) -> npt.NDArray[np.int64]:
    """Put cells together, rarest first, until each group expects enough for a chi-square."""
    labels = np.zeros(len(expected), dtype=np.int64)
    group, inside = 0, 0.0
    left = float(expected.sum())
    for cell in np.argsort(expected):
        labels[cell] = group
        inside += expected[cell]
        left -= expected[cell]
        if inside >= least and left >= least:
            group, inside = group + 1, 0.0
    return labels


@every_case
def test_samples_follow_log_probs(
    name: str, parameters: dict[str, Any], toy: str, metric: str
) -> None:
    space = toys.space(toy, metric)
    words = sorted({0, len(space) // 2, len(space) - 1})
    times = 1500
    for seed, epsilon in enumerate((1.5, 12.0)):
        kernel = mechanism(name, epsilon=epsilon, **parameters).bind(space)
        with seeded(seed):
            drawn = kernel.sample(np.tile(words, times)).reshape(times, len(words))
        assert np.isin(drawn, kernel.outputs).all()
        for word, column in zip(words, drawn.T, strict=True):
            assert p_value(column, kernel, word) > NEVER


@pytest.mark.parametrize("name", toys.FINITE)
def test_a_wrong_scale_is_rejected(name: str) -> None:
    """The test above has the power to see an epsilon that is 30 % off."""
    space, times = toys.space("random"), 20_000
    parameters = next(toys.settings_of(name, mechanisms()[name]))
    seen = []
    for epsilon in (2.0, 8.0, 30.0):
        right = mechanism(name, epsilon=epsilon, **parameters).bind(space)
        wrong = mechanism(name, epsilon=0.7 * epsilon, **parameters).bind(space)
        for word in (9, 15):
            with seeded(word):
                drawn = wrong.sample(np.full(times, word))
            seen.append(p_value(drawn, right, word))
    if mechanism(name, **parameters, epsilon=1.0).bind(space).guarantee.epsilon == 0:
        assert min(seen) > NEVER  # there is no scale that could be wrong
        return
    assert min(seen) < NEVER


def test_the_sampling_test_accepts_and_rejects_at_its_threshold() -> None:
    """p_value is uniform under the truth: no tail is lighter or heavier than it says."""
    kernel = mechanism("custext", epsilon=3.0, K=8).bind(toys.space("random"))
    with seeded(1):
        drawn = kernel.sample(np.full(400 * 1000, 3)).reshape(400, 1000)
    values = [p_value(row, kernel, 3) for row in drawn]
    assert stats.kstest(values, "uniform").pvalue > NEVER
    assert 0.02 < np.mean(np.array(values) < 0.05) < 0.10
