"""CusText: the exponential mechanism inside small output sets (Chen et al. 2023).

    P(y | x) = exp(s_C eps u(x, y) / 2) / Z_x      for y in the set C of x, 0 elsewhere
    u(x, y)  = -(d(x, y) - min) / (max - min)      or (sim - min) / (max - min) for a similarity

Sets come from `partition.nearest_first` (Algorithm 1). Minimum and maximum are over the row of x
(`normalize="word"`, the authors' program) or over the whole set (`normalize="set"`, the paper's
text). Either way u is in [-1, 0] or [0, 1], so its sensitivity is at most 1 and the loss between
two words of one set is at most eps (s_C = 1, `paper`): the two halves come from the numerator and
from Z. It is usually half of that; `tight` finds, for each set, the s_C whose recomputed loss is
exactly eps.

The promise holds between words of one set only. Which set it is, is revealed with certainty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from deniable.errors import ParameterError
from deniable.geometry import Floats
from deniable.kernels.partitioned import PartitionKernel, check_set_size
from deniable.mechanism import (
    CALIBRATE,
    CALIBRATIONS,
    EPSILON,
    Mechanism,
    check_choice,
    check_whole,
    register,
)
from deniable.partition import Partition, from_words, nearest_first
from deniable.similarity import Closeness, Similarity, check_similarity, describe_similarity
from deniable.space import Space
from deniable.stopwords import STOPWORDS

NORMALIZATIONS = ("word", "set")
Mapping = str | tuple[tuple[str, ...], ...]


@register
@dataclass(frozen=True)
class CusText(Mechanism):
    """The exponential mechanism inside small output sets."""

    name = "custext"
    summary = "a word becomes one of the K words of its own set"
    promise = "epsilon, between words of one output set only; the set is revealed"
    source = "Chen et al., ACL Findings 2023, Algorithms 1 and 2"
    explains = MappingProxyType(
        {
            "epsilon": EPSILON,
            "K": "how many words an output set has; at least 2",
            "mapping": "partition (the paper's Algorithm 1), or lists of words, such as "
            "@FILE.json: disjoint, and together the whole space",
            "similarity": "euclidean, cosine or angular; in Python also a function of two arrays "
            "of vectors; the space's own metric when not given",
            "normalize": "scores span one unit within each word's row (word, as the authors' "
            "program) or within the set (set, as the paper's text)",
            "calibrate": CALIBRATE,
        }
    )

    K: int = 20
    mapping: Mapping = "partition"
    similarity: Similarity = None
    normalize: str = "word"
    calibrate: str = "paper"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("K", self.K, 2)
        check_set_size("K", self.K)
        check_choice("calibrate", self.calibrate, CALIBRATIONS)
        check_choice("normalize", self.normalize, NORMALIZATIONS)
        check_similarity(self.similarity)
        object.__setattr__(self, "mapping", _checked_mapping(self.mapping))

    def parameters(self) -> dict[str, Any]:
        """Return the parameters as plain data."""
        similarity = None if self.similarity is None else describe_similarity(self.similarity)
        return super().parameters() | {"similarity": similarity}

    def bind(self, space: Space) -> PartitionKernel:
        """Make the sampler."""
        return self._kernel(space, None)

    def _kernel(self, space: Space, fixed: npt.NDArray[np.bool_] | None) -> PartitionKernel:
        closeness = Closeness(space, self.similarity)
        partition = self.partition(space, closeness)
        check_set_size("the largest list of mapping", int(partition.sizes.max()))
        keep = np.ones(len(space), dtype=np.bool_) if fixed is None else ~fixed
        weights = [self._log_weights(closeness, members, keep) for members in _sets(partition)]
        return PartitionKernel(self, space, partition, weights, fixed)

    def partition(self, space: Space, closeness: Closeness) -> Partition:
        """Return the output sets."""
        if isinstance(self.mapping, str):
            return nearest_first(space, self.K, closeness)
        return from_words(space, self.mapping, "mapping")

    def _log_weights(
        self, closeness: Closeness, members: npt.NDArray[np.int64], keep: npt.NDArray[np.bool_]
    ) -> Floats:
        score = normalized(closeness.between(members, members), self.normalize)
        scale = 1.0
        if self.calibrate == "tight":
            scale = tight_scale(score[keep[members]], float(self.epsilon))
        return score * (scale * self.epsilon / 2.0)


@register
@dataclass(frozen=True)
class CusTextPlus(CusText):
    """CusText that copies stop words."""

    name = "custext+"
    summary = "custext that copies stop words as they are"
    promise = "as custext, for all words but the stop words, which pass in clear"
    source = "Chen et al., ACL Findings 2023, section 4.3"

    def bind(self, space: Space) -> PartitionKernel:
        """Make the sampler; stop words keep their row to themselves but stay possible outputs."""
        fixed = np.array([word in STOPWORDS for word in space.words], dtype=np.bool_)
        return self._kernel(space, fixed)


def _checked_mapping(mapping: Any) -> Mapping:
    if isinstance(mapping, str):
        check_choice("mapping", mapping, ("partition",))
        return mapping
    if not isinstance(mapping, Sequence) or any(isinstance(one, str) for one in mapping):
        raise ParameterError("mapping must be 'partition' or a list of lists of words")
    return tuple(tuple(str(word) for word in words) for words in mapping)


def _sets(partition: Partition) -> list[npt.NDArray[np.int64]]:
    return [partition[i] for i in range(len(partition))]


def normalized(closeness: Floats, over: str) -> Floats:
    """Scale closeness so that scores span one unit, within each row or over the whole set.

    Distances (negative closeness) end in [-1, 0] and similarities in [0, 1] in the paper; the
    two differ by a constant, which the exponential mechanism doesn't see.
    """
    axis = 1 if over == "word" else None
    least = closeness.min(axis=axis, keepdims=True)
    spread = closeness.max(axis=axis, keepdims=True) - least
    scores: Floats = (closeness - least) / np.where(spread > 0, spread, 1.0)
    return scores


def tight_scale(score: Floats, epsilon: float) -> float:
    """Return the scale at which the set's largest loss is epsilon, at most 1000.

    A set whose rows are all alike loses nothing at any scale; the limit keeps it finite.
    """
    if len(score) < 2:  # all but one are copied as they are
        return 1.0

    def loss(scale: float) -> float:
        logs = score * (scale * epsilon / 2.0)
        logs = logs - logs.max(axis=1, keepdims=True)
        logs = logs - np.log(np.exp(logs).sum(axis=1, keepdims=True))
        return float((logs.max(axis=0) - logs.min(axis=0)).max(initial=0.0))

    low, high = 1.0, 2.0
    while loss(high) <= epsilon and high < 1000.0:
        low, high = high, high * 2.0
    if high >= 1000.0:
        return low
    for _ in range(40):
        middle = (low + high) / 2.0
        low, high = (middle, high) if loss(middle) <= epsilon else (low, middle)
    return low
