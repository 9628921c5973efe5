"""Diffractor: noise on a word's rank in sorted lists of all words (Meisenbacher et al. 2024).

A list is made by taking a public word and sorting all words by their distance from it. For each
token one of L lists is chosen uniformly, and the rank i of the word in it becomes i + k, cut off
at the ends, with k of the two-sided geometric distribution (Ghosh et al. 2009):

    g(k) = tanh(eps / 2) exp(-eps |k|)
    P(y | x) = (1 / L) sum over lists l of g(rank_l(y) - rank_l(x)), tails on the first and last

Promise: eps r(x, x') for every pair, with r the largest distance of the two words' ranks over all
lists, cut off at 23.6 / eps. Proof: in list l the shift's probabilities differ by at most
exp(eps |rank_l(x) - rank_l(x')|), the sums on the ends are post-processing, and a mean of rows
loses at most what the worst of them loses. No loss is above 23.6 = 34 ln 2, because a uniform
share of 2^-34 for each word is mixed in; a metric that is cut off is still one. Which list was
chosen may be known.

Neighbours in a list are words at the same distance from one word, in any direction: near ranks
don't mean near words, and words that are close are often thousands of ranks apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from deniable.errors import ParameterError
from deniable.geometry import METRICS, Ids
from deniable.kernels.shifted import ShiftedKernel
from deniable.mechanism import Mechanism, check_whole, register
from deniable.space import Space

# Each holds every word, twice.
MOST_LISTS = 100


@register
@dataclass(frozen=True)
class Diffractor(Mechanism):
    """Geometric noise on the rank in sorted lists."""

    name = "diffractor"
    summary = "moves a word a few ranks along one of several sorted lists of all words"
    promise = (
        "epsilon x the largest distance of ranks over the lists, at most 23.6, between all pairs"
    )
    source = "Meisenbacher, Chevli, Matthes, IWSPA 2024, 1-Diffractor"
    cost = "two table look-ups for each token, whatever V is"
    accepts = METRICS
    explains = MappingProxyType(
        {
            "epsilon": "what is promised for each rank between two words; above 0",
            "lists": "how many sorted lists one is chosen from; 1 to 100",
        }
    )

    lists: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("lists", self.lists, 1)
        if self.lists > MOST_LISTS:
            raise ParameterError(f"lists must be at most {MOST_LISTS}, got {self.lists}")

    def bind(self, space: Space) -> ShiftedKernel:
        """Make the sampler."""
        self.check_space(space)
        metric = f"ranks in {self.lists} lists"
        return ShiftedKernel(self, space, sorted_lists(space, self.lists), metric)


def sorted_lists(space: Space, count: int) -> Ids:
    """Return all words sorted by distance from one word after the other.

    The words at the lists' heads are public: they follow from the size of the space alone.
    """
    heads = np.random.default_rng(len(space)).integers(len(space), size=count)
    distances = space.distances(heads)
    return np.argsort(distances, axis=1, kind="stable").astype(np.int64)
