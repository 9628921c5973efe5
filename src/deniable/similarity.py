"""How alike two words are: the space's own distance, a named one, or a user's own function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from deniable.errors import ParameterError
from deniable.geometry import Floats, Geometry, Ids
from deniable.space import Space

# Vectors of some words (n, d) and of others (m, d) to (n, m) numbers; larger is more alike.
UserFunction = Callable[[npt.NDArray[np.float32], npt.NDArray[np.float32]], npt.ArrayLike]
Similarity = str | UserFunction | None
NAMED = ("euclidean", "cosine", "angular")


@dataclass(frozen=True)
class Closeness:
    """Larger is more alike; only differences and order matter to those who use it."""

    space: Space
    similarity: Similarity = None
    _geometry: list[Geometry] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        check_similarity(self.similarity)

    def between(self, a: Ids, b: Ids) -> Floats:
        """Return one row of closeness for each word of `a`."""
        if callable(self.similarity):
            return _checked(self.similarity, self.space.vectors[a], self.space.vectors[b])
        distances = self.geometry.distances(a, b)
        np.negative(distances, out=distances)
        return distances

    @property
    def geometry(self) -> Geometry:
        """The points whose distances a named similarity means."""
        name = self.similarity or self.space.metric
        if name == self.space.metric:
            return self.space.geometry
        if not self._geometry:
            self._geometry.append(Geometry(self.space.vectors, str(name)))
        return self._geometry[0]

    @property
    def label(self) -> str:
        """What certificates call it."""
        return describe_similarity(self.similarity or self.space.metric)


def check_similarity(similarity: Similarity) -> None:
    """Refuse what is neither a known name nor a function."""
    if similarity is None or callable(similarity) or similarity in NAMED:
        return
    raise ParameterError(
        f"similarity must be one of {', '.join(NAMED)}, or a function of two arrays of "
        f"vectors, got {similarity!r}"
    )


def describe_similarity(similarity: Any) -> str:
    """Return the name of a similarity; a function's is its import path."""
    if callable(similarity):
        name = getattr(similarity, "__qualname__", type(similarity).__qualname__)
        return f"{getattr(similarity, '__module__', '?')}:{name}"
    return str(similarity)


def _checked(
    function: UserFunction, a: npt.NDArray[np.float32], b: npt.NDArray[np.float32]
) -> Floats:
    found = np.array(function(a, b), dtype=np.float64)
    if found.shape != (len(a), len(b)):
        raise ParameterError(
            f"the similarity function returned shape {found.shape}, not {(len(a), len(b))}"
        )
    if not np.isfinite(found).all():
        raise ParameterError("the similarity function returned a NaN or an infinity")
    return found
