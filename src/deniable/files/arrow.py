"""Types and columns of Arrow, as the parquet reader needs them: plain, and free of what is gone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from deniable.errors import InputError

Leaf = Callable[[pa.DataType], pa.DataType]
Columnar = TypeVar("Columnar", pa.Array, pa.ChunkedArray)


def without_metadata(schema: pa.Schema) -> pa.Schema:
    """Return a schema without metadata, at any depth; extension types become what they hold.

    >>> inner = pa.struct([pa.field("b", pa.int8(), metadata={"by": "x"})])
    >>> plain = without_metadata(pa.schema([pa.field("a", inner)], metadata={"by": "y"}))
    >>> plain.metadata, plain.field("a").type.field("b").metadata
    (None, None)
    """
    return pa.schema([_field(field, _same) for field in schema])


def _same(kind: pa.DataType) -> pa.DataType:
    return kind


def _field(field: pa.Field, leaf: Leaf) -> pa.Field:
    return pa.field(field.name, _plain(field.type, leaf), nullable=field.nullable)


def _plain(kind: pa.DataType, leaf: Leaf) -> pa.DataType:
    """Build a type again without metadata, with `leaf` for each type that holds no others."""
    # The parameters of an extension type are metadata too, and may be free text.
    if isinstance(kind, pa.BaseExtensionType):
        return _plain(kind.storage_type, leaf)
    if pa.types.is_struct(kind):
        return pa.struct([_field(kind.field(n), leaf) for n in range(kind.num_fields)])
    if pa.types.is_map(kind):
        item = _field(kind.item_field, leaf)
        return pa.map_(_field(kind.key_field, leaf), item, kind.keys_sorted)
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_field(kind.value_field, leaf), kind.list_size)
    for name in ("list", "large_list", "list_view", "large_list_view"):
        # An older pyarrow has no views.
        if getattr(pa.types, f"is_{name}", pa.types.is_null)(kind) and kind.num_fields:
            make = pa.list_ if name == "list" else getattr(pa, name)
            return make(_field(kind.value_field, leaf))
    return leaf(kind)


def text_type(kind: pa.DataType) -> pa.DataType | None:
    """Return the plain type of a text column; None if it holds something else."""
    if pa.types.is_dictionary(kind):
        return text_type(kind.value_type)
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return kind if is_text or pa.types.is_string_view(kind) else None


def names_subjects(kind: pa.DataType) -> bool:
    """Tell whether a column of this type can say whom a record is about."""
    return text_type(kind) is not None or pa.types.is_integer(_value(kind))


def keep(rows: pa.RecordBatch, schema: pa.Schema, kept: Sequence[bool]) -> pa.RecordBatch:
    """Return the rows that are kept, in the types of `schema`.

    >>> rows = pa.RecordBatch.from_pydict({"name": ["Ann", "Bob"]})
    >>> keep(rows, rows.schema, [False, True]).to_pydict()
    {'name': ['Bob']}
    """
    mask = pa.array(kept, pa.bool_())
    arrays = []
    for array, field in zip(rows.columns, schema, strict=True):
        with _able(field):
            arrays.append(cast(cast(array, _plain(field.type, _solid)).filter(mask), field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


@contextmanager
def _able(field: pa.Field) -> Iterator[None]:
    """Say in one line what this pyarrow can't do yet."""
    try:
        yield
    except pa.ArrowNotImplementedError:
        pass
    else:
        return
    shown = f"column {field.name!r} holds {field.type}"
    raise InputError(f"{shown}, of which this pyarrow can't leave out a row; install a newer one")


def _solid(kind: pa.DataType) -> pa.DataType:
    """Return what a type of views shows: views can't be filtered."""
    for name in ("string", "binary"):
        if getattr(pa.types, f"is_{name}_view", pa.types.is_null)(kind):
            return getattr(pa, f"large_{name}")()
    return kind


def cast(array: Columnar, kind: pa.DataType) -> Columnar:
    """Return an array or a column in a type."""
    return array if array.type == kind else array.cast(kind)


def forget(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    """Return a column whose dictionaries hold no value but those of its rows, in the old order.

    >>> names = pa.chunked_array([pa.array(["Ann", "Cy", "Bob"]).dictionary_encode()]).slice(1)
    >>> forget(names, pa.field("name", names.type)).chunk(0).dictionary.to_pylist()
    ['Cy', 'Bob']
    """
    kind = field.type
    with _able(field):
        if not pa.types.is_dictionary(kind):
            return cast(cast(column, _plain(kind, _value)), kind)
        whole = column.unify_dictionaries().combine_chunks()
        places = pa.array(range(len(whole.dictionary)), pa.int64())
        used = pc.is_in(places, pc.unique(whole.indices).cast(pa.int64()))
        values = whole.dictionary.filter(used)
        indices = pc.index_in(whole.cast(kind.value_type), values).cast(kind.index_type)
        fresh = pa.DictionaryArray.from_arrays(indices, values, ordered=kind.ordered)
    return pa.chunked_array([fresh], kind)


def _value(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def like(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Return a column in a type; dictionaries are built again, one for the whole column."""
    if column.type == kind:
        return column.unify_dictionaries() if pa.types.is_dictionary(kind) else column
    return column.dictionary_encode().cast(kind)
