"""Kernels whose every input may become every output: rows are computed when they are needed.

A row over V outputs is never kept: it is turned into an integer table, drawn from as often as
the word occurs, and dropped, so that memory doesn't grow with the square of the vocabulary.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
import numpy.typing as npt

from deniable import parallel
from deniable.geometry import cached_runs
from deniable.mechanism import FiniteKernel
from deniable.sampling import Counts, Floats, Ids, draw, log_of, randomness, to_counts

# Matrix products round alike whatever else is in the block, if every block has this many rows.
ROWS = 32


class DenseKernel(FiniteKernel):
    """A kernel given by the logarithms of its weights, a row for each word."""

    @abstractmethod
    def log_weights(self, ids: Ids) -> Floats:
        """Return a row of log-weights over `outputs` for each id; any constant may be added."""

    def representatives(self, ids: Ids) -> Ids:
        """Return the word whose row stands for each id: words with equal vectors share one."""
        return self.space.twins[ids]

    def counts(self, ids: Ids) -> Counts:
        """Return the integer tables of these words: the only thing that is ever sampled."""
        if len(ids) == 0:
            return np.empty((0, len(self.outputs)), dtype=np.uint64)
        rows = self.representatives(ids)
        tables = [self._block(rows[i : i + ROWS]) for i in range(0, len(rows), ROWS)]
        return tables[0] if len(tables) == 1 else np.concatenate(tables)

    def _block(self, rows: Ids) -> Counts:
        logs = self.log_weights(np.resize(rows, ROWS))[: len(rows)]
        counts = np.empty((len(rows), len(self.outputs)), dtype=np.uint64)
        for run in cached_runs(*logs.shape):
            counts[run] = self.to_table(rows[run], _exponentiate(logs[run]))
        return counts

    def to_table(self, rows: Ids, weights: Floats) -> Counts:  # noqa: ARG002 (santext+ needs rows)
        """Turn rows of weights into integers; a mechanism with a smaller support overrides it."""
        return to_counts(weights)

    def log_probs(self, ids: npt.ArrayLike) -> Floats:
        """Return the log-probabilities of the integer tables."""
        with parallel.one_blas_thread():  # as when it is drawn from
            return log_of(self.counts(np.asarray(ids, dtype=np.int64)))

    def formula(self, ids: npt.ArrayLike) -> Floats:
        """Return the log-probabilities before rounding to integers."""
        logs = self.log_weights(np.asarray(ids, dtype=np.int64))
        logs -= logs.max(axis=1, keepdims=True)
        logs -= np.log(np.exp(logs).sum(axis=1, keepdims=True))
        return logs

    def draws(self, words: Ids, how_many: Ids) -> Ids:
        """Return `how_many[i]` outputs of `words[i]`, one word after the other."""
        points = randomness().points(int(how_many.sum()))
        ends = np.cumsum(how_many)
        starts = ends - how_many
        runs = [np.arange(i, min(i + ROWS, len(words))) for i in range(0, len(words), ROWS)]

        def block(run: Ids) -> list[Ids]:
            tables = self.counts(words[run])
            return [
                draw(table, points[starts[i] : ends[i]])
                for table, i in zip(tables, run, strict=True)
            ]

        columns = [column for found in parallel.in_threads(block, runs) for column in found]
        return self.outputs[np.concatenate(columns)] if columns else np.empty(0, dtype=np.int64)


def _exponentiate(logs: Floats) -> Floats:
    logs -= logs.max(axis=1, keepdims=True)
    return np.exp(logs, out=logs)
