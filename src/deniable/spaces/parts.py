"""What a file of vectors holds, and the checks that every format shares."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from deniable.errors import SpaceError

Vectors = npt.NDArray[np.float32]

# Rows looked at in one go, so that a check of a huge file needs little memory.
ROWS = 65_536


@dataclass(frozen=True)
class Parts:
    """The words of a space, their vectors and what the file says about them.

    `metric` and `diameter` are None where the file doesn't say.
    """

    words: tuple[str, ...]
    vectors: Vectors
    metric: str | None
    name: str
    diameter: float | None


def checked(parts: Parts, path: Path) -> Parts:
    """Refuse what is empty or not finite; of a word that comes twice keep the first."""
    count = len(parts.words)
    if count == 0 or parts.vectors.ndim != 2 or parts.vectors.shape[1] == 0:
        raise SpaceError(f"{path}: no word vectors in it")
    if count != len(parts.vectors):
        raise SpaceError(f"{path}: {count} words but {len(parts.vectors)} vectors")
    _refuse_bad_words(parts.words, path)
    _refuse_not_finite(parts, path)
    return _without_duplicates(parts, path)


def check_limit(limit: int | None) -> None:
    """Refuse a limit that leaves no word."""
    if limit is not None and limit < 1:
        raise SpaceError(f"limit is {limit}: keep at least one word")


def _refuse_bad_words(words: tuple[str, ...], path: Path) -> None:
    bad = next((i for i, word in enumerate(words) if not word or "\n" in word), None)
    if bad is not None:
        raise SpaceError(f"{path}: row {bad + 1} has an empty word or one with a line break")


def _refuse_not_finite(parts: Parts, path: Path) -> None:
    for start in range(0, len(parts.vectors), ROWS):
        good = np.isfinite(parts.vectors[start : start + ROWS]).all(axis=1)
        if not good.all():
            row = start + int(np.argmin(good))
            raise SpaceError(
                f"{path}: the vector in row {row + 1} ({parts.words[row]!r}) has a NaN or an "
                "infinity: remove that row"
            )


def _without_duplicates(parts: Parts, path: Path) -> Parts:
    first = {word: i for i, word in reversed(list(enumerate(parts.words)))}
    extra = len(parts.words) - len(first)
    if not extra:
        return parts
    warnings.warn(f"{path}: {extra} repeated words left out", stacklevel=4)
    kept = sorted(first.values())
    words = tuple(parts.words[i] for i in kept)
    return replace(parts, words=words, vectors=parts.vectors[kept], diameter=None)
