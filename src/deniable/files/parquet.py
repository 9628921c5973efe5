"""parquet: row groups, column types, compression and the other columns are kept; metadata isn't.

Key/value metadata of the schema and of its fields is free text that no certificate would name, so
none of it is written; pandas keeps a frame's index range and `attrs` there.

While a run goes on, each batch lies in the part file as Arrow IPC bytes behind its length, because
a parquet file can't be cut off and continued. `finish` turns them into parquet, one row group at a
time.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from deniable.errors import InputError
from deniable.files.reader import Batch, Position, Reader, check_texts, missing_column
from deniable.files.source import open_binary, regular_size

MOST_ROWS = 16_384  # dictionary-encoded sizes understate how much text a row holds


class ParquetReader(Reader):
    """Reads the chosen text columns of a parquet file."""

    format = "parquet"

    def __init__(self, path: str, columns: Sequence[str], start: Position | None) -> None:
        if path == "-":
            raise InputError("stdin: parquet can't be read from a pipe; give a file")
        self.source, self.columns = path, tuple(columns)
        self._raw = open_binary(path)
        self.total_bytes = regular_size(self._raw)
        try:
            self._file = self._open()
            self._schema = without_metadata(self._file.schema_arrow)
            self._check_schema()
            self.check_start(start)
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
        for column in self.columns:
            if column not in names:
                raise missing_column(self.source, column, names)
            if names.count(column) > 1:
                raise InputError(f"{self.source}: two columns are called {column!r}; rename one")
            kind = text_type(self._schema.field(column).type)
            if kind is None:
                shown = self._schema.field(column).type
                raise InputError(f"{self.source}: column {column!r} holds {shown}, not text")
        self.passed = tuple(name for name in names if name not in self.columns)

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
            if fresh.num_rows:
                yield self._batch(fresh, group, row)

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

    def _batch(self, rows: pa.RecordBatch, group: int, row: int) -> Batch:
        cells = self._cells(rows, group)
        records = list(zip(*cells, strict=True))
        texts = [text for record in records for text in record if text is not None]
        sizes = [sum(text is not None for text in record) for record in records]
        position = {**self.settings(), "row_group": group, "row": row}
        done = self._progress(group, row)
        return Batch(texts, rows.num_rows, done, position, (rows, cells), cells=sizes)

    def _cells(self, rows: pa.RecordBatch, group: int) -> list[list[str | None]]:
        try:
            return [rows.column(name).to_pylist() for name in self.columns]
        except UnicodeDecodeError:
            pass
        # Raised outside the handler: the decoder's own error carries the cell.
        raise InputError(f"{self.source}: row group {group} has a cell that is not utf-8")

    def _progress(self, group: int, row: int) -> int:
        about = self._file.metadata
        done = sum(about.row_group(g).num_rows for g in range(group)) + row
        return (self.total_bytes or 0) * int(done) // max(1, int(about.num_rows))

    def head(self) -> bytes:
        """Return nothing: the schema travels with each batch."""
        return b""

    def render(self, batch: Batch, texts: Sequence[str]) -> bytes:
        """Return the rows with the new texts as Arrow IPC bytes behind their length."""
        check_texts(batch, texts)
        rows, old = batch.frame
        new: list[list[str | None]] = [[] for _ in old]
        fresh = iter(texts)
        for record in zip(*old, strict=True):
            for column, text in zip(new, record, strict=True):
                column.append(None if text is None else next(fresh))
        sink = pa.BufferOutputStream()
        rows = self._replace(rows, new)
        with pa.ipc.new_stream(sink, rows.schema) as stream:
            stream.write_batch(rows)
        data: bytes = sink.getvalue().to_pybytes()
        return len(data).to_bytes(8, "little") + data

    def _replace(self, rows: pa.RecordBatch, new: Sequence[list[str | None]]) -> pa.RecordBatch:
        schema, arrays = self._schema, list(rows.columns)
        for name, texts in zip(self.columns, new, strict=True):
            at = schema.get_field_index(name)
            kind = text_type(schema.field(at).type)
            arrays[at] = pa.array(texts, kind)
            schema = schema.set(at, pa.field(name, kind))
        arrays = [
            array if array.type == field.type else array.cast(field.type)
            for array, field in zip(arrays, schema, strict=True)
        ]
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
            for group in range(about.num_row_groups):
                table = self._table(file, about.row_group(group).num_rows)
                writer.write_table(table, row_group_size=max(1, table.num_rows))
        return True

    def _table(self, file: io.BufferedReader, rows: int) -> pa.Table:
        """Read one row group back, and give its columns the input's types."""
        batches: list[pa.Table] = []
        while rows > 0:
            data = file.read(int.from_bytes(file.read(8), "little"))
            batches.append(pa.ipc.open_stream(data).read_all())
            rows -= batches[-1].num_rows
        if not batches:
            return self._schema.empty_table()
        table = pa.concat_tables(batches)
        columns = [like(c, f.type) for c, f in zip(table.columns, self._schema, strict=True)]
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


def without_metadata(schema: pa.Schema) -> pa.Schema:
    """Return a schema without metadata, at any depth; extension types become what they hold.

    >>> inner = pa.struct([pa.field("b", pa.int8(), metadata={"by": "x"})])
    >>> plain = without_metadata(pa.schema([pa.field("a", inner)], metadata={"by": "y"}))
    >>> plain.metadata, plain.field("a").type.field("b").metadata
    (None, None)
    """
    return pa.schema([_plain_field(field) for field in schema])


def _plain_field(field: pa.Field) -> pa.Field:
    return pa.field(field.name, _plain(field.type), nullable=field.nullable)


def _plain(kind: pa.DataType) -> pa.DataType:
    # The parameters of an extension type are metadata too, and may be free text.
    if isinstance(kind, pa.BaseExtensionType):
        return _plain(kind.storage_type)
    if pa.types.is_struct(kind):
        return pa.struct([_plain_field(kind.field(n)) for n in range(kind.num_fields)])
    if pa.types.is_map(kind):
        return pa.map_(
            _plain_field(kind.key_field), _plain_field(kind.item_field), kind.keys_sorted
        )
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_plain_field(kind.value_field), kind.list_size)
    for name in ("list", "large_list", "list_view", "large_list_view"):
        # An older pyarrow has no views.
        if getattr(pa.types, f"is_{name}", pa.types.is_null)(kind) and kind.num_fields:
            make = pa.list_ if name == "list" else getattr(pa, name)
            return make(_plain_field(kind.value_field))
    return kind


def text_type(kind: pa.DataType) -> pa.DataType | None:
    """Return the plain type of a text column; None if it holds something else."""
    if pa.types.is_dictionary(kind):
        return text_type(kind.value_type)
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return kind if is_text or pa.types.is_string_view(kind) else None


def like(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Return a column in a type; dictionaries are built again, one for the whole column."""
    if column.type == kind:
        return column.unify_dictionaries() if pa.types.is_dictionary(kind) else column
    return column.dictionary_encode().cast(kind)
