"""Kernels that stay within one set of a partition: small tables, made once, drawn from fast."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from deniable.certify import Certification, quantiles
from deniable.errors import ParameterError
from deniable.guarantee import WITHIN_SETS, Guarantee, Relation
from deniable.mechanism import FiniteKernel, Mechanism
from deniable.partition import Partition
from deniable.sampling import (
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
    """One table for each set; `log_weights[i]` is the square array of set i.

    Words in `fixed` are copied as they are (CusText+'s stop words), and so are words alone in
    their set: nothing is promised for them.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        space: Space,
        partition: Partition,
        log_weights: list[Floats],
        fixed: npt.NDArray[np.bool_] | None = None,
        paper: str = "",
    ) -> None:
        self.mechanism, self.space, self.partition = mechanism, space, partition
        self.outputs = np.arange(len(space), dtype=np.int64)
        self._log_weights = log_weights
        self._labels = partition.labels
        # A word alone in its set can only become itself.
        alone: npt.NDArray[np.bool_] = (partition.sizes == 1)[self._labels]
        self._fixed = alone if fixed is None else fixed | alone
        self.exposed_as = _exposed_as(fixed, alone)
        self._counts = self._make_counts()
        self._tables = RowTables(self._counts)
        self._padded = _padded_members(partition)
        self.guarantee = self._promise(paper)

    def _make_counts(self) -> Counts:
        """Return one row for each word, in the order of the words; unused columns are 0."""
        width = int(self.partition.sizes.max())
        check_set_size("the largest set", width)
        counts = np.zeros((len(self.space), width), dtype=np.uint64)
        for i, logs in enumerate(self._log_weights):
            members = self.partition[i]
            weights = np.exp(logs - logs.max(axis=1, keepdims=True))
            counts[members, : len(members)] = to_counts(weights)
            for position in np.flatnonzero(self._fixed[members]):
                counts[members[position]] = 0
                counts[members[position], position] = 1 << 63
        return counts

    def _promise(self, paper: str) -> Guarantee:
        sizes = self.partition.sizes
        hidden = np.bincount(self._labels, ~self._fixed, minlength=len(sizes))
        pairs = len(self.space) * (len(self.space) - 1)
        covered = float((hidden * (hidden - 1)).sum() / pairs) if pairs else 1.0
        reveals: tuple[str, ...] = (
            f"which of the {len(sizes):,} output sets the word is in, with certainty: "
            f"{self.partition.bits:.2f} of {np.log2(len(self.space)):.2f} bits",
        )
        if self._fixed.any():
            reveals += (f"{self._fixed.sum():,} words of the space are copied as they are",)
        return Guarantee(
            unit="token",
            relation=Relation(WITHIN_SETS, covered=covered),
            epsilon=float(self.mechanism.epsilon),
            slack=table_slack(int(sizes.max())),
            reveals=reveals,
            paper=paper,
        )

    def log_probs(self, ids: npt.ArrayLike) -> Floats:
        """Return the log-probabilities of the integer tables; -inf outside the word's set."""
        return self._spread(ids, log_of(self._counts[np.asarray(ids, dtype=np.int64)]))

    def formula(self, ids: npt.ArrayLike) -> Floats:
        """Return the log-probabilities before rounding; -inf outside the word's set."""
        words = np.asarray(ids, dtype=np.int64)
        rows = np.full((len(words), self._counts.shape[1]), -np.inf)
        for row, word in zip(rows, words, strict=True):
            row[: len(self.partition[self._labels[word]])] = self._formula_row(int(word))
        return self._spread(words, rows)

    def _formula_row(self, word: int) -> Floats:
        label = self._labels[word]
        position = int(np.flatnonzero(self.partition[label] == word)[0])
        logs = self._log_weights[label][position]
        if self._fixed[word]:
            return np.where(np.arange(len(logs)) == position, 0.0, -np.inf)
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
        worst, pair, losses, pairs = 0.0, None, [np.empty(0)], 0
        for i in range(len(self.partition)):
            members = self.partition[i]
            hidden = members[~self._fixed[members]]
            if len(hidden) < 2:
                continue
            table = logs[hidden][:, : len(members)]
            found = _pair_losses(table)
            losses.append(found[np.triu_indices(len(hidden), 1)])
            pairs += len(losses[-1])
            if found.max() > worst or pair is None:
                worst = float(found.max())
                a, b = np.unravel_index(int(found.argmax()), found.shape)
                pair = (self.space.words[hidden[a]], self.space.words[hidden[b]])
        every = np.concatenate(losses)
        promise = self.guarantee.epsilon + self.guarantee.slack
        return Certification(
            holds=worst <= promise,
            worst=worst / promise,
            worst_pair=pair,
            max_loss=worst,
            covered=self.guarantee.relation.covered,
            method="recomputed",
            pairs=pairs,
            epsilon_diameter=self.guarantee.epsilon,
            losses=quantiles(every),
            reveals=self.guarantee.reveals,
        )


def _exposed_as(fixed: npt.NDArray[np.bool_] | None, alone: npt.NDArray[np.bool_]) -> str:
    names = ["stop words"] if fixed is not None else []
    return ", ".join([*names, "words alone in their set"] if alone.any() else names)


def check_set_size(name: str, size: int) -> None:
    """Refuse sets whose tables would not fit in memory."""
    if size > LARGEST_SET:
        raise ParameterError(
            f"{name} has {size:,} words, more than the {LARGEST_SET:,} whose tables fit in memory"
        )


def _pair_losses(table: Floats) -> Floats:
    """Return max_y |ln P(y|x) - ln P(y|x')| for all rows of one set, an output at a time."""
    found = np.zeros((len(table), len(table)))
    for column in table.T:
        np.maximum(found, np.abs(column[:, None] - column[None, :]), out=found)
    return found


def _padded_members(partition: Partition) -> Ids:
    """Return one row of word ids for each set, padded with -1."""
    padded = np.full((len(partition), int(partition.sizes.max())), -1, dtype=np.int64)
    labels = np.repeat(np.arange(len(partition)), partition.sizes)
    within = np.arange(len(partition.members)) - partition.starts[labels]
    padded[labels, within] = partition.members
    return padded
