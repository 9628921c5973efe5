"""certify sees a broken promise, and says what it looked at."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import toys
from deniable import mechanism, mechanisms
from deniable.certify import FULL, losses_between, tighten
from deniable.errors import ParameterError
from deniable.kernels import exponential, two_stage
from deniable.kernels.exponential import ExponentialKernel
from deniable.kernels.two_stage import TwoStageKernel
from deniable.mechanisms import clusant
from deniable.sampling import RowTables, to_counts


def kernel_of(name: str, **more: Any) -> Any:
    given_parameters = {**next(toys.settings_of(name, mechanisms()[name])), **more}
    return mechanism(name, **{"epsilon": 2.0, **given_parameters}).bind(toys.space_for(name))


@pytest.mark.parametrize("name", ["santext", "clusant"])
@pytest.mark.parametrize("large", [False, True])
def test_too_little_noise_is_seen(name: str, large: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that draws with twice its scale claims what isn't so."""
    if large:
        for module in (exponential, two_stage):
            monkeypatch.setattr(module, "is_small", lambda *_: False)
    kernel = kernel_of(name)
    assert kernel.certify().holds
    if isinstance(kernel, ExponentialKernel):
        kernel.rate *= 2.5
    elif isinstance(kernel, TwoStageKernel):
        kernel.rate1, kernel.rate2 = 2.5 * kernel.rate1, 2.5 * kernel.rate2
        kernel.log_p1 = 2.5 * kernel.log_p1
        kernel.log_p1 -= np.log(np.exp(kernel.log_p1).sum(axis=1, keepdims=True))
    found = kernel.certify()
    assert not found.holds
    assert found.worst > 1
    assert "DOES NOT HOLD" in found.describe()
    assert found.method == ("bound" if large else "recomputed")


def test_too_little_noise_inside_a_set_is_seen() -> None:
    kernel = kernel_of("custext", K=4)
    counts = kernel._counts
    counts[5, 0], counts[5, 1] = counts[5, 0] + counts[5, 1] - 1, 1
    found = kernel.certify()
    assert not found.holds
    assert kernel.space.words[5] in (found.worst_pair or ())


@pytest.mark.parametrize("name", mechanisms())
def test_a_certification_is_plain_data_and_says_all(name: str) -> None:
    found = kernel_of(name).certify()
    data = json.loads(json.dumps(found.to_dict()))
    for key in ("holds", "worst", "worst_pair", "max_loss", "covered", "method"):
        assert key in data
    assert found.method in ("recomputed", "bound", "sample", "theorem+audit")
    text = found.describe()
    for word in ("promise", "worst ratio", "largest loss", "pairs covered", "epsilon x diameter"):
        assert word in text
    if found.losses:
        values = list(found.losses.values())
        assert values == sorted(values)
        assert values[-1] == pytest.approx(found.max_loss)


def test_revealed_bits_of_a_partition_are_said() -> None:
    kernel = kernel_of("custext", K=4)
    bits = -sum(4 / 16 * math.log2(4 / 16) for _ in range(4))
    assert f"{bits:.2f} of 4.00 bits" in kernel.certify().reveals[0]


def test_losses_between_knows_impossible_outputs() -> None:
    a = np.array([[0.0, -np.inf, -np.inf]])
    b = np.array([[0.0, -np.inf, -np.inf], [-1.0, -2.0, -np.inf]])
    assert losses_between(a, b).tolist() == [[0.0, math.inf]]


@given(slope=st.floats(0.3, 3), bend=st.floats(-0.2, 0.2), tolerance=st.sampled_from([1e-3, 1e-6]))
def test_tighten_finds_the_largest_scale_and_never_an_unsafe_one(
    slope: float, bend: float, tolerance: float
) -> None:
    def worst_at(scale: float) -> float:
        return slope * scale * (1 + bend * (scale - 1)) / 2

    found = tighten(worst_at, 1.0, 2.0, tolerance)
    if worst_at(1.0) >= 1:
        assert found == 1.0
    elif worst_at(2.0) <= FULL:
        assert found == 2.0
    else:
        assert 1 - 3 * tolerance <= worst_at(found) <= 1.0


@pytest.mark.parametrize("name", ["santext", "clusant"])
def test_calibration_is_found_in_the_cache(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first = kernel_of(name, calibrate="tight")

    def never(*_: object, **__: object) -> float:
        raise AssertionError("computed again")

    monkeypatch.setattr(exponential, "tighten", never)
    monkeypatch.setattr(clusant, "tighten", never)
    again = kernel_of(name, calibrate="tight")
    ids = np.arange(16)
    assert (again.log_probs(ids) == first.log_probs(ids)).all()


def test_thresholds_that_look_alike_are_calibrated_apart() -> None:
    """The cache knows a threshold to its last digit."""
    space = toys.space("random")
    for beta in (0.5, 0.5000025):
        made = mechanism("tem", epsilon=3.0, beta=beta, calibrate="tight").bind(space)
        assert made.certify().holds


@pytest.mark.parametrize("name", ["custext", "optimal", "permute-and-flip", "randomised-response"])
@pytest.mark.parametrize("group", [0, 1, 3])
def test_an_output_that_became_impossible_is_seen_in_any_set(name: str, group: int) -> None:
    kernel = mechanism(name, epsilon=1.0, K=4).bind(toys.space("random"))
    word = kernel.mapping.groups[group][0]
    kernel._counts[word, 1] += kernel._counts[word, 0]
    kernel._counts[word, 0] = 0
    found = kernel.certify()
    assert not found.holds
    assert found.max_loss == math.inf


def test_rows_that_are_not_whole_or_not_what_is_drawn_from_are_seen() -> None:
    for times in (2, 5):  # five times 2^63 is 2^63 again in 64 bits
        kernel: Any = mechanism("custext", epsilon=2.0, K=4).bind(toys.space("random"))
        assert kernel.certify().holds
        kernel._counts[7] *= np.uint64(times)
        kernel._tables = RowTables(kernel._counts)
        assert not kernel.certify().holds
    kernel = mechanism("custext", epsilon=2.0, K=4).bind(toys.space("random"))
    kernel._tables = mechanism("custext", epsilon=9.0, K=4).bind(toys.space("random"))._tables
    assert not kernel.certify().holds


@pytest.mark.parametrize("weights", [[np.nan, 1.0], [np.inf, 1.0], [0.0, 0.0], [-1.0, 2.0]])
def test_weights_that_are_none_are_refused(weights: list[float]) -> None:
    with pytest.raises(ParameterError, match="weights must be finite"):
        to_counts(np.array([weights]))
