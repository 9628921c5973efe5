"""CluSanT: first a cluster, then a word of it, both by exponential mechanisms (Awon et al. 2025).

    P1(C | x)    = exp(-s (eps / 4) k |C_x - C|) / Z1        over the clusters, |.| of centroids
    P2(y | x, C) = exp(-s (eps / 4) d(x, y) / Delta) / Z2    over the words of C
    Delta        = max(1, diameter of the space)

(Figure 2 of the paper: eps / 2 for each stage, and the exponential mechanism's own 1/2.)
Each stage loses twice its numerator's part, so with s = 1, for all pairs and every k,

    L(x, x') <= (eps / 2) [ k |C_x - C_x'| + min(1, d(x, x') / Delta) ]

with d a metric; with cosine distance the second term is 1 for x != x'. This needs no assumption
and is what is promised; it is a metric of its own, of diameter (k D_C + 1) / 2 once eps is taken
out. The paper's Theorem 5 claims eps |f'(x) - f'(x')|, f'(x) = k C_x + x - C_x, under two
assumptions that can fail; `certify` says for how many pairs they do.

Certification: with A_x[C] = ln P1(C | x) - ln Z2(x, C) the loss of a pair is at most
max_C (A_x[C] - A_x'[C]) + s (eps / 4) d(x, x') / Delta (see kernels/two_stage.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from deniable import cache
from deniable.certify import is_small, tighten
from deniable.errors import ParameterError
from deniable.kernels.two_stage import TwoStageKernel
from deniable.kinds import Words, check_pos, kinds_of
from deniable.mapped import EXPLAINS
from deniable.mechanism import (
    CALIBRATE,
    CALIBRATIONS,
    EPSILON,
    Mechanism,
    check_choice,
    check_positive,
    check_whole,
    register,
)
from deniable.partition import Partition, from_words, lists_of_words, nearest_first
from deniable.similarity import Closeness
from deniable.space import Space

# Triples that brute force looks at in a tenth of a second.
CHEAP = 100_000_000
# Where no pair of words loses anything no scale is too large, so there must be a limit.
LARGEST_SCALE = 1024.0
MOST_CLUSTERS = 8192
Clusters = int | tuple[tuple[str, ...], ...]


@register
@dataclass(frozen=True)
class CluSanT(Mechanism):
    """First a cluster, then a word of it."""

    name = "clusant"
    summary = "draws a cluster near the word's own, then a word of that cluster"
    promise = "epsilon/2 x (k x centroid distance + at most 1), between all pairs"
    source = "Awon et al., NAACL Findings 2025, Figure 2; bound of this project"
    cost = "one row over all words for each distinct word, once the clusters are there"
    explains = MappingProxyType(
        {
            "epsilon": EPSILON,
            "k": "how far clusters are pushed apart: a larger k keeps the word's own cluster more "
            "often, and promises less between clusters; above 0",
            "clusters": "how many (made by custext's mapping), or lists of words, such as "
            "@FILE.json: disjoint, and together the whole space",
            "calibrate": CALIBRATE,
            "pos": EXPLAINS["pos"].replace("sets", "clusters"),
        }
    )

    k: float = 10.0
    clusters: Clusters = 360
    calibrate: str = "paper"
    pos: bool | Words = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("k", self.k)
        check_choice("calibrate", self.calibrate, CALIBRATIONS)
        object.__setattr__(self, "clusters", _checked_clusters(self.clusters))
        object.__setattr__(self, "pos", check_pos(self.pos))
        if self.pos and not isinstance(self.clusters, int):
            raise ParameterError("pos needs a number of clusters: your own are used as they are")

    def bind(self, space: Space) -> TwoStageKernel:
        """Make the sampler."""
        self.check_space(space)
        partition = self.partition(space)
        scale = 1.0 if self.calibrate == "paper" else self._tight_scale(space, partition)
        return TwoStageKernel(self, space, partition, scale, self.k)

    def partition(self, space: Space) -> Partition:
        """Return the clusters: a user's, or that many of equal size by CusText's mapping."""
        if not isinstance(self.clusters, int):
            return from_words(space, self.clusters, "clusters")
        size = max(1, -(-len(space) // self.clusters))
        count = len(space) // size
        if count > MOST_CLUSTERS:
            raise ParameterError(
                f"{count:,} clusters are more than the {MOST_CLUSTERS:,} whose distances fit in "
                "memory; for clusters of one word use santext"
            )
        return nearest_first(space, size, Closeness(space), kinds_of(space, self.pos, size))

    def _tight_scale(self, space: Space, partition: Partition) -> float:
        made = (self.epsilon, self.k, repr(self.clusters), repr(self.pos))
        key = ("tight-clusant", space.hash, *made)
        found = cache.load_number(key, 1.0, LARGEST_SCALE)
        if found is None:

            def worst_at(scale: float) -> float:
                kernel = TwoStageKernel(self, space, partition, scale, self.k)
                # The bound is loose by a few percent; where brute force is cheap, it is exact.
                return (kernel.certify() if is_small(kernel, CHEAP) else kernel.bound()).worst

            # A stage that loses little (clusters of one word) leaves room for more than 2.
            high = 2.0
            while worst_at(high) <= 1.0 and high < LARGEST_SCALE:
                high *= 2.0
            found = tighten(worst_at, 1.0, high, tolerance=1e-6 if len(space) < 2000 else 1e-3)
            cache.save_number(key, found)
        return found


def _checked_clusters(clusters: Any) -> Clusters:
    if isinstance(clusters, (bool, int, np.integer)):
        check_whole("clusters", clusters if isinstance(clusters, bool) else int(clusters), 1)
        return int(clusters)
    return lists_of_words(
        clusters, "clusters must be a number of clusters or a list of lists of words"
    )
