"""What mechanisms with output sets share: K, the mapping, the similarity, parts of speech."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping as Dictionary
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from deniable.errors import ParameterError
from deniable.geometry import Floats, Ids
from deniable.kernels.partitioned import PartitionKernel, check_set_size
from deniable.kinds import check_pos, kinds_of
from deniable.mappings import MAPPINGS, Mapping, mapping_of
from deniable.mechanism import EPSILON, Mechanism, check_choice, check_whole
from deniable.partition import from_words, lists_of_words
from deniable.similarity import Closeness, Similarity, check_similarity, describe_similarity
from deniable.space import Space
from deniable.stopwords import STOPWORDS

Words = tuple[tuple[str, ...], ...]
Bools = npt.NDArray[np.bool_]
EXPLAINS = MappingProxyType(
    {
        "epsilon": EPSILON,
        "K": "how many words an output set has; 2 to 1,024",
        "mapping": "partition (disjoint sets, Algorithm 1), conservative, balanced or aggressive "
        "(sets overlap, and few words share one), or lists of words, such as @FILE.json: "
        "disjoint, and together the whole space",
        "similarity": "euclidean, cosine or angular; in Python also a function of two arrays of "
        "vectors; the space's own metric when not given",
        "pos": "true: sets don't mix parts of speech (a noun stays a noun), by the embedded "
        "lexicon; or lists of words, such as @FILE.json, that must not be mixed",
    }
)


@dataclass(frozen=True)
class MappedMechanism(Mechanism):
    """A mechanism that draws within output sets; a subclass gives the rows of one set."""

    explains: ClassVar[Dictionary[str, str]] = EXPLAINS

    K: int = 20
    mapping: str | Words = "partition"
    similarity: Similarity = None
    pos: bool | Words = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("K", self.K, 2)
        check_set_size("K", self.K)
        check_similarity(self.similarity)
        object.__setattr__(self, "mapping", _checked_mapping(self.mapping))
        object.__setattr__(self, "pos", check_pos(self.pos))
        if self.pos and not isinstance(self.mapping, str):
            raise ParameterError("pos needs a mapping by name: your own lists are used as they are")

    @abstractmethod
    def rows(self, closeness: Floats, own: Ids, hidden: Bools) -> Floats:
        """Return the log-weights of one set.

        `closeness` has a row for each word that has the set and a column for each output; `own`
        is the column of each word itself; the promise is about the `hidden` words.
        """

    def parameters(self) -> dict[str, Any]:
        """Return the parameters as plain data."""
        similarity = None if self.similarity is None else describe_similarity(self.similarity)
        return super().parameters() | {"similarity": similarity}

    def bind(self, space: Space) -> PartitionKernel:
        """Make the sampler."""
        return self.kernel(space, None)

    def kernel(self, space: Space, fixed: Bools | None) -> PartitionKernel:
        """Make the sampler; words in `fixed` are copied as they are."""
        self.check_space(space)
        closeness = Closeness(space, self.similarity)
        mapping = self.mapped(space, closeness)
        check_set_size("the largest list of mapping", max(map(len, mapping.outputs)))
        hidden = np.ones(len(space), dtype=np.bool_) if fixed is None else ~fixed
        weights = self.weights(closeness, mapping, hidden)
        return PartitionKernel(self, space, mapping, weights, fixed)

    def weights(self, closeness: Closeness, mapping: Mapping, hidden: Bools) -> list[Floats]:
        """Return the log-weights of every set."""
        return [
            self.rows(closeness.between(words, outputs), own_columns(words, outputs), hidden[words])
            for words, outputs in each(mapping)
        ]

    def mapped(self, space: Space, closeness: Closeness) -> Mapping:
        """Return which words share which outputs."""
        if isinstance(self.mapping, str):
            kinds = kinds_of(space, self.pos, self.K)
            return mapping_of(self.mapping, space, self.K, closeness, kinds)
        return Mapping.closed(from_words(space, self.mapping, "mapping"))


def each(mapping: Mapping) -> list[tuple[Ids, Ids]]:
    """Return the words and the outputs of every group."""
    return [(mapping.groups[i], outputs) for i, outputs in enumerate(mapping.outputs)]


def own_columns(words: Ids, outputs: Ids) -> Ids:
    """Return the column of each word among the outputs; every word is one of its own."""
    found: Ids = np.argmax(outputs[None, :] == words[:, None], axis=1)
    return found


def stop_words(space: Space) -> Bools:
    """Return which words of a space are stop words."""
    return np.array([word in STOPWORDS for word in space.words], dtype=np.bool_)


def _checked_mapping(mapping: Any) -> str | Words:
    if isinstance(mapping, str):
        check_choice("mapping", mapping, MAPPINGS)
        return mapping
    return lists_of_words(
        mapping, f"mapping must be {', '.join(MAPPINGS)} or a list of lists of words"
    )
