"""Rows in a part file: each batch as Arrow IPC bytes, behind its row group, its rows and its size.

A parquet file can't be cut off and continued; such a file can.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import IO, NamedTuple

import pyarrow as pa

_HEAD = struct.Struct("<QQQ")


class Piece(NamedTuple):
    """Where a batch lies."""

    group: int
    rows: int
    size: int
    at: int

    def read(self, file: IO[bytes]) -> pa.Table:
        """Read the batch back."""
        file.seek(self.at)
        return pa.ipc.open_stream(file.read(self.size)).read_all()


def pack(group: int, rows: pa.RecordBatch) -> bytes:
    """Return a batch of a row group as it lies in the part file."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_batch(rows)
    data: bytes = sink.getvalue().to_pybytes()
    return _HEAD.pack(group, rows.num_rows, len(data)) + data


def pieces(file: IO[bytes]) -> Iterator[Piece]:
    """Yield where the batches of a part file lie."""
    while head := file.read(_HEAD.size):
        group, rows, size = _HEAD.unpack(head)
        piece = Piece(group, rows, size, file.tell())
        yield piece
        file.seek(piece.at + piece.size, os.SEEK_SET)
