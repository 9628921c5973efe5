"""Mechanism, Kernel and the registry: how a formula becomes a sampler with a promise."""

from __future__ import annotations

import importlib
import math
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields
from difflib import get_close_matches
from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from deniable.errors import NoTableError, ParameterError, SpaceError, UnknownMechanismError
from deniable.guarantee import Guarantee

if TYPE_CHECKING:
    from deniable.certify import Certification
    from deniable.space import Space

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

CALIBRATIONS = ("paper", "tight")
CALIBRATE = (
    "paper: the paper's distribution; tight: the same family, scaled until the certified loss "
    "reaches the promise"
)
EPSILON = "what is promised for each token; above 0"


@dataclass(frozen=True)
class Mechanism(ABC):
    """Parameters, checked when the object is made; `bind(space)` makes the sampler."""

    name: ClassVar[str]
    summary: ClassVar[str]
    promise: ClassVar[str]
    source: ClassVar[str]
    cost: ClassVar[str] = "not stated"
    accepts: ClassVar[tuple[str, ...]] = ("euclidean", "cosine", "angular")
    explains: ClassVar[Mapping[str, str]] = {}

    epsilon: float

    def __post_init__(self) -> None:
        check_positive("epsilon", self.epsilon)

    @abstractmethod
    def bind(self, space: Space) -> Kernel:
        """Make the sampler for this space, together with its guarantee."""

    def parameters(self) -> dict[str, Any]:
        """Return the parameters as plain data, as certificates hold them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def check_space(self, space: Space) -> None:
        """Refuse a space whose metric this mechanism's proof doesn't allow."""
        if space.metric not in self.accepts:
            raise SpaceError(
                f"{self.name} needs a space whose metric is {' or '.join(self.accepts)}, "
                f"not {space.metric}"
            )


class Kernel(ABC):
    """A sampler and its guarantee, born in the same call.

    One whose distribution is a finite table is a `FiniteKernel`: its promise is recomputed. One
    that adds continuous noise has no table: its promise is a theorem, and is audited.
    """

    mechanism: Mechanism
    space: Space
    guarantee: Guarantee
    outputs: Ids
    exposed_as: str = ""

    def log_probs(self, ids: npt.ArrayLike) -> Floats:  # noqa: ARG002 (see FiniteKernel)
        """Return the log-probabilities of the integer tables that are sampled, a row an id."""
        raise NoTableError(self.mechanism.name)

    @abstractmethod
    def draws(self, words: Ids, how_many: Ids) -> Ids:
        """Return `how_many[i]` independent outputs of `words[i]`, one word after the other."""

    @abstractmethod
    def promised(self, a: Ids, b: Ids) -> Floats:
        """Return the loss promised for each pair a[i], b[j]; infinite where nothing is."""

    @abstractmethod
    def certify(self) -> Certification:
        """Recompute the worst loss from the tables that are sampled, or audit a theorem."""

    def sample(self, ids: npt.ArrayLike) -> Ids:
        """Return one output for each id, with the system's cryptographic randomness."""
        wanted = np.asarray(ids, dtype=np.int64)
        words, inverse, how_many = np.unique(wanted, return_inverse=True, return_counts=True)
        drawn = np.empty(wanted.size, dtype=np.int64)
        drawn[np.argsort(inverse.ravel(), kind="stable")] = self.draws(words, how_many)
        return drawn.reshape(wanted.shape)

    def exposes(self, ids: Ids) -> npt.NDArray[np.bool_]:
        """Return which words the mechanism itself lets through (stop words and the like)."""
        return np.zeros(len(ids), dtype=np.bool_)


class FiniteKernel(Kernel):
    """A kernel that draws from finite integer tables."""

    @abstractmethod
    def log_probs(self, ids: npt.ArrayLike) -> Floats:
        """Return the log-probabilities of the integer tables that are sampled, a row an id."""

    @abstractmethod
    def formula(self, ids: npt.ArrayLike) -> Floats:
        """Return the log-probabilities of the formula, before they are rounded to a table."""


def check_positive(name: str, value: float) -> None:
    """Refuse NaN, infinities, and anything that isn't above zero."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.floating, np.integer)):
        raise ParameterError(f"{name} must be a number, got {type(value).__name__}")
    try:
        finite = math.isfinite(value)
    except OverflowError:
        raise ParameterError(f"{name} must be a finite number, got one too large") from None
    if not finite or value <= 0:
        raise ParameterError(f"{name} must be a finite number above 0, got {value}")


def check_whole(name: str, value: int, least: int) -> None:
    """Refuse anything but a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ParameterError(f"{name} must be a whole number of at least {least}, got {value!r}")


def check_share(name: str, value: float) -> None:
    """Refuse anything but a number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.floating, np.integer)):
        raise ParameterError(f"{name} must be a number, got {type(value).__name__}")
    if not 0.0 <= value <= 1.0:
        raise ParameterError(f"{name} must be between 0 and 1, got {value}")


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Refuse anything but one of the choices."""
    if value not in choices:
        raise ParameterError(f"{name} must be one of {', '.join(choices)}, got {value!r}")


M = TypeVar("M", bound=type[Mechanism])
_registry: dict[str, type[Mechanism]] = {}


def register(cls: M) -> M:
    """Add a mechanism class to the registry (a decorator); a name can be taken once."""
    taken = _registry.get(cls.name)
    if taken is not None and taken.__module__ != cls.__module__:
        raise ParameterError(f"two mechanisms are called {cls.name!r}")
    _registry[cls.name] = cls
    return cls


def mechanisms() -> dict[str, type[Mechanism]]:
    """Return every registered mechanism class by name, sorted."""
    _load()
    return dict(sorted(_registry.items()))


def mechanism(name: str, **parameters: Any) -> Mechanism:
    """Make a mechanism from its registry name and its parameters.

    >>> mechanism("santext", epsilon=2.0)
    SanText(epsilon=2.0, calibrate='paper')
    >>> mechanism("santxt", epsilon=2.0)
    Traceback (most recent call last):
        ...
    deniable.errors.UnknownMechanismError: no mechanism 'santxt'; did you mean santext?
    """
    known = named(name)
    _check_names(known, parameters)
    return known(**parameters)


def named(name: str) -> type[Mechanism]:
    """Return the mechanism class of that name, or say which name is near."""
    known = mechanisms()
    if name not in known:
        near = get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(known)}"
        raise UnknownMechanismError(f"no mechanism {name!r}; {hint}")
    return known[name]


def _check_names(cls: type[Mechanism], given: dict[str, Any]) -> None:
    wanted = {field.name: field for field in fields(cls)}
    for key in given:
        if key not in wanted:
            near = get_close_matches(key, wanted, n=1)
            hint = f"did you mean {near[0]}?" if near else f"it has: {', '.join(wanted)}"
            raise ParameterError(f"{cls.name} has no parameter {key!r}; {hint}")
    missing = [key for key, field in wanted.items() if _is_required(field) and key not in given]
    if missing:
        raise ParameterError(f"{cls.name} needs {', '.join(missing)}")


def _is_required(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


@cache
def _load() -> None:
    """Import the built-in mechanisms and those that other packages offer; both use `register`."""
    package = importlib.import_module("deniable.mechanisms")
    for module in pkgutil.iter_modules(package.__path__, "deniable.mechanisms."):
        importlib.import_module(module.name)
    for entry in entry_points(group="deniable.mechanisms"):
        entry.load()
