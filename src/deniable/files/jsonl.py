"""jsonl: an object a line; only the chosen strings change, every other byte is given back.

A dotted column names a field of a nested object. Each line is walked once and cut around its chosen
strings, so numbers, key order, escapes and white space stay as they were, and a key that stands
twice is sanitized twice.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain, pairwise
from typing import Any

from deniable.errors import InputError
from deniable.files.reader import Batch, Position, check_texts, missing_column
from deniable.files.source import Source
from deniable.files.textual import TextReader

_SPACE = re.compile(r"[ \t\r\n]*+")
_KEY = re.compile(
    r'[ \t\r\n]*+("(?:[^"\\\x00-\x1f]|\\.)*+")[ \t\r\n]*+:[ \t\r\n]*+',
)
# Numbers are never computed with, and a very long one must not be refused.
_LITERAL = re.compile(r'[ \t\r\n]*+:[ \t\r\n]*+("(?:[^"\\]++|\\.)*+")')
_VALUE = json.JSONDecoder(parse_int=str, parse_float=str).raw_decode


_SHORT = json.JSONEncoder(ensure_ascii=False).encode
_ASCII = json.JSONEncoder(ensure_ascii=True).encode
Cell = tuple[tuple[int, int], str]  # where a literal stands, and what it says


class BrokenRecordError(Exception):
    """A line can't be read; says why without its content."""


