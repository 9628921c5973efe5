"""parquet: row groups, column types, compression and the other columns are kept; metadata isn't.

Key/value metadata of the schema and of its fields is free text that no certificate would name, so
none of it is written; pandas keeps a frame's index range and `attrs` there.

While a run goes on, the part file holds pieces (pieces.py). `finish` turns them into parquet, one
row group at a time. Where rows were left out, no dictionary of the output holds their values.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import compress, groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from deniable.errors import InputError
from deniable.files.arrow import (
    cast,
    forget,
    keep,
    like,
    names_subjects,
    text_type,
    without_metadata,
)
from deniable.files.pieces import pack, pieces
from deniable.files.reader import (
    Batch,
    Position,
    Reader,
    check_texts,
    missing_column,
    named_twice,
    no_subject,
    uneven,
)
from deniable.files.source import open_binary, regular_size

MOST_ROWS = 16_384  # dictionary-encoded sizes understate how much text a row holds


class ParquetReader(Reader):
    """Reads the chosen text columns of a parquet file."""

    format = "parquet"

    def __init__(
        self,
        path: str,
        columns: Sequence[str],
        start: Position | None,
        on_error: str = "stop",
        subject: str | None = None,
    ) -> None:
        if path == "-":
            raise InputError("stdin: parquet can't be read from a pipe; give a file")
        self.source, self.columns, self.subject = path, tuple(columns), subject
        self._skips = on_error == "skip"
        self._raw = open_binary(path)
        self.total_bytes = regular_size(self._raw)
        try:
            self._file = self._open()
            self._schema = without_metadata(self._file.schema_arrow)
            self._check_schema()
            self.check_start(start)
            self.skipped = int(start["skipped"]) if start else 0
        except BaseException:
            self._raw.close()
            raise

    def _open(self) -> pq.ParquetFile:
        try:
            return pq.ParquetFile(self._raw)
        except (pa.ArrowException, OSError):
            pass
        raise InputError(f"{self.source}: is not a whole parquet file")

    def _check_schema(self) -> None:
        names = self._schema.names
        for column in self.needed():
            if column not in names:
                raise missing_column(self.source, column, names)
            if names.count(column) > 1:
                raise named_twice(self.source, column)
            self._check_type(column)
        self.passed = tuple(name for name in names if name not in self.columns)

    def _check_type(self, column: str) -> None:
        kind = self._schema.field(column).type
        if column != self.subject and text_type(kind) is None:
            raise InputError(f"{self.source}: column {column!r} holds {kind}, not text")
        if column == self.subject and not names_subjects(kind):
            raise InputError(
                f"{self.source}: column {column!r} holds {kind}, and subjects are text or whole "
                "numbers; name another column with --subject-column"
            )

    def settings(self) -> Position:
        """Return the choices that a position depends on."""
        return {**super().settings(), "on_error": "skip" if self._skips else "stop"}

    def batches(self, characters: int = 4_000_000) -> Iterator[Batch]:
        """Yield the rows in order; a batch never crosses a row group."""
        start = self.start or {"row_group": 0, "row": 0}
        for group in range(start["row_group"], self._file.num_row_groups):
            first = start["row"] if group == start["row_group"] else 0
            yield from self._group(group, first, characters)

    def _group(self, group: int, first: int, characters: int) -> Iterator[Batch]:
        row = 0
        size = self._rows_at_once(group, characters)
        for rows in self._read(group, size):
            fresh = rows.slice(max(0, min(rows.num_rows, first - row)))
            row += rows.num_rows
            fresh, subjects = self._subjects(fresh, group, row)
            if fresh.num_rows:
                yield self._batch(fresh, group, row, subjects)

    def _read(self, group: int, size: int) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._file.iter_batches(batch_size=size, row_groups=[group])
        except (pa.ArrowException, OSError):
            pass
        else:
            return
        raise InputError(f"{self.source}: row group {group} is broken; write the file again")

    def _rows_at_once(self, group: int, characters: int) -> int:
        about = self._file.metadata.row_group(group)
        average = int(about.total_byte_size) // max(1, int(about.num_rows))
        return max(1, min(MOST_ROWS, characters // max(1, average)))

    def _subjects(
        self, rows: pa.RecordBatch, group: int, row: int
    ) -> tuple[pa.RecordBatch, list[str] | None]:
        """Return the rows, which end before `row` of a row group, and whom each is about."""
        if self.subject is None:
            return rows, None
        (values,) = self._cells(rows, group, (self.subject,))
        named = [value is not None and bool(str(value).strip()) for value in values]
        if not all(named):
            if not self._skips:
                at = self._row(group, row) - rows.num_rows + named.index(False)
                raise no_subject(self.source, f"row {at} (the first is 0)", self.subject)
            self.skipped += named.count(False)
            rows = keep(rows, self._schema, named)
        return rows, list(map(str, compress(values, named)))

    def _batch(
        self, rows: pa.RecordBatch, group: int, row: int, subjects: list[str] | None
    ) -> Batch:
        cells = self._cells(rows, group, self.columns)
        records = list(zip(*cells, strict=True))
        texts = [text for record in records for text in record if text is not None]
        sizes = [sum(text is not None for text in record) for record in records]
        place = {"row_group": group, "row": row, "skipped": self.skipped}
        position = {**self.settings(), **place}
        done = self._progress(group, row)
        frame = rows, cells
        return Batch(texts, rows.num_rows, done, position, frame, uneven(sizes), subjects)

    def _cells(self, rows: pa.RecordBatch, group: int, names: Sequence[str]) -> list[list[Any]]:
        try:
            return [rows.column(name).to_pylist() for name in names]
        except UnicodeDecodeError:
            pass
        # Raised outside the handler: the decoder's own error carries the cell.
        raise InputError(f"{self.source}: row group {group} has a cell that is not utf-8")

    def _row(self, group: int, row: int) -> int:
        """Return the number in the file of a row of a row group."""
        return sum(int(self._file.metadata.row_group(g).num_rows) for g in range(group)) + row

    def _progress(self, group: int, row: int) -> int:
        rows = max(1, int(self._file.metadata.num_rows))
        return (self.total_bytes or 0) * self._row(group, row) // rows

    def head(self) -> bytes:
        """Return nothing: the schema travels with each batch."""
        return b""

    def render(self, batch: Batch, texts: Sequence[str]) -> bytes:
        """Return the rows with the new texts as a piece of the part file."""
        check_texts(batch, texts)
        rows, old = batch.frame
        if not rows.num_rows:
            return b""
        new: list[list[str | None]] = [[] for _ in old]
        fresh = iter(texts)
        for record in zip(*old, strict=True):
            for column, text in zip(new, record, strict=True):
                column.append(None if text is None else next(fresh))
        return pack(int(batch.position["row_group"]), self._replace(rows, new))

    def _thin(self, frame: Any, kept: Sequence[bool]) -> Any:
        rows, cells = frame
        left = [list(compress(column, kept)) for column in cells]
        return keep(rows, self._schema, kept), left

    def _replace(self, rows: pa.RecordBatch, new: Sequence[list[str | None]]) -> pa.RecordBatch:
        schema, arrays = self._schema, list(rows.columns)
        for name, texts in zip(self.columns, new, strict=True):
            at = schema.get_field_index(name)
            kind = text_type(schema.field(at).type)
            arrays[at] = pa.array(texts, kind)
            schema = schema.set(at, pa.field(name, kind))
        arrays = [cast(array, field.type) for array, field in zip(arrays, schema, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def finish(self, part: Path, final: Path) -> bool:
        """Write the parquet file, with the row groups of the input."""
        about = self._file.metadata
        secret = os.open(final, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with (
            part.open("rb") as file,
            os.fdopen(secret, "wb") as out,
            pq.ParquetWriter(out, self._schema, compression=self._compression()) as writer,
        ):
            found = list(pieces(file))
            lost = sum(piece.rows for piece in found) < about.num_rows
            grouped = {group: list(of) for group, of in groupby(found, attrgetter("group"))}
            for group in range(about.num_row_groups):
                table = self._table([piece.read(file) for piece in grouped.get(group, ())], lost)
                # A row group that lost every row goes; one that had none is given back.
                if table.num_rows or not about.row_group(group).num_rows:
                    writer.write_table(table, row_group_size=max(1, table.num_rows))
        return True

    def _table(self, batches: Sequence[pa.Table], lost: bool) -> pa.Table:
        """Put one row group together, and give its columns the input's types."""
        if not batches:
            return self._schema.empty_table()
        table = pa.concat_tables(batches)
        columns = [like(c, f.type) for c, f in zip(table.columns, self._schema, strict=True)]
        if lost:
            columns = [forget(c, f) for c, f in zip(columns, self._schema, strict=True)]
        return pa.Table.from_arrays(columns, schema=self._schema)

    def _compression(self) -> str:
        about = self._file.metadata
        if not about.num_row_groups or not about.num_columns:
            return "snappy"
        codec = str(about.row_group(0).column(0).compression).lower()
        return "none" if codec == "uncompressed" else codec

    def close(self) -> None:
        """Close the input."""
        self._file.close()
        self._raw.close()
