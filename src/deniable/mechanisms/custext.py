"""CusText: the exponential mechanism inside small output sets (Chen et al. 2023).

    P(y | x) = exp(s_C eps u(x, y) / 2) / Z_x      for y in the set C of x, 0 elsewhere
    u(x, y)  = -(d(x, y) - min) / (max - min)      or (sim - min) / (max - min) for a similarity

Sets come from `mappings.py` (Algorithm 1 is "partition"). Minimum and maximum are over the row of
x (`normalize="word"`, the authors' program) or over the whole set (`normalize="set"`, the paper's
text). Either way u is in [-1, 0] or [0, 1], so its sensitivity is at most 1 and the loss between
two words of one set is at most eps (s_C = 1, `paper`): the two halves come from the numerator and
from Z. It is usually half of that; `tight` finds, for each set, the s_C whose recomputed loss is
exactly eps.

The promise holds between words that share one output set only. With disjoint sets, which set it
is, is revealed with certainty; with overlapping ones (balanced, aggressive) words of different
sets may be told apart with certainty, and a word that shares its set with no other is not
protected at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from deniable.geometry import Floats
from deniable.kernels.partitioned import PartitionKernel
from deniable.mapped import EXPLAINS, MappedMechanism, stop_words
from deniable.mechanism import CALIBRATE, CALIBRATIONS, check_choice, register
from deniable.scaling import exponential, tight_scale
from deniable.space import Space

NORMALIZATIONS = ("word", "set")


@register
@dataclass(frozen=True)
class CusText(MappedMechanism):
    """The exponential mechanism inside small output sets."""

    name = "custext"
    summary = "a word becomes one of the K words of its own set"
    promise = "epsilon, between words of one output set only; the set is revealed"
    source = "Chen et al., ACL Findings 2023, Algorithms 1 and 2"
    cost = "a binary search in K numbers for each token, once the sets are there"
    explains = MappingProxyType(
        {
            **EXPLAINS,
            "normalize": "scores span one unit within each word's row (word, as the authors' "
            "program) or within the set (set, as the paper's text)",
            "calibrate": CALIBRATE,
        }
    )

    normalize: str = "word"
    calibrate: str = "paper"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("calibrate", self.calibrate, CALIBRATIONS)
        check_choice("normalize", self.normalize, NORMALIZATIONS)

    @staticmethod
    def law(logs: Floats) -> Floats:
        """From scores times epsilon / 2 to the logarithms of a row's probabilities."""
        return exponential(logs)

    def rows(
        self,
        closeness: Floats,
        own: npt.NDArray[np.int64],  # noqa: ARG002 (scores are all it needs)
        hidden: npt.NDArray[np.bool_],
    ) -> Floats:
        """Return the row of scores times epsilon / 2, or times more where that is calibrated."""
        score = normalized(closeness, self.normalize)
        scale = 1.0
        if self.calibrate == "tight":
            scale = tight_scale(score[hidden], float(self.epsilon), self.law)
        return self.law(score * (scale * self.epsilon / 2.0))


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
        return self.kernel(space, stop_words(space))


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
