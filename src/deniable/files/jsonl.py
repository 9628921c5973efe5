"""jsonl: an object a line; only the chosen strings change, every other byte is given back.

A dotted column names a field of a nested object. A subject is a string or a whole number.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any

from deniable.errors import InputError
from deniable.files.reader import (
    Batch,
    Position,
    check_texts,
    missing_column,
    no_subject,
    uneven,
)
from deniable.files.source import Source
from deniable.files.textual import TextReader
from deniable.files.walk import BrokenRecordError, Walk

_SHORT = json.JSONEncoder(ensure_ascii=False).encode
_ASCII = json.JSONEncoder(ensure_ascii=True).encode


class JsonReader(TextReader):
    """Reads the chosen strings of every object."""

    def __init__(
        self, lines: Source, columns: Sequence[str], on_error: str, subject: str | None = None
    ) -> None:
        super().__init__("jsonl", lines, columns, on_error, subject)
        self._walk = Walk(columns, subject)
        self._nameless: list[int] = []  # the lines of a block that have no subject

    def resume(self, start: Position | None) -> None:
        """Go on at a position of an earlier run."""
        super().resume(start)
        if start is not None:
            self._walk.seen.update(self.needed())
            self._walk.passed.update(dict.fromkeys(start["passed"]))
            self.passed = tuple(self._walk.passed)

    def batches(self, characters: int = 4_000_000) -> Iterator[Batch]:
        """Yield the records in order; `passed` grows with the keys that are met."""
        while text := self._lines.read(characters):
            yield self._block(text)
        self._count_broken()

    def _block(self, text: str) -> Batch:
        pieces: list[str] = []
        texts: list[str] = []
        cells: list[int] = []
        sizes: list[int] = []
        subjects: list[str | None] = []
        for at, line in enumerate(text.split("\n")):
            if (cut := self._cut(line, at)) is None:
                continue
            clear, found = cut
            cells.extend(range(len(pieces) + 1, len(pieces) + len(clear), 2))
            pieces += clear
            pieces.append("\n")
            texts += found
            if found or not (not line or line.isspace()):
                sizes.append(len(found))
                subjects.append(self._walk.subject)
        # What split() saw after the last newline is not a line of its own.
        if cut is not None:
            pieces.pop()
        self._end_block(text, sizes)
        named = None if self.subject is None else [name for name in subjects if name is not None]
        return self._batch(texts, len(sizes), (pieces, cells), "", uneven(sizes), named)

    def _cut(self, line: str, at: int) -> tuple[list[str], list[str]] | None:
        """Cut one line; None if it is broken and skipped."""
        if not line or line.isspace():
            return [line], []
        try:
            cut = self._walk.cut(line)
        except BrokenRecordError as error:
            problem = str(error)
        else:
            if self.subject is None or self._walk.subject is not None:
                return cut
            # The end of the block tells whether no record has such a key.
            self._nameless.append(self._lines.line + at)
            return None
        if self._skips:
            self.skipped += 1
            return None
        raise InputError(f"{self.source}: line {self._lines.line + at} {problem}")

    def _end_block(self, text: str, records: Sequence[int]) -> None:
        self.passed = tuple(self._walk.passed)
        if records or self._nameless:
            self._check_columns()
        if self._nameless and not self._skips:
            raise no_subject(self.source, f"line {self._nameless[0]}", str(self.subject))
        self.skipped += len(self._nameless)
        self._nameless.clear()
        self._lines.line += text.count("\n")

    def _check_columns(self) -> None:
        """Refuse a column that the first records don't have at all."""
        for column in self.needed():
            if column not in self._walk.seen:
                raise missing_column(self.source, column, self.passed)
        self._walk.seen.update(self.needed())

    def _batch(
        self,
        texts: list[str],
        records: int,
        frame: object,
        rest: str = "",
        cells: list[int] | None = None,
        subjects: list[str] | None = None,
    ) -> Batch:
        batch = super()._batch(texts, records, frame, rest, cells, subjects)
        batch.position["passed"] = list(self.passed)
        return batch

    def render(self, batch: Batch, texts: Sequence[str]) -> bytes:
        """Return the objects with the new strings."""
        check_texts(batch, texts)
        with suppress(UnicodeEncodeError):  # half a surrogate pair, or a small encoding
            return self._join(batch, texts, ascii_only=False).encode(self._lines.codec)
        return self._join(batch, texts, ascii_only=True).encode(self._lines.codec)

    @staticmethod
    def _join(batch: Batch, texts: Sequence[str], *, ascii_only: bool) -> str:
        pieces, cells = batch.frame
        new = list(pieces)
        # An old literal is never given back: its spelling would show that its text did not change.
        write = _ASCII if ascii_only else _SHORT
        for at, text in zip(cells, texts, strict=True):
            new[at] = write(text)
        return "".join(new)

    def _thin(self, frame: Any, kept: Sequence[bool]) -> Any:
        pieces, _ = frame
        new: list[str] = []
        cells: list[int] = []
        record = iter(kept)
        ends = [at + 1 for at, piece in enumerate(pieces) if piece == "\n"]
        for start, end in pairwise([0, *ends, len(pieces)]):
            line = pieces[start:end]
            if not "".join(line).strip() or next(record):
                cells.extend(range(len(new) + 1, len(new) + len(line) - 1, 2))
                new += line
        return new, cells