class Walk:
    """Cuts lines around the strings of the chosen columns."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns = frozenset(columns)
        parts = [column.split(".") for column in columns]
        self._parents = {".".join(p[:n]) for p in parts for n in range(1, len(p))}
        self._spellings = [(column, f'"{column}"') for column in columns]
        if not all(re.fullmatch(r'[^"\\/\x00-\x1f]*', column) for column in columns):
            self._parents.add("")  # such a key has more spellings: always walk
        self._keys: frozenset[str] = frozenset()
        self.seen: set[str] = set()
        self.passed: dict[str, None] = {}

    def cut(self, line: str) -> tuple[list[str], list[str]]:
        """Return the line as clear, literal, clear, ..., clear, and the texts of the literals."""
        found = self._plain(line) or self._walk(line)
        edges = [0, *chain.from_iterable(span for span, _ in found), len(line)]
        return [line[a:b] for a, b in pairwise(edges)], [text for _, text in found]

    def _plain(self, line: str) -> list[Cell]:
        """Find the strings of a plain line without a walk; nothing if it must be walked.

        Without \\u a key is spelled in one way. So if the object has the key, and the line has that
        spelling once, this is the key.
        """
        if self._parents or "\\u" in line or line[-1:] != "}":
            return []
        try:
            thing, end = _VALUE(line, 0)
        except (ValueError, RecursionError):
            return []
        if end != len(line) or not isinstance(thing, dict):
            return []
        cells: list[Cell] = []
        for column, spelling in self._spellings:
            at = line.find(spelling)
            text = thing.get(column)
            if at < 0 or not isinstance(text, str) or line.find(spelling, at + 1) >= 0:
                return []
            literal = _LITERAL.match(line, at + len(spelling))
            if literal is None:
                return []
            cells.append((literal.span(1), text))
        self._note_keys(thing)
        return sorted(cells)

    def _note_keys(self, thing: dict[str, object]) -> None:
        if thing.keys() != self._keys:
            self._keys = frozenset(thing)
            self.seen.update(self._columns)
            self.passed.update(dict.fromkeys(key for key in thing if key not in self._columns))

    def _walk(self, line: str) -> list[Cell]:
        cells: list[Cell] = []
        self._met: dict[str, None] = {}
        at = _skip(line, 0)
        if line[at : at + 1] != "{":
            raise BrokenRecordError("is not a JSON object")
        end = _skip(line, self._object(line, at, "", cells))
        if end != len(line):
            raise BrokenRecordError("is not one JSON object")
        # Only now: the keys of a broken record are not part of the output.
        self.passed.update(self._met)
        return cells

    def _object(self, line: str, at: int, prefix: str, cells: list[Cell]) -> int:
        """Walk the object that opens at `at`; return where it ends."""
        at = _skip(line, at + 1)
        if line[at : at + 1] == "}":
            return at + 1
        while found := _KEY.match(line, at):
            raw = found[1]
            name = prefix + (_value(raw, 0)[0] if "\\" in raw else raw[1:-1])
            at = _skip(line, self._member(line, found.end(), name, cells))
            mark = line[at : at + 1]
            at += 1
            if mark == "}":
                return at
            if mark != ",":
                break
        raise BrokenRecordError("is broken JSON")

    def _member(self, line: str, at: int, name: str, cells: list[Cell]) -> int:
        """Read the value of one key; return where it ends."""
        if name in self._columns:
            self.seen.add(name)
            value, end = _value(line, at)
            if line[at] == '"':
                cells.append(((at, end), value))
            elif value is not None:
                raise BrokenRecordError(f"has no text in column {name!r} (give a text column)")
            return end
        if name in self._parents and line[at : at + 1] == "{":
            return self._object(line, at, name + ".", cells)
        self._met[name] = None
        return _value(line, at)[1]


def _skip(line: str, at: int) -> int:
    found = _SPACE.match(line, at)
    return found.end() if found else at


def _value(line: str, at: int) -> tuple[Any, int]:
    try:
        return _VALUE(line, at)
    except (ValueError, RecursionError):
        pass
    # Raised outside the handler: the decoder's own error carries the whole line.
    raise BrokenRecordError("is broken JSON")


class JsonReader(TextReader):
    """Reads the chosen strings of every object."""

    def __init__(self, lines: Source, columns: Sequence[str], on_error: str) -> None:
        super().__init__("jsonl", lines, columns, on_error)
        self._walk = Walk(columns)

    def resume(self, start: Position | None) -> None:
        """Go on at a position of an earlier run."""
        super().resume(start)
        if start is not None:
            self._walk.seen.update(self.columns)
            self._walk.passed.update(dict.fromkeys(start["passed"]))
            self.passed = tuple(self._walk.passed)

    def batches(self, characters: int = 4_000_000) -> Iterator[Batch]:
        """Yield the records in order; `passed` grows with the keys that are met."""
        while text := self._lines.read(characters):
            pieces: list[str] = []
            texts: list[str] = []
            cells: list[int] = []
            records = 0
            sizes: list[int] = []
            for at, line in enumerate(text.split("\n")):
                if (cut := self._cut(line, at)) is None:
                    continue
                clear, found = cut
                cells.extend(range(len(pieces) + 1, len(pieces) + len(clear), 2))
                pieces += clear
                pieces.append("\n")
                texts += found
                sizes.append(len(found))
                records += bool(found) or not (not line or line.isspace())
            self._lines.line += text.count("\n")
            self.passed = tuple(self._walk.passed)
            if records:
                self._check_columns()
            # What split() saw after the last newline is not a line of its own.
            yield self._batch(texts, records, (pieces[:-1], cells), cells=sizes)
        self._count_broken()

    def _cut(self, line: str, at: int) -> tuple[list[str], list[str]] | None:
        """Cut one line; None if it is broken and skipped."""
        if not line or line.isspace():
            return [line], []
        try:
            return self._walk.cut(line)
        except BrokenRecordError as error:
            problem = str(error)
        if self._skips:
            self.skipped += 1
            return None
        raise InputError(f"{self.source}: line {self._lines.line + at} {problem}")

    def _check_columns(self) -> None:
        """Refuse a column that the first records don't have at all."""
        for column in self.columns:
            if column not in self._walk.seen:
                raise missing_column(self.source, column, self.passed)
        self._walk.seen.update(self.columns)

    def _batch(
        self,
        texts: list[str],
        records: int,
        frame: object,
        rest: str = "",
        cells: list[int] | None = None,
    ) -> Batch:
        batch = super()._batch(texts, records, frame, rest, cells)
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
