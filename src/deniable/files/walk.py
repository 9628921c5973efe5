"""One line of jsonl, cut around the strings of the chosen columns.

Each line is walked once, so numbers, key order, escapes and white space stay as they were, and a
key that stands twice is sanitized twice.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import chain, pairwise
from typing import Any

_SPACE = re.compile(r"[ \t\r\n]*+")
_KEY = re.compile(
    r'[ \t\r\n]*+("(?:[^"\\\x00-\x1f]|\\.)*+")[ \t\r\n]*+:[ \t\r\n]*+',
)
_LITERAL = re.compile(r'[ \t\r\n]*+:[ \t\r\n]*+("(?:[^"\\]++|\\.)*+")')
_HALF_A_PAIR = re.compile("[\ud800-\udfff]")
# Numbers are never computed with: a very long one must not be refused, and only a whole one is
# a subject.
_VALUE = json.JSONDecoder(parse_int=str, parse_float=float).raw_decode
Cell = tuple[tuple[int, int], str]  # where a literal stands, and what it says


class BrokenRecordError(Exception):
    """A line can't be read; says why without its content."""


class Walk:
    """Cuts lines around the strings of the chosen columns.

    `subject` is whom the last line that was cut is about, None if it doesn't say.
    """

    def __init__(self, columns: Sequence[str], subject: str | None = None) -> None:
        self._columns = frozenset(columns)
        self._subject_column = subject
        needed = [*columns] if subject is None else [*columns, subject]
        parts = [column.split(".") for column in needed]
        self._parents = {".".join(p[:n]) for p in parts for n in range(1, len(p))}
        self._spellings = [(column, f'"{column}"') for column in columns]
        if not all(re.fullmatch(r'[^"\\/\x00-\x1f]*', column) for column in needed):
            self._parents.add("")  # such a key has more spellings: always walk
        self._needed = frozenset(needed)
        self._keys: frozenset[str] = frozenset()
        self.seen: set[str] = set()
        self.passed: dict[str, None] = {}
        self.subject: str | None = None

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
        cells = self._plain_cells(line, thing)
        if not cells or (self._subject_column is not None and not self._plain_subject(line, thing)):
            return []
        self._note_keys(thing)
        return sorted(cells)

    def _plain_cells(self, line: str, thing: dict[str, object]) -> list[Cell]:
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
        return cells

    def _plain_subject(self, line: str, thing: dict[str, object]) -> bool:
        """Read the subject of a plain line; False if the line must be walked."""
        subject = thing.get(str(self._subject_column))
        if not isinstance(subject, str) or not subject.strip():
            return False
        self.subject = subject
        return line.count(f'"{self._subject_column}"') == 1  # or it may stand twice

    def _note_keys(self, thing: dict[str, object]) -> None:
        if thing.keys() != self._keys:
            self._keys = frozenset(thing)
            self.seen.update(self._needed)
            self.passed.update(dict.fromkeys(key for key in thing if key not in self._columns))

    def _walk(self, line: str) -> list[Cell]:
        cells: list[Cell] = []
        self._met: dict[str, None] = {}
        self._subjects: list[object] = []
        at = _skip(line, 0)
        if line[at : at + 1] != "{":
            raise BrokenRecordError("is not a JSON object")
        end = _skip(line, self._object(line, at, "", cells))
        if end != len(line):
            raise BrokenRecordError("is not one JSON object")
        self.subject = self._one_subject()
        # Only now: the keys of a broken record are not part of the output.
        self.passed.update(self._met)
        return cells

    def _one_subject(self) -> str | None:
        """Return the subject of the line that was walked; None if it has none."""
        if len(self._subjects) > 1:
            raise BrokenRecordError(f"has the subject column {self._subject_column!r} twice")
        subject = self._subjects[0] if self._subjects else None
        if subject is None:
            return None
        # Half a surrogate pair is no text that could be kept anywhere.
        if not isinstance(subject, str) or _HALF_A_PAIR.search(subject):
            raise BrokenRecordError(
                f"has no text or whole number in the subject column {self._subject_column!r}"
            )
        return subject if subject.strip() else None

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
        if name in self._parents and line[at : at + 1] == "{" and name != self._subject_column:
            return self._object(line, at, name + ".", cells)
        self._met[name] = None
        value, end = _value(line, at)
        if name == self._subject_column:
            self.seen.add(name)
            self._subjects.append(value)
        return end


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
