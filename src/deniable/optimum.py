"""The channel of least expected distance at a given epsilon, as a linear program (HiGHS).

    minimise    mean over x of the sum over y of P(y | x) d(x, y)
    subject to  every row sums to 1,   low_y <= P(y | x) <= e^eps low_y    for every x and y

Between the smallest and the largest entry of a column lie all others, so these 2 n m constraints
say the same as the n (n - 1) m constraints P(y | x) <= e^eps P(y | x'). Optionally

    high_y >= P(y | x),   sum over y of high_y <= cap n     (Bayes success at equal priors)

and in a second program, with the expected distance held near its least value, the largest
P(x | x) is made as small as it can be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import highspy
import numpy as np
import numpy.typing as npt

from deniable.sampling import Floats, Ids

# Beyond this, what is left to gain is below e^-14 of a distance, and the solver's numbers end.
LARGEST_EPSILON = 14.0
TOLERANCE = 1e-9
# Room for the rounding to integers, so that the table's loss is at most epsilon, not above.
MARGIN = 1e-8
# How much more than the least distance `spread_out` may spend.
ALLOWANCE = 0.05
NOTHING = 1e-8


@dataclass
class _Program:
    """A linear program that is put together a block of constraints at a time."""

    cost: Floats
    rows: list[Ids] = field(default_factory=list)
    columns: list[Ids] = field(default_factory=list)
    values: list[Floats] = field(default_factory=list)
    low: list[Floats] = field(default_factory=list)
    high: list[Floats] = field(default_factory=list)
    count: int = 0

    def add(self, entries: list[tuple[Ids, Ids, Floats]], low: Floats, high: Floats) -> None:
        """Add constraints low <= A z <= high; entries are rows (from 0), columns and values."""
        for rows, columns, values in entries:
            self.rows.append(rows + self.count)
            self.columns.append(columns)
            self.values.append(values)
        self.low.append(low)
        self.high.append(high)
        self.count += len(low)

    def solve(self) -> Floats | None:
        """Return the best point; None where there is none."""
        rows, columns = np.concatenate(self.rows), np.concatenate(self.columns)
        order = np.lexsort((columns, rows))
        program = highspy.HighsLp()
        program.num_col_, program.num_row_ = len(self.cost), self.count
        program.col_cost_ = self.cost
        program.col_lower_, program.col_upper_ = np.zeros(len(self.cost)), np.ones(len(self.cost))
        program.row_lower_ = np.concatenate(self.low)
        program.row_upper_ = np.concatenate(self.high)
        matrix = program.a_matrix_
        matrix.format_ = highspy.MatrixFormat.kRowwise
        counts = np.bincount(rows, minlength=self.count)
        matrix.start_ = np.concatenate([[0], np.cumsum(counts)])
        matrix.index_, matrix.value_ = columns[order], np.concatenate(self.values)[order]
        solver = _solver()
        solver.passModel(program)
        solver.run()
        if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        return np.asarray(solver.getSolution().col_value, dtype=np.float64)


def _solver() -> Any:
    make: Any = highspy.Highs  # its types are incomplete
    solver = make()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    solver.setOptionValue("primal_feasibility_tolerance", TOLERANCE)
    solver.setOptionValue("dual_feasibility_tolerance", TOLERANCE)
    return solver


def least_distance(
    distance: Floats, epsilon: float, cap: float | None = None, own: Ids | None = None
) -> Floats:
    """Return the channel (rows of probabilities) for the words of one set.

    `cap` bounds the chance that a guess from the output is right, all words of the set equally
    likely; one below 1 / n is read as 1 / n. `own`, the column of each word itself, spends up to
    5 % more distance to make the largest chance that a word survives as small as possible.
    """
    scaled = distance / (distance.max() or 1.0)
    bound = min(float(epsilon), LARGEST_EPSILON)
    found = _solved(scaled, bound, cap)
    if own is not None:
        allowed = (1.0 + ALLOWANCE) * float((found * scaled).sum() / len(scaled)) + TOLERANCE
        found = _solved(scaled, bound, cap, allowed, own)
    return within(found, float(epsilon))


def _solved(
    distance: Floats,
    epsilon: float,
    cap: float | None,
    allowed: float = 0.0,
    own: Ids | None = None,
) -> Floats:
    words, outputs = distance.shape
    size = words * outputs
    program = _Program(np.zeros(size + 2 * outputs + 1))
    entry = np.arange(size)
    column = entry % outputs
    one, none, endless = np.ones(size), np.zeros(size), np.full(size, np.inf)
    program.add([(entry // outputs, entry, one)], np.ones(words), np.ones(words))
    lows, highs = size + column, size + outputs + column
    program.add([(entry, entry, one), (entry, lows, -one)], none, endless)
    steep = np.full(size, math.exp(epsilon))
    program.add([(entry, entry, one), (entry, lows, -steep)], -endless, none)
    if cap is not None:
        program.add([(entry, highs, one), (entry, entry, -one)], none, endless)
        room = np.array([max(cap, 1.0 / words) * words + TOLERANCE])
        last = np.arange(size + outputs, size + 2 * outputs)
        program.add(
            [(np.zeros(outputs, dtype=np.int64), last, np.ones(outputs))], np.zeros(1), room
        )
    if own is None:
        program.cost[:size] = distance.ravel() / words
    else:
        _bound_survival(program, distance, allowed, own)
    point = program.solve()
    if point is None:  # numerically, never in exact arithmetic: equal rows are always allowed
        return np.full((words, outputs), 1.0 / outputs)
    found: Floats = point[:size].reshape(words, outputs)
    return found


def _bound_survival(program: _Program, distance: Floats, allowed: float, own: Ids) -> None:
    """Ask for the least possible largest P(x | x), at no more than the allowed distance."""
    words, outputs = distance.shape
    most = len(program.cost) - 1
    program.cost[most] = 1.0
    every = np.arange(words * outputs)
    mean = distance.ravel() / words
    program.add([(np.zeros_like(every), every, mean)], np.zeros(1), np.array([allowed]))
    rows = np.arange(words)
    survival = rows * outputs + own
    ones = np.ones(words)
    most_of_all = np.full(words, most)
    entries = [(rows, most_of_all, ones), (rows, survival, -ones)]
    program.add(entries, np.zeros(words), np.full(words, np.inf))


def within(channel: Floats, epsilon: float) -> Floats:
    """Mend what a solver's tolerance leaves: rows that sum to 1 and lose at most epsilon.

    Every row is mixed with the mean row, as little as it takes: at the end all rows are equal.
    """
    found = np.maximum(channel, 0.0)
    noise = found.max(axis=0) < NOTHING
    found[:, noise] = found[:, noise].mean(axis=0)
    found /= found.sum(axis=1, keepdims=True)
    middle = found.mean(axis=0)
    if largest_loss(found) <= epsilon - MARGIN:
        return found
    low, high = 0.0, 1.0
    for _ in range(60):
        share = (low + high) / 2.0
        mixed = (1.0 - share) * found + share * middle
        low, high = (low, share) if largest_loss(mixed) <= epsilon - MARGIN else (share, high)
    mended: Floats = (1.0 - high) * found + high * middle
    return mended


def largest_loss(channel: Floats) -> float:
    """Return the largest loss of any two rows, over outputs that are possible at all."""
    possible = channel[:, channel.max(axis=0) > 0]
    with np.errstate(divide="ignore"):
        logs = np.log(possible)
    return float((logs.max(axis=0) - logs.min(axis=0)).max(initial=0.0))


def bayes_success(channel: npt.NDArray[np.float64]) -> float:
    """Return the chance that the best guess is right when all words are equally likely."""
    return float(channel.max(axis=0).sum() / len(channel))
