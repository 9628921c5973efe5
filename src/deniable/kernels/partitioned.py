"""Kernels whose words share small output sets: small tables, made once, drawn from fast."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from deniable.certify import Certification, quantiles, shown_spread, spread_holds
from deniable.errors import ParameterError
from deniable.guarantee import WITHIN_SETS, Guarantee, Relation
from deniable.mappings import Mapping
from deniable.mechanism import FiniteKernel, Mechanism
from deniable.sampling import (
    TOTAL,
    Counts,
    Floats,
    Ids,
    RowTables,
    log_of,
    randomness,
    table_slack,
    to_counts,
)
from deniable.space import Space

# A row of every word has as many columns as the largest set; larger sets want a dense kernel.
LARGEST_SET = 1024


class PartitionKernel(FiniteKernel):
    """One table for each group: `log_weights[i]` has its words as rows, its outputs as columns.

    Words in `fixed` are copied as they are (CusText+'s stop words), and so are words whose only
    output they are themselves. Nothing is promised for them, nor for a word that shares its
    output set with no other word.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        space: Space,
        mapping: Mapping,
        log_weights: list[Floats],
        fixed: npt.NDArray[np.bool_] | None = None,
        paper: str = "",
    ) -> None:
        self.mechanism, self.space, self.mapping = mechanism, space, mapping
        self.outputs = np.arange(len(space), dtype=np.int64)
        self._log_weights = log_weights
        self._labels = mapping.groups.labels
        self._widths = np.array([len(outputs) for outputs in mapping.outputs], dtype=np.int64)
        alone: npt.NDArray[np.bool_] = (self._widths == 1)[self._labels]
        self._fixed = alone if fixed is None else fixed | alone
        self.exposed_as = _exposed_as(fixed, alone)
        self._padded = _padded_outputs(mapping, self._widths)
        self._counts = self._make_counts()
        self._tables = RowTables(self._counts)
        self.guarantee = self._promise(paper)

    def _make_counts(self) -> Counts:
        """Return one row for each word, in the order of the words; unused columns are 0."""
        width = int(self._widths.max())
        check_set_size("the largest set", width)
        counts = np.zeros((len(self.space), width), dtype=np.uint64)
        for i, logs in enumerate(self._log_weights):
            members = self.mapping.groups[i]
            weights = np.exp(logs - logs.max(axis=1, keepdims=True))
            counts[members, : self._widths[i]] = to_counts(weights)
        fixed = np.flatnonzero(self._fixed)
        counts[fixed] = 0
        counts[fixed, self._own_columns(fixed)] = 1 << 63
        return counts

    def _own_columns(self, words: Ids) -> Ids:
        """Return where each word stands among its own outputs."""
        found: Ids = np.argmax(self._padded[self._labels[words]] == words[:, None], axis=1)
        return found

    def _promise(self, paper: str) -> Guarantee:
        sizes = self.mapping.groups.sizes
        hidden = np.bincount(self._labels, ~self._fixed, minlength=len(sizes))
        pairs = len(self.space) * (len(self.space) - 1)
        covered = float((hidden * (hidden - 1)).sum() / pairs) if pairs else 1.0
        return Guarantee(
            unit="token",
            relation=Relation(WITHIN_SETS, covered=covered),
            epsilon=float(self.mechanism.epsilon),
            slack=table_slack(int(self._widths.max())),
            reveals=tuple(self._revealed()),
            paper=paper,
            spread=self._farthest(),
        )

    def _farthest(self) -> float | None:
        """Return twice the largest ln P(y|x) / P(y'|x): two rows spread no more than both do."""
        rows = self._counts[~self._fixed]
        if not len(rows):
            return None
        least = np.where(rows > 0, rows, np.uint64(TOTAL)).min(axis=1).astype(np.float64)
        most = rows.max(axis=1).astype(np.float64)
        return 2.0 * (float(np.log(most / least).max()) + table_slack(rows.shape[1]))

    def _revealed(self) -> Iterator[str]:
        groups = self.mapping.groups
        if self.mapping.is_closed:
            yield (
                f"which of the {len(groups):,} output sets the word is in, with certainty: "
                f"{groups.bits:.2f} of {np.log2(len(self.space)):.2f} bits"
            )
        else:
            yield (
                f"which of the {len(groups):,} overlapping output sets the word has, as far as the "
                "output is in few of them: words whose sets differ may be told apart with certainty"
            )
            alone = self.mapping.left_alone
            yield f"{alone:.2%} of the words share their output set with no other: no promise"
        if self._fixed.any():
            yield f"{self._fixed.sum():,} words of the space are copied as they are"

    def log_probs(self, ids: npt.ArrayLike) -> Floats:
        """Return the log-probabilities of the integer tables; -inf outside the word's set."""
        return self._spread(ids, log_of(self._counts[np.asarray(ids, dtype=np.int64)]))

    def formula(self, ids: npt.ArrayLike) -> Floats:
        """Return the log-probabilities before rounding; -inf outside the word's set."""
        words = np.asarray(ids, dtype=np.int64)
        rows = np.full((len(words), self._counts.shape[1]), -np.inf)
        for row, word in zip(rows, words, strict=True):
            row[: self._widths[self._labels[word]]] = self._formula_row(int(word))
        return self._spread(words, rows)

    def probabilities(self, group: int) -> Floats:
        """Return P(y | x) of the integer tables for the words of one group over its outputs."""
        members = self.mapping.groups[group]
        return np.exp(log_of(self._counts[members][:, : self._widths[group]]))

    def _formula_row(self, word: int) -> Floats:
        label = self._labels[word]
        position = int(np.flatnonzero(self.mapping.groups[label] == word)[0])
        logs = self._log_weights[label][position]
        if self._fixed[word]:
            return np.where(self.mapping.outputs[label] == word, 0.0, -np.inf)
        logs = logs - logs.max()
        return np.asarray(logs - np.log(np.exp(logs).sum()), dtype=np.float64)

    def _spread(self, ids: npt.ArrayLike, rows: Floats) -> Floats:
        words = np.asarray(ids, dtype=np.int64)
        found = np.full((len(words), len(self.space)), -np.inf)
        columns = self._padded[self._labels[words]]
        inside = columns >= 0
        found[np.nonzero(inside)[0], columns[inside]] = rows[inside]
        return found

    def sample(self, ids: npt.ArrayLike) -> Ids:
        """Return one output for each id: a binary search in the word's table."""
        wanted = np.asarray(ids, dtype=np.int64)
        flat = wanted.ravel()
        columns = self._tables.draw(flat, randomness().points(len(flat)))
        return self._padded[self._labels[flat], columns].reshape(wanted.shape)

    def draws(self, words: Ids, how_many: Ids) -> Ids:
        """Return `how_many[i]` outputs of `words[i]`, one word after the other."""
        return self.sample(np.repeat(words, how_many))

    def promised(self, a: Ids, b: Ids) -> Floats:
        """Epsilon between different unfixed words of one set; infinite otherwise."""
        same = self._labels[a][:, None] == self._labels[b][None, :]
        same &= ~self._fixed[a][:, None] & ~self._fixed[b][None, :]
        loss = np.where(same, self.guarantee.epsilon + self.guarantee.slack, np.inf)
        loss[np.asarray(a)[:, None] == np.asarray(b)[None, :]] = 0.0
        return loss

    def exposes(self, ids: Ids) -> npt.NDArray[np.bool_]:
        """Return which words are copied as they are."""
        return self._fixed[ids]

    def certify(self) -> Certification:
        """Look at every pair of every set, through each output's largest and smallest entry."""
        logs = log_of(self._counts)
        worst, pair, losses, pairs, spread = 0.0, None, [np.empty(0)], 0, 0.0
        for i in range(len(self.mapping.groups)):
            members = self.mapping.groups[i]
            hidden = members[~self._fixed[members]]
            if len(hidden) < 2:
                continue
            table = logs[hidden][:, : self._widths[i]]
            up = _pair_losses(table)
            found = np.maximum(up, up.T)
            spread = max(spread, float((up + up.T).max()))
            losses.append(found[np.triu_indices(len(hidden), 1)])
            pairs += len(losses[-1])
            if found.max() > worst or pair is None:
                worst = float(found.max())
                a, b = np.unravel_index(int(found.argmax()), found.shape)
                pair = (self.space.words[hidden[a]], self.space.words[hidden[b]])
        every = np.concatenate(losses)
        promise = self.guarantee.epsilon + self.guarantee.slack
        return Certification(
            holds=worst <= promise and spread_holds(self, spread) and self._is_sound(),
            worst=worst / promise,
            worst_pair=pair,
            max_loss=worst,
            covered=self.guarantee.relation.covered,
            method="recomputed",
            pairs=pairs,
            epsilon_diameter=self.guarantee.epsilon,
            losses=quantiles(every),
            reveals=self.guarantee.reveals,
            max_spread=shown_spread(self, spread),
        )

    def _is_sound(self) -> bool:
        """Whether every row adds up to 2^63, and is what is drawn from."""
        rows = self._counts.astype(np.float64)
        near = bool((np.abs(rows.sum(axis=1) / TOTAL - 1.0) < 1e-9).all())
        exact = self._counts.sum(axis=1, dtype=np.uint64) == np.uint64(TOTAL)
        return near and bool(exact.all()) and self._tables.are_of(self._counts)


