"""Small spaces that are hard on a promise, and one set of parameters after the other for each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from deniable import Kernel, Mechanism, Space, mechanism, mechanisms
from deniable.guarantee import RECOMPUTED

METRICS = ("euclidean", "cosine", "angular", "poincare")
EPSILONS = (0.05, 1.5, 40.0, 3000.0)

# A mechanism that isn't named here is tried with its defaults.
PARAMETERS: dict[str, tuple[dict[str, Any], ...]] = {
    "santext+": ({"w": 0.5, "p": 0.3}, {"w": 1.0, "p": 1.0}, {"w": 0.3, "p": 1.0}),
    "custext": (
        {"K": 4},
        {"K": 20, "normalize": "set"},
        {"K": 3, "mapping": "aggressive"},
        {"K": 5, "mapping": "balanced"},
        {"K": 4, "mapping": "conservative"},
        {"K": 2, "pos": (("red", "blue"), ("the", "w3"))},
    ),
    "permute-and-flip": ({"K": 4}, {"K": 6, "mapping": "balanced", "normalize": "set"}),
    "optimal": ({"K": 4}, {"K": 6, "bayes_cap": 0.4}, {"K": 5, "adaptive": True}),
    "randomised-response": ({"K": 4}, {"K": 5, "mapping": "aggressive"}),
    "custext+": ({"K": 4, "normalize": "set"},),
    "clusant": (
        {"clusters": 5, "k": 0.01},
        {"clusters": 3, "k": 5.0},
        {"clusters": 4, "pos": (("red", "blue", "w1"), ("the", "w3"))},
    ),
    "mahalanobis": ({"lam": 0.2}, {"lam": 0.95}),
    "vickrey": ({"t": 0.5}, {"lam": 0.5, "t": 1.0}),
}


def _vectors() -> dict[str, npt.NDArray[np.float64]]:
    source = np.random.default_rng(20261)
    plane = source.normal(size=(12, 2)) + np.array([0.3, 5.0])
    points = source.normal(size=(16, 5))
    line = np.concatenate([np.linspace(1, 4, 5), 40 + np.linspace(0, 0.1, 12)])
    return {
        "one word": np.array([[0.5, 1.0]]),
        "two words": np.array([[0.5, 0.2], [1.0, 1.0]]),
        "a line and a distant crowd": np.stack([line, np.ones(len(line))], axis=1),
        "duplicates": plane[[0, 0, 1, 2, 3, 3, 3, 1, 4, 0]],
        "all alike": np.repeat(plane[:1], 6, axis=0),
        "nearly alike": plane[:1] + 1e-6 * source.normal(size=(7, 2)),
        "a far outlier": np.concatenate([plane, [[3e4, -2e4]]]),
        "scale of a million": points * 1e6,
        "scale of a millionth": points * 1e-6,
        "random": points,
        "unit sphere": points / np.linalg.norm(points, axis=1, keepdims=True),
        "opposite": np.concatenate([points[:5], -points[:5]]),
    }


VECTORS = _vectors()
# Stop words are among them, because custext+ copies those.
NAMES = ("the", "red", "and", "blue", "of", *(f"w{i}" for i in range(40)))


def space(name: str, metric: str = "euclidean") -> Space:
    """Return one of the toy spaces; the Poincare metric needs it inside the unit ball."""
    vectors = VECTORS[name]
    if metric == "poincare":
        vectors = vectors * (0.95 / np.linalg.norm(vectors, axis=1).max())
    return Space.from_arrays(NAMES[: len(vectors)], vectors, metric, name=name)


def space_for(mechanism_name: str, name: str = "random") -> Space:
    """Return a toy space with a metric that the mechanism accepts."""
    return space(name, mechanisms()[mechanism_name].accepts[0])


def settings_of(name: str, cls: type[Mechanism]) -> Iterator[dict[str, Any]]:
    """Yield the parameters to try, with every calibration that the mechanism has."""
    calibrations: list[dict[str, Any]] = [{}]
    if any(field.name == "calibrate" for field in fields(cls)):
        calibrations = [{"calibrate": "paper"}, {"calibrate": "tight"}]
    for parameters in PARAMETERS.get(name, ({},)):
        for calibration in calibrations:
            yield {**parameters, **calibration}


def bound(name: str, epsilon: float = 1.0) -> Kernel:
    """Return a mechanism with its first parameters, bound to a space that it accepts."""
    made = mechanism(name, epsilon=epsilon, **next(settings_of(name, mechanisms()[name])))
    return made.bind(space_for(name))


def has_table(name: str) -> bool:
    """Whether a mechanism is recomputed from a table, or its theorem audited."""
    return bound(name).guarantee.basis == RECOMPUTED


def cases(*, tables: bool) -> Iterator[tuple[str, dict[str, Any], str, str]]:
    """Yield mechanism, parameters, toy and metric, for all that a mechanism accepts."""
    for name in FINITE if tables else NOISY:
        cls = mechanisms()[name]
        for parameters in settings_of(name, cls):
            for toy in VECTORS:
                for metric in cls.accepts:
                    # Angles don't see the scale, and a ball has one of its own.
                    if metric == "euclidean" or not toy.startswith("scale"):
                        yield name, parameters, toy, metric


FINITE = tuple(name for name in mechanisms() if has_table(name))
NOISY = tuple(name for name in mechanisms() if name not in FINITE)
