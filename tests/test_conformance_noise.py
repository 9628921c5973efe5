"""Every mechanism of continuous noise: its theorem is audited on spaces that are hard on it.

Its noise is tested against its density in tests/test_noise.py and tests/test_hyperbolic.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import toys
from deniable import Kernel, mechanism
from deniable.audit import METHOD, audit
from deniable.errors import NoTableError
from deniable.guarantee import AUDITED, METRIC

CASES = list(toys.cases(tables=False))


def name_of(case: object) -> str:
    if isinstance(case, dict):
        return ",".join(f"{k}={v}" for k, v in case.items()) or "defaults"
    return str(case)


every_case = pytest.mark.parametrize(("name", "parameters", "toy", "metric"), CASES, ids=name_of)


def test_there_are_such_mechanisms() -> None:
    assert set(toys.NOISY) >= {"fbdd", "mahalanobis", "vickrey", "hyperbolic"}
    assert not set(toys.NOISY) & set(toys.FINITE)


@every_case
def test_the_audit_finds_nothing_against_the_theorem(
    name: str, parameters: dict[str, Any], toy: str, metric: str
) -> None:
    space = toys.space(toy, metric)
    for epsilon in toys.EPSILONS[:3]:
        # What matters is epsilon x distance, so spaces of every scale are asked the same.
        scaled = epsilon / (space.diameter or 1.0) * 3.0
        kernel = mechanism(name, epsilon=scaled, **parameters).bind(space)
        found = audit(kernel, pairs=4, draws=3000)
        assert found.holds
        assert found.worst <= 1.0
        assert found.method == METHOD
        check_promise(kernel)


def check_promise(kernel: Kernel) -> None:
    """The promise is a metric one over all pairs, at most what the guarantee says."""
    ids = np.arange(len(kernel.space))
    promised = kernel.promised(ids, ids)
    guarantee = kernel.guarantee
    assert guarantee.basis == AUDITED
    assert guarantee.relation.kind == METRIC
    assert guarantee.relation.covered == 1.0
    assert guarantee.assumptions
    np.testing.assert_allclose(promised, promised.T, rtol=1e-9, atol=1e-12)
    assert (np.diag(promised) == 0).all()
    assert (promised <= guarantee.worst_epsilon * (1 + 1e-9)).all()
    through = promised[:, :, None] + promised[None, :, :]
    assert (promised[:, None, :] <= through * (1 + 1e-9) + 1e-12).all()


@every_case
def test_only_outputs_are_drawn_and_shapes_are_kept(
    name: str, parameters: dict[str, Any], toy: str, metric: str
) -> None:
    space = toys.space(toy, metric)
    kernel = mechanism(name, epsilon=1.0, **parameters).bind(space)
    ids = np.arange(len(space)).repeat(7)[::-1].reshape(-1, 7)
    drawn = kernel.sample(ids)
    assert drawn.shape == ids.shape
    assert np.isin(drawn, kernel.outputs).all()
    assert kernel.sample(np.empty(0, dtype=np.int64)).shape == (0,)
    with pytest.raises(NoTableError):
        kernel.log_probs(ids[0])


@every_case
def test_draws_belong_to_their_words(
    name: str, parameters: dict[str, Any], toy: str, metric: str
) -> None:
    """At an enormous epsilon a word, or the first word with its vector, is its own output."""
    space = toys.space(toy, metric)
    if parameters.get("t"):
        parameters = {**parameters, "t": 0.0}
    kernel = mechanism(name, epsilon=1e18, **parameters).bind(space)
    words = np.arange(len(space))[::-1]
    drawn = kernel.draws(words, np.full(len(words), 3))
    assert drawn.tolist() == space.twins[words].repeat(3).tolist()
