"""Space: a public, immutable set of words, their vectors, a metric and a content hash."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache as cache_call
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from deniable import cache
from deniable.errors import SpaceError
from deniable.geometry import METRICS, Floats, Geometry, Ids, diameter
from deniable.spaces import default_path, formats

# What the name of a scaled space ends with.
UNIT_DIAMETER = ", unit diameter"


class Space:
    """Words, their vectors and the metric between them, fixed before any private text is read.

    The order of the words is their public frequency rank, the most frequent first.

    >>> space = Space.from_arrays(["red", "blue", "green"], [[0, 0], [3, 4], [0, 1]])
    >>> space.diameter
    5.0
    >>> space.distances([0], [1, 2])
    array([[5., 1.]])
    """

    def __init__(self, parts: formats.Parts) -> None:
        self._parts = parts
        self._words = parts.words
        self._vectors = parts.vectors
        self._metric = parts.metric or "euclidean"
        _check(self._words, self._vectors, self._metric)
        self._vectors.flags.writeable = False

    @classmethod
    def from_arrays(
        cls,
        words: Sequence[str],
        vectors: npt.ArrayLike,
        metric: str = "euclidean",
        *,
        name: str = "arrays",
        unit_diameter: bool = False,
    ) -> Space:
        """Make a space from a list of words and their vectors, one row each."""
        names = tuple(str(word) for word in words)
        array = np.array(vectors, dtype=np.float32, order="C")
        space = cls(formats.Parts(names, array, metric, name, None))
        return space.with_unit_diameter() if unit_diameter else space

    @classmethod
    def load(
        cls,
        path: str | Path,
        metric: str | None = None,
        *,
        unit_diameter: bool = False,
        limit: int | None = None,
    ) -> Space:
        """Read a space: its own format, `.npz`, GloVe text, or word2vec text or binary.

        `metric` replaces the one that the file names (euclidean when it names none); `limit`
        keeps the most frequent words only.
        """
        parts = formats.read(Path(path), limit=limit)
        if metric is not None and metric != parts.metric:
            parts = formats.Parts(parts.words, parts.vectors, metric, parts.name, None)
        space = cls(parts)
        return space.with_unit_diameter() if unit_diameter else space

    @classmethod
    def default(cls) -> Space:
        """Return the embedded English space: offline, ready in well under a second, read once."""
        return _embedded()

    @staticmethod
    def default_path() -> Path:
        """Return the folder of the embedded space."""
        return default_path()

    def save(self, path: str | Path) -> None:
        """Write the space in its own format, whole or not at all."""
        parts = formats.Parts(self.words, self.vectors, self.metric, self.name, self.diameter)
        formats.write(Path(path), parts)

    def with_unit_diameter(self) -> Space:
        """Return the same words with vectors scaled so that the farthest two are at distance 1."""
        if self.metric != "euclidean":
            raise SpaceError(
                f"unit-diameter scaling needs the euclidean metric, not {self.metric}: its "
                "distances are not multiplied by a factor when vectors are"
            )
        if self.diameter == 0:
            return self
        scaled = (self.vectors.astype(np.float64) / self.diameter).astype(np.float32)
        return Space.from_arrays(self.words, scaled, name=self.name + UNIT_DIAMETER)

    @property
    def words(self) -> tuple[str, ...]:
        """The words, the most frequent first."""
        return self._words

    @property
    def vectors(self) -> npt.NDArray[np.float32]:
        """One float32 row for each word; read-only, memory-mapped where the format allows."""
        return self._vectors

    @property
    def metric(self) -> str:
        """`euclidean`, `cosine`, `angular` or `poincare`."""
        return self._metric

    @property
    def name(self) -> str:
        """What the space is called in certificates."""
        return self._parts.name

    @property
    def is_metric(self) -> bool:
        """Whether distances obey the triangle inequality (cosine distance doesn't)."""
        return self.metric != "cosine"

    @cached_property
    def hash(self) -> str:
        """SHA-256 over words, vectors and metric: two spaces with one hash are the same space."""
        digest = hashlib.sha256(f"deniable space 1\n{self.metric}\n{self.vectors.shape}\n".encode())
        digest.update("\n".join(self.words).encode("utf-8", "surrogatepass"))
        digest.update(np.ascontiguousarray(self.vectors, dtype="<f4").data)
        return digest.hexdigest()

    @cached_property
    def index(self) -> Mapping[str, int]:
        """From a word to its id."""
        return MappingProxyType({word: i for i, word in enumerate(self.words)})

    @cached_property
    def geometry(self) -> Geometry:
        """The points of the space, prepared for fast distances."""
        return Geometry(self.vectors, self.metric)

    @cached_property
    def diameter(self) -> float:
        """The largest distance between two words of the space."""
        if self._parts.diameter is not None:
            return self._parts.diameter
        key = ("diameter", self.hash)
        found = cache.load_number(key)
        if found is None:
            found = diameter(self.geometry)
            cache.save_number(key, found)
        return found

    @cached_property
    def twins(self) -> Ids:
        """For each word, the first word that has the very same vector (mostly itself)."""
        rows = np.ascontiguousarray(self.vectors) + np.float32(0)  # -0.0 becomes 0.0
        keys = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        return first[inverse].astype(np.int64)

    def distances(self, a: npt.ArrayLike, b: npt.ArrayLike | None = None) -> Floats:
        """Distances of the words `a` (rows) to the words `b` (columns; all words when None)."""
        others = None if b is None else np.asarray(b, dtype=np.int64)
        return self.geometry.distances(np.asarray(a, dtype=np.int64), others)

    def neighbours(self, ids: npt.ArrayLike, k: int) -> tuple[Ids, Floats]:
        """Return the `k` nearest other words of each word and their distances, nearest first."""
        rows = np.asarray(ids, dtype=np.int64)
        k = min(k, len(self) - 1)
        distance = self.distances(rows)
        distance[np.arange(len(rows)), rows] = np.inf
        near = np.argsort(distance, axis=1, kind="stable")[:, :k].astype(np.int64)
        return near, np.take_along_axis(distance, near, axis=1)

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self.index

    def __repr__(self) -> str:
        size = f"{len(self):,} words x {self.vectors.shape[1]}"
        return f"<Space {self.name!r}: {size}, {self.metric}>"


@cache_call
def _embedded() -> Space:
    return Space.load(default_path())


def _check(words: tuple[str, ...], vectors: npt.NDArray[np.float32], metric: str) -> None:
    if metric not in METRICS:
        raise SpaceError(f"unknown metric {metric!r}: choose one of {', '.join(METRICS)}")
    if len(words) == 0:
        raise SpaceError("a space needs at least one word")
    if vectors.ndim != 2 or vectors.shape[1] == 0 or len(vectors) != len(words):
        raise SpaceError(
            f"a space needs one vector for each word: {len(words)} words, "
            f"vectors of shape {vectors.shape}"
        )
    if len(set(words)) != len(words):
        raise SpaceError("a space's words must be different from each other")
    if "" in words:
        raise SpaceError("a space can't hold an empty word")
    broken = next((i for i, word in enumerate(words) if "\n" in word or "\r" in word), None)
    if broken is not None:
        raise SpaceError(f"word {broken} has a line break: a record of a text file can't hold it")
    _check_vectors(vectors, metric)


def _check_vectors(vectors: npt.NDArray[np.float32], metric: str) -> None:
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(bad):
        raise SpaceError(f"the vector in row {bad[0]} has a NaN or an infinity: remove that word")
    if metric == "poincare":
        outside = np.flatnonzero(np.einsum("ij,ij->i", *[vectors.astype(np.float64)] * 2) >= 1.0)
        if len(outside):
            raise SpaceError(
                f"the vector in row {outside[0]} is not inside the unit ball, where the Poincare "
                "metric is defined: scale the vectors, or choose another metric"
            )
    elif metric != "euclidean":
        zero = np.flatnonzero(~vectors.any(axis=1))
        if len(zero):
            raise SpaceError(f"the vector in row {zero[0]} is zero and has no angle: remove it")
