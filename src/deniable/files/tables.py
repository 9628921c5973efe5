"""csv and tsv: a header, then records whose other columns and quoting are given back as they were.

Fields are quoted as RFC 4180 says. `tsv-plain` is for files in which a quote is an ordinary
character. The record pattern splits a block into clear, cell, clear, cell, ..., clear, so nothing
but the chosen cells is ever taken apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain, compress
from typing import Any

from deniable.errors import InputError
from deniable.files.reader import (
    Batch,
    Position,
    check_texts,
    missing_column,
    named_twice,
    no_subject,
    uneven,
)
from deniable.files.source import Source
from deniable.files.textual import TextReader

LONGEST = 64_000_000  # characters; a record longer than this is a quote that was never closed
_QUOTED = r'"[^"]*+(?:""[^"]*+)*+"'
_END = r"\r?\n"
_EMPTY = ("\n", "\r\n")


class Dialect:
    """The patterns of one delimiter, with or without quotes."""

    def __init__(self, delimiter: str, *, quotes: bool) -> None:
        d = re.escape(delimiter)
        self.quotes = quotes
        self.field = f'(?:{_QUOTED}|[^"{d}\r\n][^{d}\r\n]*+)?+' if quotes else f"[^{d}\r\n]*+"
        self.delimiter = d
        self.record = re.compile(f"{self.field}(?:{d}{self.field})*+{_END}")
        open_quote = '"[^"]*+(?:""[^"]*+)*+' if quotes else ""
        self.unfinished = re.compile(f"(?:{self.field}{d})*+(?:{open_quote}|{self.field})\r?\\Z")
        self.needs_quotes = re.compile(f'["{d}\r\n]').search

    def rows(self, width: int, cells: Sequence[int]) -> re.Pattern[str]:
        """Build the pattern of a record of `width` fields with the groups clear, cell, ..., clear.

        Its last group takes what isn't such a record: another number of fields, the unfinished end
        of the block, or a line that isn't well formed. It always matches: nothing is passed over.
        """
        parts, before = [], 0
        for cell in cells:
            lead = self.delimiter if before else ""
            between = f"(?:{self.field}{self.delimiter}){{{cell - before}}}"
            parts.append(f"({lead}{between})({self.field})")
            before = cell + 1
        tail = f"((?:{self.delimiter}{self.field}){{{width - before}}}{_END})"
        other = f"(?!\\Z)({self.record.pattern}|{self.unfinished.pattern}|[^\n]*+(?:\n|\\Z))"
        return re.compile("".join(parts) + tail + "|" + other)

    def open_ended(self, text: str) -> bool:
        """Tell whether text is the beginning of a record, and not a whole one."""
        return not self.record.fullmatch(text) and self.unfinished.fullmatch(text) is not None

    def unquote(self, cell: str) -> str:
        """Return what a cell says."""
        if not self.quotes or cell[:1] != '"':
            return cell
        return cell[1:-1].replace('""', '"')

    def write(self, text: str) -> str:
        """Return a text as a cell, quoted only if it must be: old quotes tell of the old text."""
        if not self.quotes:
            return re.sub(r"[\t\r\n]", " ", text)
        if not text or self.needs_quotes(text):
            return '"' + text.replace('"', '""') + '"'
        return text


class TableReader(TextReader):
    """Reads records by the header's column names."""

    def __init__(
        self,
        format_: str,
        lines: Source,
        columns: Sequence[str],
        on_error: str,
        subject: str | None = None,
    ) -> None:
        super().__init__(format_, lines, columns, on_error, subject)
        self._tail = ""
        self._added_end = False
        self._read_header()

    def _read_header(self) -> None:
        text = self._lines.read(1)
        self._dialect = self._find_dialect(text)
        while not (found := self._dialect.record.match(text)):
            more = self._lines.read(max(1, len(text)))
            if not more or len(text) > LONGEST:
                break
            text += more
        if not text:
            self._header = ""
            return
        self._refuse_nul(text)
        found = found or self._dialect.record.match(text + "\n")
        if found is None:
            raise InputError(f"{self.source}: the header is not well formed {self.format}")
        self._header, self._tail = text[: found.end()], text[found.end() :]
        self._lines.line += self._header.count("\n")
        self._choose_columns(found[0])

    def _find_dialect(self, header: str) -> Dialect:
        if self.format != "csv":
            return Dialect("\t", quotes=self.format == "tsv")
        bare = re.sub(_QUOTED, "", header)
        return Dialect(next((d for d in ",;\t" if d in bare), ","), quotes=True)

    def _choose_columns(self, header: str) -> None:
        dialect = self._dialect
        fields = re.findall(f"({dialect.field})(?:{dialect.delimiter}|{_END})", header)
        names = [dialect.unquote(field) for field in fields]
        needed = self.needed()
        for column in needed:
            if column not in names:
                raise missing_column(self.source, column, names)
        self.passed = tuple(name for name in names if name not in self.columns)
        cells = [at for at, name in enumerate(names) if name in needed]
        self._several = len(cells) > 1
        self._width = len(names)
        if self.subject is not None:
            if names.count(self.subject) > 1:
                raise named_twice(self.source, self.subject)
            self._subject_at = 2 * cells.index(names.index(self.subject)) + 1
        self._rows = dialect.rows(len(names), cells)

    def resume(self, start: Position | None) -> None:
        """Go on at a position of an earlier run."""
        super().resume(start)
        if start is not None:
            self._tail = ""

    def head(self) -> bytes:
        """Return the byte order mark and the header."""
        return super().head() + self._encode(self._header)

    def batches(self, characters: int = 4_000_000) -> Iterator[Batch]:
        """Yield the records in order."""
        text, ended, wanted = self._tail, not self._header, characters
        while not ended:
            held = self._lines.size_of(text)
            # From the record on that begins the batch, as if the run had begun there.
            while wanted <= held:
                wanted *= 2
            more = self._lines.read(wanted - held)
            ended = not more
            text += more
            self._refuse_nul(text)
            if ended and text and not text.endswith("\n"):
                text, self._added_end = text + "\n", True
            rows, rest = self._parse(text, ended)
            subjects = None if self.subject is None else self._take_subjects(rows)
            self._lines.line += text.count("\n") - rest.count("\n")
            if rows:
                yield self._of_rows(rows, rest, subjects)
                wanted = characters
            text = rest

    def _of_rows(self, rows: list[tuple[str, ...]], rest: str, subjects: list[str] | None) -> Batch:
        cells = chain.from_iterable(row[1:-2:2] for row in rows)
        texts = [self._dialect.unquote(cell) for cell in cells if cell]
        records = len(rows) - sum(row[0] in _EMPTY for row in rows)
        sizes = None
        if self._several or len(texts) < records:
            sizes = uneven(sum(map(bool, row[1:-2:2])) for row in rows if row[0] not in _EMPTY)
        return self._batch(texts, records, (rows, self._added_end), rest, sizes, subjects)

    def _take_subjects(self, rows: list[tuple[str, ...]]) -> list[str]:
        """Return whom each record is about; its cell joins what is clear on both sides of it."""
        cell, subjects, kept = self._subject_at, [], []
        for at, row in enumerate(rows):
            if row[0] in _EMPTY:
                kept.append(row)
                continue
            subject = self._dialect.unquote(row[cell])
            if subject.strip():
                subjects.append(subject)
                clear = "".join(row[cell - 1 : cell + 2])
                kept.append((*row[: cell - 1], clear, *row[cell + 2 :]))
            elif not self._skips:
                raise no_subject(self.source, f"line {self._line(rows, at)}", str(self.subject))
            else:
                self._leave_out(rows, at)
        rows[:] = kept
        return subjects

    def _parse(self, text: str, ended: bool) -> tuple[list[tuple[str, ...]], str]:
        """Return the whole records of a block, and the unfinished one at its end."""
        rows: list[tuple[str, ...]] = self._rows.findall(text)
        if self.format == "tsv" and text.count("\n") > len(rows):
            self._refuse_merged(rows)
        others = [at for at, row in enumerate(rows) if row[-1]]
        if not others:
            return rows, ""
        rest = rows[-1][-1]
        if rest and not ended and self._dialect.open_ended(rest):
            if len(rest) > LONGEST:
                raise self._broken(rows, len(rows) - 1)
            rows.pop()
            others.pop()
        else:
            rest = ""
        fresh = [self._other(rows, at) for at in others]
        for at, row in zip(others, fresh, strict=True):
            rows[at] = row
        return [row for row in rows if row], rest

    def _refuse_merged(self, rows: list[tuple[str, ...]]) -> None:
        """Refuse a quoted record of several lines each of which would be a record by itself.

        Where quotes are ordinary characters, two stray ones would swallow the columns between them.
        """
        for at, row in enumerate(rows):
            lines = "".join(row[:-1]).split("\n")[:-1]
            if len(lines) > 1 and all(line.count("\t") == self._width - 1 for line in lines):
                raise self._problem(rows, at, "opens a quote that closes lines later")

    def _other(self, rows: list[tuple[str, ...]], at: int) -> tuple[str, ...]:
        """Give back an empty line as a record without texts; skip or refuse any other line."""
        if rows[at][-1] in _EMPTY:
            return (rows[at][-1], *[""] * (len(rows[at]) - 1))
        # What follows an unclosed quote may be many records, which one skip can't stand for.
        if not self._skips or (at == len(rows) - 1 and self._dialect.open_ended(rows[at][-1])):
            raise self._broken(rows, at)
        self._leave_out(rows, at)
        return ()

    def _leave_out(self, rows: list[tuple[str, ...]], at: int) -> None:
        """Count a record that is skipped, and whose line end goes with it."""
        self.skipped += 1
        if at == len(rows) - 1:
            self._added_end = False

    def _broken(self, rows: list[tuple[str, ...]], at: int) -> InputError:
        text = rows[at][-1]
        if self._dialect.record.fullmatch(text):
            problem = "has too many or too few fields"
        elif self._dialect.open_ended(text):
            problem = "opens a quote that is never closed"
        else:
            problem = "has text after a closing quote, or a bare carriage return"
        return self._problem(rows, at, problem)

    def _problem(self, rows: list[tuple[str, ...]], at: int, problem: str) -> InputError:
        line = self._line(rows, at)
        hint = "; if quotes are ordinary characters here, use --format tsv-plain"
        return InputError(
            f"{self.source}: line {line} {problem}" + (hint if self.format == "tsv" else "")
        )

    def _line(self, rows: list[tuple[str, ...]], at: int) -> int:
        return self._lines.line + sum("".join(row).count("\n") for row in rows[:at])

    def render(self, batch: Batch, texts: Sequence[str]) -> bytes:
        """Return the records with the new cells."""
        check_texts(batch, texts)
        rows, end_added = batch.frame
        fresh, write = iter(texts), self._dialect.write
        pieces: list[str] = []
        for row in rows:
            for clear, cell in zip(row[:-3:2], row[1:-2:2], strict=True):
                pieces += clear, write(next(fresh)) if cell else ""
            pieces.append(row[-2])
        text = "".join(pieces)
        return self._encode(text[:-1] if end_added else text)

    def _thin(self, frame: Any, kept: Sequence[bool]) -> Any:
        rows, end_added = frame
        record = iter(kept)
        stays = [row[0] in _EMPTY or next(record) for row in rows]
        return list(compress(rows, stays)), end_added and stays[-1]
