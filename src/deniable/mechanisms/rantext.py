"""RANTEXT: a random list of near words, then the exponential mechanism in it (Tong et al. 2023).

    Y_d ~ Laplace(delta_d / Z(eps))       delta_d the range of coordinate d over the space
    R   = |Y|                             how far the list reaches
    C_R = {y : d(x, y) < R}               the random adjacency list; x is always in it
    P(y | x, R) = exp((eps / 2) (1 - d(x, y) / R)) / Z_R        for y in C_R, 0 elsewhere
    P(y | x)    = mean of P(y | x, R) over R

    Z(eps) = eps below 2, else 0.0165 ln(19.0648 eps - 38.1294) + 9.3111

Z was fitted so that the list of the word 'happy' has a chosen size in one embedding (ada-002). It
means nothing in another one; `share` chooses it so that lists hold that share of the words on
average. R takes the 64 quantiles of its law that stand for equal shares of it, which are public.

Promise: the paper proves eps for words x, x', y of *one and the same* list, with R fixed. But the
list is drawn around x: a word y far from x' but near x is likely under x and next to
impossible under x', so no bound that grows with eps alone holds. What holds for every pair is the
bound of the uniform share that is mixed into every row, 34 ln 2 = 23.6, at any epsilon. That is
what is promised here, and `certify` says how much of it is really lost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from deniable.certify import Bound, Certification, brute_force, from_bound, is_small
from deniable.errors import ParameterError
from deniable.guarantee import ALL_PAIRS, Guarantee, Relation
from deniable.kernels.dense import DenseKernel
from deniable.mechanism import Ids, Mechanism, check_positive, register
from deniable.sampling import FLOOR, Floats, promised_slack
from deniable.space import Space

QUANTILES = 64
SIMULATED = 8192
# How many words' lists are looked at to find the factor for a share.
LOOKED_AT = 256
CLAIM = "epsilon, between words of one adjacency list (the paper's Theorem 2); not for all pairs"


@register
@dataclass(frozen=True)
class RanText(Mechanism):
    """The exponential mechanism inside a random ball."""

    name = "rantext"
    summary = "draws a random radius, then a near word within it"
    promise = "23.6 between all pairs, whatever epsilon is; the paper's epsilon doesn't hold"
    source = "Tong et al., 2023, InferDPT, Algorithm 2; promise of this project"
    cost = "64 rows of V exponentials for each distinct word"
    accepts = ("euclidean", "angular", "cosine")
    explains = MappingProxyType(
        {
            "epsilon": "the paper's: how sharply near words of a list are favoured, and how far "
            "lists reach; above 0",
            "share": "the share of all words that a list holds on average; when not given, the "
            "paper's factor for its own embedding",
        }
    )

    share: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.share is not None:
            check_positive("share", self.share)
            if self.share >= 1:
                raise ParameterError(f"share must be below 1, got {self.share}")

    def bind(self, space: Space) -> RanTextKernel:
        """Make the sampler."""
        self.check_space(space)
        base = noise_lengths(space)
        factor = published_factor(self.epsilon)
        if self.share is not None:
            factor = factor_for(space, base, self.share)
        return RanTextKernel(self, space, base / factor)


class RanTextKernel(DenseKernel):
    """The mean of the rows of equally likely radii."""

    def __init__(self, mechanism: RanText, space: Space, radii: Floats) -> None:
        self.mechanism, self.space, self.radii = mechanism, space, radii
        self.outputs = np.arange(len(space), dtype=np.int64)
        self.guarantee = Guarantee(
            unit="token",
            relation=Relation(ALL_PAIRS),
            epsilon=-math.log(FLOOR),
            slack=promised_slack(-math.log(FLOOR), len(space)),
            reveals=("roughly where in the space the word was",),
            paper=CLAIM,
        )

    def log_weights(self, ids: Ids) -> Floats:
        """The logarithm of the mean over the radii."""
        distances = self.space.distances(ids)
        total = np.zeros_like(distances)
        for radius in self.radii:
            weights = np.exp(distances * (-self.mechanism.epsilon / (2.0 * radius)))
            weights[distances >= radius] = 0.0
            weights /= weights.sum(axis=1, keepdims=True)
            total += weights
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(total / len(self.radii)), dtype=np.float64)

    def promised(self, a: Ids, b: Ids) -> Floats:
        """The same for every pair."""
        return np.full((len(a), len(b)), self.guarantee.epsilon + self.guarantee.slack)

    def certify(self) -> Certification:
        """By brute force if the space is small; else the bound, and what some pairs lose."""
        if is_small(self):
            return brute_force(self)
        count, most = len(self.space), -math.log(FLOOR)
        worst = most / (most + self.guarantee.slack)
        heads = np.arange(min(20, count - 1), dtype=np.int64)
        far = np.argmax(self.space.distances(heads), axis=1)
        pairs = np.stack([heads, far], axis=1)
        return from_bound(self, Bound(worst, most, count * (count - 1) // 2, pairs))


def published_factor(epsilon: float) -> float:
    """Return the paper's Z."""
    if epsilon < 2:
        return epsilon
    # At exactly 2 the logarithm's argument is 0.0002.
    return 0.0165 * math.log(19.0648 * epsilon - 38.1294) + 9.3111


def noise_lengths(space: Space) -> Floats:
    """Return quantiles of |Y| at Z = 1, from the same simulation for every space and run."""
    vectors = space.vectors.astype(np.float64)
    spans = vectors.max(axis=0) - vectors.min(axis=0)
    source = np.random.default_rng(0)
    squares = np.zeros(SIMULATED)
    for span in spans:
        squares += (span * np.log(1.0 - source.random(SIMULATED))) ** 2
    middles = (np.arange(QUANTILES) + 0.5) / QUANTILES
    lengths = np.quantile(np.sqrt(squares), middles)
    # Where all words are alike, any radius makes the same list.
    return np.asarray(np.where(lengths > 0, lengths, 1.0), dtype=np.float64)


def factor_for(space: Space, base: Floats, share: float) -> float:
    """Return the Z with which lists hold that share of the words on average."""
    words = np.arange(0, len(space), max(1, len(space) // LOOKED_AT), dtype=np.int64)
    near = np.sort(space.distances(words).ravel())
    low, high = 1e-9, 1e9
    for _ in range(100):
        middle = math.sqrt(low * high)
        held = float(np.searchsorted(near, base / middle).mean()) / near.size
        low, high = (middle, high) if held > share else (low, middle)
    return low
