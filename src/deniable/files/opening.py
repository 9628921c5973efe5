"""Finding the format of an input and opening its reader."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import Literal

from deniable.errors import InputError, ParameterError
from deniable.files.jsonl import JsonReader
from deniable.files.lines import LineReader
from deniable.files.parquet import ParquetReader
from deniable.files.reader import Position, Reader, shown_names
from deniable.files.source import Source, describe
from deniable.files.tables import TableReader
from deniable.files.textual import TextReader

FORMATS = ("txt", "csv", "tsv", "tsv-plain", "jsonl", "parquet")
_SUFFIXES = {"tab": "tsv", "ndjson": "jsonl", "pq": "parquet", "text": "txt"}


def format_of(path: str) -> str | None:
    """Return the format that a file's name says, None if it says nothing.

    >>> format_of("notes.csv.gz"), format_of("data.ndjson"), format_of("-")
    ('csv', 'jsonl', None)
    """
    suffix = PurePath(path.removesuffix(".gz")).suffix.lower().removeprefix(".")
    suffix = _SUFFIXES.get(suffix, suffix)
    return suffix if suffix in FORMATS else None


def open_reader(
    path: str,
    *,
    columns: Sequence[str] = (),
    format: str | None = None,  # noqa: A002
    encoding: str = "utf-8",
    on_error: Literal["stop", "skip"] = "stop",
    start: Position | None = None,
    subject: str | None = None,
) -> Reader:
    """Open an input; "-" is stdin. `start` is where a broken run stopped (`find_checkpoint`).

    `subject` names the column that says whom a record is about.
    """
    kind = format or format_of(path) or "txt"
    if kind not in FORMATS:
        raise ParameterError(f"unknown format {kind!r}; one of {', '.join(FORMATS)}")
    if on_error not in ("stop", "skip"):
        raise ParameterError(f"unknown on_error {on_error!r}; one of stop, skip")
    _check_columns(path, kind, columns, encoding)
    _check_subject(path, kind, columns, subject)
    if kind == "parquet":
        return ParquetReader(path, columns, start, on_error, subject)
    lines = Source(path, encoding, skip_broken=on_error == "skip" and kind in ("txt", "jsonl"))
    try:
        reader = _text_reader(kind, lines, columns, on_error, subject)
        reader.resume(start)
    except BaseException:
        lines.close()
        raise
    return reader


def _check_columns(path: str, kind: str, columns: Sequence[str], encoding: str) -> None:
    name = describe(path)
    if kind == "txt" and columns:
        raise InputError(f"{name}: a txt file has no columns; leave --column out, or say --format")
    if kind != "txt" and not columns:
        there = shown_names(_names(path, kind, encoding))
        raise InputError(f"{name}: say which column holds text, with --column NAME{there}")
    if len(set(columns)) < len(columns):
        raise InputError(f"{name}: a column is named twice; name it once")


def _check_subject(path: str, kind: str, columns: Sequence[str], subject: str | None) -> None:
    if subject is None:
        return
    if kind == "txt":
        raise InputError(
            f"{describe(path)}: a txt file has no column of subjects; name one subject for the "
            "whole file with --subject, or say --format"
        )
    if subject in columns:
        raise InputError(
            f"{describe(path)}: column {subject!r} can't be both the subject and a text to "
            "sanitize; name it once"
        )


def _names(path: str, kind: str, encoding: str) -> Sequence[str]:
    """Return the columns that the beginning of a file names; none of a pipe."""
    place = Path(path)
    if path == "-" or place.is_fifo() or place.is_char_device():
        return ()
    if kind == "parquet":
        with ParquetReader(path, (), None) as table:
            return table.passed
    # What is broken is told when the file is read in earnest.
    with _text_reader(kind, Source(path, encoding), (), "skip") as reader:
        if kind == "jsonl":
            next(reader.batches(1), None)
        return reader.passed


def _text_reader(
    kind: str, lines: Source, columns: Sequence[str], on_error: str, subject: str | None = None
) -> TextReader:
    if kind == "txt":
        return LineReader(kind, lines, columns, on_error)
    if kind == "jsonl":
        return JsonReader(lines, columns, on_error, subject)
    return TableReader(kind, lines, columns, on_error, subject)
