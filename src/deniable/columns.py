"""Columns of pandas and pyarrow: sanitized text in the same shape, nulls left null."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deniable.errors import ParameterError

if TYPE_CHECKING:
    from deniable.sanitizer import Sanitizer


def sanitize_column(sanitizer: Sanitizer, column: Any) -> Any:
    """Sanitize a pandas Series, or a pyarrow Array or ChunkedArray."""
    if isinstance(column, pa.ChunkedArray):
        chunks = [_array(sanitizer, chunk) for chunk in column.chunks]
        return pa.chunked_array(chunks, type=pa.large_string() if not chunks else None)
    if isinstance(column, pa.Array):
        return _array(sanitizer, column)
    if type(column).__module__.partition(".")[0] == "pandas" and type(column).__name__ == "Series":
        missing = column.isna().tolist()
        values = _around_nulls(sanitizer, column.tolist(), missing)
        # A categorical type holds the texts themselves, and must not be carried over.
        kind = "object" if str(column.dtype) == "category" else column.dtype
        return type(column)(values, index=column.index, name=column.name, dtype=kind)
    raise ParameterError(
        "a column is one pandas Series or one pyarrow Array (for a table, give its columns one by "
        f"one), got {type(column).__name__}"
    )


def _array(sanitizer: Sanitizer, column: pa.Array) -> pa.Array:
    values = column.to_pylist()
    found = _around_nulls(sanitizer, values, [value is None for value in values])
    return pa.array(found, type=pa.large_string())


def _around_nulls(
    sanitizer: Sanitizer, values: Sequence[Any], missing: Sequence[bool]
) -> list[Any]:
    texts = [value for value, gone in zip(values, missing, strict=True) if not gone]
    sanitized = iter(sanitizer.sanitize_texts(texts)[0])
    return [value if gone else next(sanitized) for value, gone in zip(values, missing, strict=True)]
