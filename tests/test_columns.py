"""Columns of pandas and pyarrow keep their shape, their nulls, their index and their name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import toys
from deniable import Sanitizer
from deniable.errors import ParameterError

TEXTS: list[Any] = ["The red w5.", None, "", "blue\nof 17", "and"]


@pytest.fixture
def sanitizer() -> Sanitizer:
    return Sanitizer("santext", 1.0, space=toys.space("random"))


def shaped_alike(found: list[Any]) -> None:
    assert found[1] is None
    assert found[2] == ""
    assert found[0].count(" ") == 2
    assert found[0].endswith(".")
    assert found[3].count("\n") == 1
    assert found[3][-2:].isdigit()


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_arrow_arrays(sanitizer: Sanitizer, kind: Any) -> None:
    column = pa.array(TEXTS, kind)
    found = sanitizer.sanitize_column(column)
    shaped_alike(found.to_pylist())
    assert found.null_count == column.null_count
    assert len(sanitizer.sanitize_column(pa.array([], kind))) == 0


def test_arrow_chunks(sanitizer: Sanitizer) -> None:
    column = pa.chunked_array([TEXTS[:2], [], TEXTS[2:]], type=pa.string())
    found = sanitizer.sanitize_column(column)
    assert [len(chunk) for chunk in found.chunks] == [2, 0, 3]
    shaped_alike(found.to_pylist())
    assert len(sanitizer.sanitize_column(pa.chunked_array([], type=pa.string()))) == 0


@pytest.mark.parametrize("dtype", ["object", "string"])
def test_pandas_series(sanitizer: Sanitizer, dtype: str) -> None:
    column = pd.Series(TEXTS, index=[9, 3, 3, 1, 0], name="note", dtype=dtype)
    found = sanitizer.sanitize_column(column)
    assert found.index.tolist() == [9, 3, 3, 1, 0]
    assert found.name == "note"
    assert found.dtype == column.dtype
    assert found.isna().tolist() == column.isna().tolist()
    shaped_alike([None if value is pd.NA else value for value in found.tolist()])


@pytest.mark.parametrize("column", [TEXTS, np.array(["a"]), "text", {"a": 1}, None, 5])
def test_anything_else_is_refused(sanitizer: Sanitizer, column: Any) -> None:
    with pytest.raises(ParameterError, match="a column is one pandas Series or one pyarrow Array"):
        sanitizer.sanitize_column(column)


def test_a_column_of_numbers_is_refused(sanitizer: Sanitizer) -> None:
    for column in (pa.array([1, 2]), pd.Series([1, 2])):
        with pytest.raises(ParameterError, match="a text must be a string, got int"):
            sanitizer.sanitize_column(column)


def test_a_category_carries_no_text_over(sanitizer: Sanitizer) -> None:
    column = pd.Series(["canary one", "two"], dtype="category")
    found = sanitizer.sanitize_column(column)
    assert "canary" not in repr(found.dtype) + " ".join(found.tolist())
    assert [text.count(" ") for text in found] == [1, 0]


def test_a_table_is_refused(sanitizer: Sanitizer) -> None:
    with pytest.raises(ParameterError, match="columns one by one"):
        sanitizer.sanitize_column(pd.DataFrame({"a": ["x"]}))
