"""Exact integer tables, and the cryptographic source of randomness they are drawn with.

A row of probabilities p over m outputs becomes m integers that add up to 2^63:

    q = (1 - m f) p + f,   f = 2^-34,   n_y = floor(2^63 q_y), the rest goes to the largest.

Mixing with the uniform distribution can't raise the loss of any pair (a ratio of sums lies
between the ratios), and leaves every entry at least f 2^63 = 2^29 units. Rounding moves an entry
by one unit, so each of the two rows of a pair is off by a factor of at most 1 + 2^-29 in the
floor's direction: SLACK = 2^-28 covers both. The largest entry holds 2^63 / m units or more, and
takes at most m units and the float sum's error (below 2^14), so it is off by (m + 2^14) m / 2^63
at most: `table_slack` adds that for both rows. Floats enter only before the floor; `float_slack`
covers them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from deniable.errors import ParameterError
from deniable.forks import in_every_child
from deniable.tally import OS_ENTROPY

Counts = npt.NDArray[np.uint64]
Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

BITS = 63
TOTAL = 1 << BITS
FLOOR = 2.0**-34
SLACK = 2.0**-28
LOG_TOTAL = BITS * float(np.log(2.0))
# More outputs than this and the uniform share would be over a thousandth.
WIDEST = 1 << 24


class Randomness:
    """AES-256 in counter mode, keyed by the operating system; a forked child gets its own key."""

    label = OS_ENTROPY

    def __init__(self) -> None:
        self._rekey()
        in_every_child(self._rekey)

    def _rekey(self) -> None:
        self._start(os.urandom(32), os.urandom(16))

    def _start(self, key: bytes, nonce: bytes) -> None:
        self._stream = Cipher(algorithms.AES(key), modes.CTR(nonce)).encryptor()
        # Two threads in one cipher at once could be handed the same bytes.
        self._lock = Lock()

    def words(self, count: int) -> Counts:
        """Return `count` uniform 64-bit integers."""
        with self._lock:
            stream = self._stream.update(bytes(8 * count))
        return np.frombuffer(stream, dtype=np.uint64)

    def points(self, count: int) -> Counts:
        """Return `count` uniform integers below 2^63, one for each draw from a table."""
        return self.words(count) >> np.uint64(1)

    def below(self, bound: int, count: int) -> Ids:
        """Return `count` uniform integers in 0..bound-1, exactly (by rejection)."""
        if not 0 < bound < TOTAL:
            raise ParameterError(f"a bound must be between 1 and 2^63, got {bound}")
        limit = np.uint64((1 << 64) - (1 << 64) % bound - 1)
        found = self.words(count)
        while (refused := np.flatnonzero(found > limit)).size:
            found = found.copy()
            found[refused] = self.words(len(refused))
        return (found % np.uint64(bound)).astype(np.int64)


_system = Randomness()
_current: ContextVar[Randomness] = ContextVar("deniable_randomness", default=_system)


def randomness() -> Randomness:
    """Return the source in use: the system's, unless `deniable.testing` has put in a seed."""
    return _current.get()


@contextmanager
def using(source: Randomness) -> Iterator[Randomness]:
    """Draw from another source for a while; only `deniable.testing` has a reason to."""
    token = _current.set(source)
    try:
        yield source
    finally:
        _current.reset(token)


def to_counts(weights: Floats) -> Counts:
    """Turn rows of non-negative weights into integer rows that add up to 2^63 each.

    Outputs of weight exactly 0 in *every* row of the call are not special: each output gets the
    floor. A kernel whose support is smaller passes only the supported outputs.
    """
    rows, outputs = weights.shape
    if outputs > WIDEST:
        raise ParameterError(f"{outputs:,} outputs are more than the {WIDEST:,} that are certified")
    total = weights.sum(axis=1, keepdims=True)
    if not (np.isfinite(total).all() and (total > 0).all() and (weights >= 0).all()):
        raise ParameterError("weights must be finite and not negative, and some of a row above 0")
    scaled: Floats = weights * ((1.0 - outputs * FLOOR) * float(TOTAL) / total)
    scaled += FLOOR * float(TOTAL)
    counts: Counts = scaled.astype(np.uint64)
    largest = np.argmax(scaled, axis=1)
    # Unsigned arithmetic wraps around 2^64, so a negative rest is added correctly too.
    rest = np.uint64(TOTAL) - counts.sum(axis=1, dtype=np.uint64)
    counts[np.arange(rows), largest] += rest
    return counts


def log_of(counts: Counts) -> Floats:
    """Return the natural logarithms of the probabilities; -inf where a count is 0."""
    with np.errstate(divide="ignore"):
        logs: Floats = np.log(counts.astype(np.float64))
    logs -= LOG_TOTAL
    return logs


def draw(counts: Counts, points: Counts) -> Ids:
    """Return the column that each point (uniform below 2^63) falls into, for one integer row."""
    return np.searchsorted(np.cumsum(counts), points, side="right").astype(np.int64)


class RowTables:
    """Many short integer rows of one width, drawn from by a branch-free binary search."""

    def __init__(self, counts: Counts) -> None:
        self.width = 1 << max(0, (counts.shape[1] - 1).bit_length())
        # Padding above every point is never reached.
        padded = np.full((len(counts), self.width), np.iinfo(np.uint64).max, dtype=np.uint64)
        padded[:, : counts.shape[1]] = np.cumsum(counts, axis=1)
        self._flat = padded.ravel()

    def are_of(self, counts: Counts) -> bool:
        """Whether these are the tables of those rows."""
        return bool(np.array_equal(self._flat, RowTables(counts)._flat))

    def draw(self, rows: Ids, points: Counts) -> Ids:
        """Return one column for each row."""
        base = rows * self.width
        column = np.zeros(len(rows), dtype=np.int64)
        step = self.width >> 1
        while step:
            column += step * (self._flat[base + column + (step - 1)] <= points)
            step >>= 1
        return column


def float_slack(largest_exponent: float) -> float:
    """Return a bound on what float64 arithmetic adds to a loss, in a table or in a certificate.

    A weight exp(-s) carries the relative error of s, at most a few hundred roundings of s
    itself, and of a sum of positive terms. 2^-40 of s (8,000 roundings) and 2^-40 for the sum
    leave a wide margin.
    """
    return 2.0**-40 * (1.0 + largest_exponent)


def table_slack(outputs: int) -> float:
    """Return what turning two rows over that many outputs into integers may add to their loss."""
    return SLACK + (outputs + 2.0**14) * outputs * 2.0**-62


def rounding(largest_exponent: float, outputs: int, share: float = 1.0) -> float:
    """Return what a table's loss may exceed its formula's loss by.

    `share` is the least mass that a table's formula part holds (p for santext+).
    """
    return table_slack(outputs) / share + float_slack(largest_exponent)


def promised_slack(largest_exponent: float, outputs: int, share: float = 1.0) -> float:
    """Return the slack of a promise: the table's rounding, and that of the certificate itself."""
    return rounding(largest_exponent, outputs, share) + float_slack(largest_exponent)
