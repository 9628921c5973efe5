"""Optimal: the channel of least expected distance at a certified epsilon, for every output set.

For each set of a partition (CusText's or your own) a linear program finds the probabilities
P(y | x) with the least mean distance between a word and its replacement, among *all* channels
that lose at most eps between any two words of the set (`optimum.py`). Exponential mechanism,
permute-and-flip and randomised response are such channels, so none of them does better at the
same recomputed loss.

    bayes_cap   the chance that the best guess from an output is right, when the words of the set
                are equally likely, is at most this: a second constraint
    adaptive    spreads the distance over the words of a set so that the one that survives most
                often does so as seldom as possible; up to 5 % more expected distance is spent

Promise: eps between two words of one set. Proof: it is a constraint of the program; `certify`
recomputes it from the integer tables, after a mending that makes up for the solver's tolerance.
Which set a word is in, is revealed with certainty.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from deniable import cache, parallel, progress
from deniable.errors import ParameterError
from deniable.geometry import Floats, Ids
from deniable.mapped import EXPLAINS, Bools, MappedMechanism, each, own_columns
from deniable.mappings import Mapping
from deniable.mechanism import check_share, register
from deniable.optimum import TOLERANCE, largest_loss, least_distance
from deniable.similarity import Closeness

CLOSED = ("partition", "conservative")
LARGEST = 200


@register
@dataclass(frozen=True)
class Optimal(MappedMechanism):
    """The channel of least expected distance inside each output set."""

    name = "optimal"
    summary = "custext's sets with the channel of least expected distance, by linear programming"
    promise = "epsilon, between words of one output set only; the set is revealed"
    source = "this project; Bordenabe, Chatzikokolakis, Palamidessi, CCS 2014, for locations"
    cost = "as custext, after a linear program for each set (the default space: seconds at K = 20)"
    explains = MappingProxyType(
        {
            **EXPLAINS,
            "K": "how many words an output set has; 2 to 200: the time grows steeply, a minute or "
            "two at 50 and half an hour at 100 on the default space",
            "mapping": "partition or conservative (disjoint sets), or lists of words, such as "
            "@FILE.json: disjoint, and together the whole space",
            "bayes_cap": "the best guess from an output is right at most this often, the words of "
            "a set being equally likely; at least 1 / K (a set of fewer than 1 / cap words: 1 in "
            "as many as it has)",
            "adaptive": "true: the word of a set that survives most often does so as seldom as "
            "possible, for up to 5 % more expected distance",
        }
    )

    bayes_cap: float | None = None
    adaptive: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.mapping, str) and self.mapping not in CLOSED:
            raise ParameterError(
                f"optimal needs disjoint sets: mapping must be one of {', '.join(CLOSED)}, or "
                f"lists of words, got {self.mapping!r}"
            )
        if not isinstance(self.adaptive, bool):
            raise ParameterError(f"adaptive must be true or false, got {self.adaptive!r}")
        if self.bayes_cap is not None:
            check_share("bayes_cap", self.bayes_cap)
            if isinstance(self.mapping, str) and self.bayes_cap < 1.0 / self.K:
                raise ParameterError(
                    f"bayes_cap must be at least 1 / K = {1.0 / self.K:g}: nobody guesses worse"
                )

    def rows(
        self,
        closeness: Floats,
        own: Ids,
        hidden: Bools,  # noqa: ARG002 (all words of a set are)
    ) -> Floats:
        """Return the logarithms of the best channel."""
        distance = closeness.max() - closeness
        spread = own if self.adaptive else None
        found = least_distance(distance, self.epsilon, self.bayes_cap, spread)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(found), dtype=np.float64)

    def weights(self, closeness: Closeness, mapping: Mapping, hidden: Bools) -> list[Floats]:
        """Return the channels of all sets, from the cache if they are there."""
        key, width = self._key(closeness), max(map(len, mapping.outputs))
        if width > LARGEST:
            raise ParameterError(
                f"optimal takes sets of at most {LARGEST} words, and one has {width:,}: its linear "
                "program would take hours"
            )
        saved = cache.load_array(key) if key else None
        if saved is None or not self._are_channels(saved, mapping, width):
            saved = self._solved(closeness, mapping, hidden, width)
            if key:
                cache.save_array(key, saved)
        table = saved.astype(np.float64, copy=False)
        return [table[words][:, : len(outputs)] for words, outputs in each(mapping)]

    def _are_channels(self, saved: npt.NDArray[np.generic], mapping: Mapping, width: int) -> bool:
        """Whether a cached array is what it should be: a damaged file is as good as none."""
        if saved.shape != (len(mapping.groups.members), width) or saved.dtype != np.float64:
            return False
        table = np.exp(saved.astype(np.float64))
        if not np.isfinite(table).all() or (np.abs(table.sum(axis=1) - 1.0) > TOLERANCE).any():
            return False
        return all(
            largest_loss(table[words][:, : len(outputs)]) <= self.epsilon
            for words, outputs in each(mapping)
        )

    def _solved(
        self, closeness: Closeness, mapping: Mapping, hidden: Bools, width: int
    ) -> npt.NDArray[np.float64]:
        table = np.full((len(closeness.space), width), -np.inf)

        def solve(one: tuple[Ids, Ids]) -> Floats:
            words, outputs = one
            near = closeness.between(words, outputs)
            return self.rows(near, own_columns(words, outputs), hidden[words])

        sets = each(mapping)
        solved = progress.track(parallel.in_threads(solve, sets), "optimising", total=len(sets))
        for (words, outputs), logs in zip(sets, solved, strict=True):
            table[words, : len(outputs)] = logs
        return table

    def _key(self, closeness: Closeness) -> tuple[object, ...] | None:
        if callable(closeness.similarity):
            return None
        settings = (self.epsilon, self.K, repr(self.mapping), repr(self.pos))
        limits = (self.bayes_cap, self.adaptive)
        return ("optimal", closeness.space.hash, closeness.label, *settings, *limits)