def _exposed_as(fixed: npt.NDArray[np.bool_] | None, alone: npt.NDArray[np.bool_]) -> str:
    # A word alone in a set of one can only become itself.
    names = ["stop words"] if fixed is not None else []
    return ", ".join([*names, "words alone in their set"] if alone.any() else names)


def check_set_size(name: str, size: int) -> None:
    """Refuse sets whose tables would not fit in memory."""
    if size > LARGEST_SET:
        raise ParameterError(
            f"{name} has {size:,} words, more than the {LARGEST_SET:,} whose tables fit in memory"
        )


def _pair_losses(table: Floats) -> Floats:
    """Return max_y ln P(y|x) - ln P(y|x') for all rows of one set, an output at a time."""
    found = np.zeros((len(table), len(table)))
    for column in table.T:
        with np.errstate(invalid="ignore"):
            gaps = column[:, None] - column[None, :]
        # Impossible for both is no evidence; impossible for one of them is all there can be.
        np.nan_to_num(gaps, copy=False, nan=0.0, posinf=np.inf, neginf=-np.inf)
        np.maximum(found, gaps, out=found)
    return found


def _padded_outputs(mapping: Mapping, widths: Ids) -> Ids:
    """Return one row of word ids for each group, padded with -1."""
    padded = np.full((len(widths), int(widths.max())), -1, dtype=np.int64)
    for row, outputs in zip(padded, mapping.outputs, strict=True):
        row[: len(outputs)] = outputs
    return padded
