"""Read word vectors from text: GloVe ("word f f f") and word2vec (the same after "rows columns").

A block of lines is turned into numbers by one call of numpy, so no number becomes a Python object;
only a block with an odd line (a word with spaces in it, a wrong count) is looked at line by line.
"""

from __future__ import annotations

import warnings
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import numpy as np

from deniable.errors import SpaceError
from deniable.spaces.parts import Parts, Vectors

BLOCK_LINES = 4096
CHUNK = 1 << 22


def read_lines(path: Path, header: tuple[int, int] | None, limit: int | None) -> Parts:
    """Read a text file of vectors; `header` is the (rows, columns) of its first line, if any."""
    found = _count_lines(path) - (header is not None)
    if header is not None and header[0] != found:
        raise SpaceError(f"{path}: the header says {header[0]} words, the file holds {found}")
    rows = found if limit is None else min(found, limit)
    with path.open("rb") as file:
        if header is not None:
            file.readline()
        columns = header[1] if header else _columns(path)
        vectors = np.empty((rows, columns), dtype=np.float32)
        words = _fill(file, vectors, path, first=1 + (header is not None))
    return Parts(tuple(words), vectors, None, path.stem, None)


def _count_lines(path: Path) -> int:
    count, last = 0, b"\n"
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            count += chunk.count(b"\n")
            last = chunk[-1:]
    return count + (last != b"\n")


def _columns(path: Path) -> int:
    """How many numbers end the first line; its first field is a word even if it looks like one."""
    with path.open("rb") as file:
        fields = file.readline(CHUNK).split()
    return numbers_at_end(fields[1:])


def numbers_at_end(fields: list[bytes]) -> int:
    """Count the fields at the end that are numbers.

    >>> numbers_at_end([b"at", b"0.5", b"-1e-3"])
    2
    """
    count = 0
    for field in reversed(fields):
        try:
            float(field)
        except ValueError:
            break
        count += 1
    return count


def _fill(file: BinaryIO, vectors: Vectors, path: Path, first: int) -> list[str]:
    """Fill the rows of `vectors` from the file, whose next line has the number `first`."""
    words: list[str] = []
    rows, columns = vectors.shape
    if columns == 0:
        raise SpaceError(f"{path}: line {first} has no numbers after its word")
    while len(words) < rows:
        lines = list(islice(file, min(BLOCK_LINES, rows - len(words))))
        start = len(words)
        block = vectors[start : start + len(lines)]
        words += _block(lines, block, path, first + start)
    return words


def _block(lines: list[bytes], out: Vectors, path: Path, first: int) -> list[str]:
    columns = out.shape[1]
    split = [line.rstrip().partition(b" ") for line in lines]
    numbers = [rest for _, _, rest in split]
    if all(rest.count(b" ") == columns - 1 for rest in numbers):
        values = _parse(b" ".join(numbers))
        if values is not None and values.size == out.size:
            out[:] = values.reshape(out.shape)
            return [_decode(word, path, first + i) for i, (word, _, _) in enumerate(split)]
    return [_line(line, out[i], path, first + i) for i, line in enumerate(lines)]


def _parse(text: bytes) -> Vectors | None:
    """All numbers of a text, or None when something in it isn't a number."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return np.fromstring(text.decode("ascii"), dtype=np.float32, sep=" ")
        except (ValueError, DeprecationWarning):
            return None


def _line(line: bytes, out: Vectors, path: Path, number: int) -> str:
    fields = line.rstrip().rsplit(b" ", len(out))
    try:
        values = [float(field) for field in fields[1:]]
    except ValueError:
        values = []
    word_is_number_too = len(fields) > len(out) and _too_many(fields[0])
    if len(values) != len(out) or word_is_number_too:
        raise SpaceError(f"{path}: line {number} doesn't hold a word and {len(out)} numbers")
    out[:] = values
    return _decode(fields[0], path, number)


def _too_many(word: bytes) -> bool:
    """Whether what is left of the numbers ends in one more number after a space."""
    return numbers_at_end(word.split(b" ")[1:]) > 0


def _decode(word: bytes, path: Path, number: int) -> str:
    try:
        # Editors put a byte order mark before the first word.
        text = word.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise SpaceError(f"{path}: the word in line {number} isn't UTF-8") from error
    if not text:
        raise SpaceError(f"{path}: line {number} has no word")
    return text
