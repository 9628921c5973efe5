"""Read word2vec's binary format: a line "rows columns", then each word, a space and its floats."""

from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np

from deniable.errors import SpaceError
from deniable.spaces.parts import Parts


def read_binary(path: Path, header: tuple[int, int], limit: int | None) -> Parts:
    """Read a binary file whose first line says `header` = (rows, columns)."""
    rows, columns = header
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        at = data.find(b"\n") + 1
        # A header that promises more than the file can hold must not decide how much is allocated.
        if len(data) - at < rows * (4 * columns + 2):
            raise SpaceError(f"{path}: cut short, or not word2vec: {rows} words don't fit in it")
        rows = rows if limit is None else min(rows, limit)
        vectors = np.empty((rows, columns), dtype=np.float32)
        words = []
        for row in range(rows):
            word, at = _word(data, at, path, row)
            if at + 4 * columns > len(data):
                raise SpaceError(f"{path}: cut short in row {row + 1}")
            vectors[row] = np.frombuffer(data[at : at + 4 * columns], dtype="<f4")
            at += 4 * columns
            words.append(word)
    return Parts(tuple(words), vectors, None, path.stem, None)


def _word(data: mmap.mmap, at: int, path: Path, row: int) -> tuple[str, int]:
    """The word that starts at `at`, and where its vector starts."""
    end = data.find(b" ", at)
    if end < 0:
        raise SpaceError(f"{path}: cut short in row {row + 1}")
    try:
        return data[at:end].lstrip(b"\n").decode("utf-8"), end + 1
    except UnicodeDecodeError as error:
        raise SpaceError(f"{path}: the word in row {row + 1} isn't UTF-8") from error
