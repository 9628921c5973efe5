"""Columns in, columns out: what isn't sanitized comes back as it was."""

from __future__ import annotations

import base64
import csv
import gzip
import io
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deniable.errors import InputError
from deniable.files import Reader, open_reader, open_writer

# Files are written here: how long an example takes says something about the machine only.
calm = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def same(text: str) -> str:
    return text


def shout(text: str) -> str:
    """Stand in for a sanitizer: every record changes, and what changed can be foretold."""
    return f"<{text}>"


def copy(
    source: Path,
    target: Path,
    change: Callable[[str], str] = same,
    *,
    columns: Sequence[str] = (),
    characters: int = 40,
    format: str | None = None,  # noqa: A002
    encoding: str = "utf-8",
    on_error: Literal["stop", "skip"] = "stop",
) -> Reader:
    reader = open_reader(
        str(source), columns=columns, format=format, encoding=encoding, on_error=on_error
    )
    with open_writer(str(target), reader) as writer:
        for batch in reader.batches(characters):
            writer.write(batch, [change(text) for text in batch.texts], {})
        writer.commit()
    return reader


def through(data: bytes, name: str, change: Callable[[str], str] = same, **options: Any) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, name), Path(folder, "out-" + name)
        source.write_bytes(data)
        copy(source, target, change, **options)
        assert sorted(Path(folder).iterdir()) == sorted([source, target])
        return target.read_bytes()


PLAIN = st.characters(codec="utf-8", exclude_characters="\0")
TRICKY = st.sampled_from("\n\r\t \x0b\x0c\x1c\x85\u2028\u2029,;\"'\\\ufeffaé漢😀")
TEXT = st.text(TRICKY | PLAIN, max_size=30)


# txt


@calm
@given(text=st.text(TRICKY | PLAIN, max_size=200), characters=st.integers(1, 60))
def test_txt_comes_back_byte_by_byte(text: str, characters: int) -> None:
    data = text.encode()
    assert through(data, "a.txt", characters=characters) == data


@calm
@given(
    records=st.lists(st.text(TRICKY | PLAIN, max_size=20)),
    end=st.sampled_from(["\n", "\r\n"]),
    last=st.booleans(),
    characters=st.integers(1, 60),
)
def test_only_a_newline_ends_a_txt_record(
    records: list[str], end: str, last: bool, characters: int
) -> None:
    records = [record.replace("\n", " ").rstrip("\r") for record in records]
    if records and not last and not records[-1]:
        records[-1] = "x"
    data = (end.join(records) + (end if last and records else "")).lstrip("\ufeff").encode()
    wanted = end.join(map(shout, records)) + (end if last and records else "")
    if not records or records[0].startswith("\ufeff"):
        return
    assert through(data, "a.txt", shout, characters=characters) == wanted.encode()


def test_mixed_line_ends_stay_with_their_lines() -> None:
    assert through(b"a\r\nb\nc\rd\r\n\ne", "a.txt", shout) == b"<a>\r\n<b>\n<c\rd>\r\n<>\n<e>"


def test_a_newline_in_a_sanitized_text_does_not_shift_the_records() -> None:
    assert through(b"a\nb\n", "a.txt", lambda text: text + "\n!") == b"a !\nb !\n"


@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "UTF8"])
def test_a_byte_order_mark_is_no_text_and_comes_back(bom: bytes, encoding: str) -> None:
    assert through(bom + b"a\nb", "a.txt", shout, encoding=encoding) == bom + b"<a>\n<b>"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1"])
@calm
@given(text=st.text(st.characters(max_codepoint=255, exclude_characters="\0"), max_size=60))
def test_other_encodings_come_back_byte_by_byte(encoding: str, text: str) -> None:
    data = text.encode(encoding)
    assert through(data, "a.txt", encoding=encoding, characters=7) == data


def test_a_newline_byte_inside_a_utf16_character_ends_nothing() -> None:
    text = "ਊ\u0a0a਀Ċ\nb"  # their code units hold the byte 0A
    for encoding in ("utf-16-le", "utf-16-be"):
        wanted = "<ਊ\u0a0a਀Ċ>\n<b>".encode(encoding)
        got = through(text.encode(encoding), "a.txt", shout, encoding=encoding, characters=1)
        assert got == wanted


# csv and tsv


def table(rows: list[list[str]], **options: Any) -> bytes:
    out = io.StringIO()
    csv.writer(out, **options).writerows([["id", "note", "more"], *rows])
    return out.getvalue().encode()


def rows_of(data: bytes, delimiter: str = ",") -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode(), newline=""), delimiter=delimiter))


ROWS = st.lists(st.lists(TEXT, min_size=3, max_size=3), max_size=8)


@calm
@given(
    rows=ROWS,
    end=st.sampled_from(["\n", "\r\n"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    delimiter=st.sampled_from([",", ";", "\t"]),
    characters=st.integers(1, 80),
    cut=st.booleans(),
)
def test_csv_changes_the_chosen_cells_and_nothing_else(
    rows: list[list[str]], end: str, quoting: int, delimiter: str, characters: int, cut: bool
) -> None:
    if not quoting and end == "\n":  # Python's own writer forgets to quote a carriage return then
        rows = [[cell.replace("\r", "") for cell in row] for row in rows]
    data = table(rows, lineterminator=end, quoting=quoting, delimiter=delimiter)
    data = data.removesuffix(end.encode()) if cut else data
    options: dict[str, Any] = {"columns": ["more", "id"], "characters": characters}
    alike = through(data, "a.csv", **options)
    assert rows_of(alike, delimiter) == rows_of(data, delimiter)
    assert quoting != csv.QUOTE_MINIMAL or alike == data
    got = rows_of(through(data, "a.csv", shout, **options), delimiter)
    # An empty cell without quotes is csv's null, and stays one.
    wanted = [
        [shout(a) if a or quoting else a, b, shout(c) if c or quoting else c] for a, b, c in rows
    ]
    assert got[1:] == wanted


@calm
@given(rows=ROWS, characters=st.integers(1, 80))
def test_tsv_changes_the_chosen_cells_and_nothing_else(
    rows: list[list[str]], characters: int
) -> None:
    rows = [[cell.replace("\t", " ") for cell in row] for row in rows]
    data = table(rows, delimiter="\t")
    assert through(data, "a.tsv", columns=["note"], characters=characters) == data
    got = rows_of(through(data, "a.tsv", shout, columns=["note"], characters=characters), "\t")
    assert got[1:] == [[a, shout(b) if b else b, c] for a, b, c in rows]


def test_columns_are_named_and_the_rest_is_listed_as_passed(tmp_path: Path) -> None:
    source = tmp_path / "a.csv"
    source.write_bytes(table([["1", "x", "y"]]))
    with open_reader(str(source), columns=["note"]) as reader:
        assert (reader.format, reader.columns, reader.passed) == ("csv", ("note",), ("id", "more"))
        assert reader.total_bytes == source.stat().st_size
        (batch,) = reader.batches()
    assert batch.texts == ["x"]
    assert batch.records == 1


def test_a_column_that_stands_twice_is_sanitized_twice() -> None:
    assert through(b"a,b,a\n1,2,3\n", "x.csv", shout, columns=["a"]) == b"a,b,a\n<1>,2,<3>\n"


def test_empty_lines_of_a_table_stay_and_are_no_records() -> None:
    data = b"a,b\n\n1,2\n\r\n\n"
    assert through(data, "x.csv", shout, columns=["b"]) == b"a,b\n\n1,<2>\n\r\n\n"


def test_a_cell_is_quoted_when_its_new_text_needs_it() -> None:
    got = through(b'a,b\n1,2\n"3",4\n', "x.csv", lambda _: 'p,"q"\n', columns=["a"])
    assert rows_of(got) == [["a", "b"], ['p,"q"\n', "2"], ['p,"q"\n', "4"]]


def test_quotes_are_ordinary_characters_in_tsv_plain() -> None:
    data = b'a\tb\n"x\ty\nz" w\t"\n'
    got = through(data, "x.tsv", lambda t: t + "\t\n!", columns=["a"], format="tsv-plain")
    assert got == b'a\tb\n"x  !\ty\nz" w  !\t"\n'


def test_a_quoted_newline_longer_than_a_block_is_one_cell() -> None:
    data = b'a,b\n"' + b"line\n" * 500 + b'",2\n'
    assert through(data, "x.csv", lambda t: str(t.count("\n")), columns=["a"]) == b"a,b\n500,2\n"


# jsonl

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)
OBJECTS = st.lists(
    st.builds(
        lambda front, text, back: {**front, "note": text, **back},
        st.dictionaries(st.text(max_size=4), JSON, max_size=3),
        st.none() | st.text(st.characters() | TRICKY),
        st.dictionaries(st.text(max_size=4), JSON, max_size=3),
    ),
    max_size=5,
)


@calm
@given(objects=OBJECTS, end=st.sampled_from(["\n", "\r\n", "\n\n"]), characters=st.integers(1, 80))
def test_jsonl_changes_the_chosen_strings_and_nothing_else(
    objects: list[dict[str, Any]], end: str, characters: int
) -> None:
    data = "".join(json.dumps(thing) + end for thing in objects).encode()
    options: dict[str, Any] = {"columns": ["note"], "characters": characters}
    alike = through(data, "a.jsonl", **options)
    assert [json.loads(line or "0") for line in alike.split(b"\n")] == [
        json.loads(line or "0") for line in data.split(b"\n")
    ]
    got = through(data, "a.jsonl", shout, **options).split(b"\n")
    wanted = [
        {key: shout(v) if key == "note" and v is not None else v for key, v in thing.items()}
        for thing in objects
    ]
    read = [json.loads(line) for line in got if line.strip()]
    assert read == wanted
    assert [list(thing) for thing in read] == [list(thing) for thing in wanted]


def test_jsonl_numbers_and_spelling_are_untouched() -> None:
    line = '{ "n":1.10, "big": 12345678901234567890123, "e":1E5, "\\u006eote" : "é" ,"z":"\\/"}\n'
    got = through(line.encode(), "a.jsonl", shout, columns=["note"])
    assert got == line.replace('"é"', '"<é>"').encode()


def test_how_a_cell_is_spelt_tells_nothing_of_the_old_text() -> None:
    for spelt in (b'{"t":"\\u00e9"}', '{"t":"é"}'.encode()):
        assert through(spelt, "a.jsonl", columns=["t"]) == '{"t":"é"}'.encode()
    for spelt in (b'a,b\n"x",2\n', b"a,b\nx,2\n"):
        assert through(spelt, "x.csv", columns=["a"]) == b"a,b\nx,2\n"


KEYS = st.sampled_from(
    ["note", "other", "n", '"note', 'note"', '"note"', "", "note\\", "\u006eote"]
)
STRINGS = st.sampled_from(["note", '"note"', '"note": "x"', "\\", 'say "hi"', "", "é", "\ud800"])
PAIRS = st.lists(
    st.tuples(
        st.one_of(
            KEYS.map(json.dumps),
            st.just('"n\\u006fte"'),
        ),
        st.one_of(
            STRINGS.map(json.dumps),
            STRINGS.map(lambda text: json.dumps({"note": text})),
            st.sampled_from(["null", "1", '["note", "x"]', '{"other": {"note": "y"}}']),
        ),
    ),
    max_size=5,
)


@calm
@given(
    records=st.lists(PAIRS, min_size=1, max_size=4),
    space=st.sampled_from(["", " ", "\t"]),
    columns=st.sampled_from([("note",), ("other", "note"), ("other.note",)]),
)
def test_jsonl_finds_every_spelling_of_a_key(
    records: list[list[tuple[str, str]]], space: str, columns: tuple[str, ...]
) -> None:
    seen = ", ".join(f"{json.dumps(name)}: null" for name in columns)
    lines = [f"{{{seen}}}"]  # so that no column is missing
    for pairs in records:
        inner = f",{space}".join(f"{key}{space}:{space}{value}" for key, value in pairs)
        lines.append(f"{{{space}{inner}}}{space}")

    def change(pairs: list[tuple[str, Any]], prefix: str = "") -> list[tuple[str, Any]]:
        new: list[tuple[str, Any]] = []
        for key, value in pairs:
            name = prefix + key
            if name in columns and isinstance(value, str):
                new.append((key, shout(value)))
            elif name == columns[0].partition(".")[0] != columns[0] and isinstance(value, list):
                deeper = all(isinstance(item, tuple) for item in value)
                new.append((key, change(value, name + ".") if deeper else value))
            else:
                new.append((key, value))
        return new

    old = [json.loads(line, object_pairs_hook=list) for line in lines]
    good = [
        line
        for line, pairs in zip(lines, old, strict=True)
        if all(key not in columns or isinstance(value, str | None) for key, value in pairs)
    ]
    got = through("\n".join(good).encode(), "a.jsonl", shout, columns=columns).decode()
    wanted = [change(json.loads(line, object_pairs_hook=list)) for line in good]
    assert [json.loads(line, object_pairs_hook=list) for line in got.split("\n")] == wanted


def test_jsonl_keys_that_stand_twice_are_sanitized_twice() -> None:
    data = b'{"t":"a","t":"b"}\n'
    assert through(data, "a.jsonl", shout, columns=["t"]) == b'{"t":"<a>","t":"<b>"}\n'


def test_jsonl_nested_columns_and_what_passes(tmp_path: Path) -> None:
    source, target = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    source.write_text('{"a":{"t":"x","k":1},"b":2}\n{"a":null,"c":"new"}\n{"a.t":"y"}\n')
    reader = copy(source, target, shout, columns=["a.t"])
    assert target.read_text() == (
        '{"a":{"t":"<x>","k":1},"b":2}\n{"a":null,"c":"new"}\n{"a.t":"<y>"}\n'
    )
    assert set(reader.passed) == {"a", "a.k", "b", "c"}


# parquet

CELL = st.none() | st.text(max_size=10)


@calm
@given(
    cells=st.lists(CELL, max_size=40),
    kind=st.sampled_from([pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())]),
    group=st.integers(1, 20),
    characters=st.integers(1, 2000),
)
def test_parquet_changes_the_chosen_cells_and_nothing_else(
    cells: list[str | None], kind: pa.DataType, group: int, characters: int
) -> None:
    count = len(cells)
    content = pa.table(
        {
            "id": pa.array(range(count), pa.int16()),
            "t": pa.array(cells, pa.string()).cast(kind),
            "group": pa.array(["g"] * count, pa.string()).dictionary_encode(),
            "deep": pa.array(
                [{"a": [n]} for n in range(count)], pa.struct({"a": pa.list_(pa.int8())})
            ),
        }
    ).replace_schema_metadata({"made by": "a test"})
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "a.parquet"), Path(folder, "b.parquet")
        pq.write_table(content, source, row_group_size=group, compression="zstd")
        reader = copy(source, target, shout, columns=["t"], characters=characters)
        assert reader.passed == ("id", "group", "deep")
        assert sorted(Path(folder).iterdir()) == [source, target]
        old, new = pq.read_table(source), pq.read_table(target)
        about = [pq.ParquetFile(path).metadata for path in (source, target)]
    assert new.schema.equals(old.schema)
    assert new.column("t").to_pylist() == [c if c is None else shout(c) for c in cells]
    assert new.drop_columns(["t"]).equals(old.drop_columns(["t"]))
    sizes = [[a.row_group(g).num_rows for g in range(a.num_row_groups)] for a in about]
    assert sizes[0] == sizes[1]
    if count:
        assert about[1].row_group(0).column(0).compression == "ZSTD"


def test_a_dictionary_of_the_output_holds_no_word_of_the_input(tmp_path: Path) -> None:
    source, target = tmp_path / "a.parquet", tmp_path / "b.parquet"
    secret = pa.array(["canary", None, "canary"]).dictionary_encode()
    pq.write_table(pa.table({"t": secret}), source)
    copy(source, target, lambda _: "bird", columns=["t"])
    assert b"canary" in source.read_bytes()
    assert b"canary" not in target.read_bytes()


def noted(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, metadata={"canary": "canary"})


def everything_in(path: Path) -> bytes:
    """The bytes of a parquet file, with the Arrow schema that it holds in base64 unpacked."""
    held = pq.ParquetFile(path).metadata.metadata or {}
    return path.read_bytes() + base64.b64decode(held[b"ARROW:schema"])


LISTS = [pa.list_, pa.large_list, pa.list_view, pa.large_list_view, lambda of: pa.list_(of, 2)]


@pytest.mark.parametrize("of", LISTS)
def test_no_parquet_metadata_reaches_the_output(
    tmp_path: Path, of: Callable[[pa.Field], pa.DataType]
) -> None:
    key = pa.field("key", pa.string(), nullable=False, metadata={"canary": "canary"})
    kinds = {
        "t": pa.string(),
        "list": of(noted("e", pa.int8())),
        "deep": pa.struct([noted("a", of(noted("e", pa.int8())))]),
        "map": pa.map_(key, noted("value", pa.int8())),
        "label": pa.opaque(pa.int8(), "canary", "canary"),
    }
    schema = pa.schema([noted(*pair) for pair in kinds.items()], metadata={"canary": "canary"})
    rows = {"t": ["x"], "list": [[1, 2]], "deep": [{"a": [3, 4]}], "map": [[("k", 5)]]}
    columns = [pa.array(rows[name], kinds[name]) for name in rows]
    label = pa.ExtensionArray.from_storage(kinds["label"], pa.array([6], pa.int8()))
    content = pa.Table.from_arrays([*columns, label], schema=schema)
    source, target = tmp_path / "a.parquet", tmp_path / "b.parquet"
    pq.write_table(content, source)
    assert everything_in(source).count(b"canary") > 10
    reader = open_reader(str(source), columns=["t"])
    with open_writer(str(target), reader) as writer:
        for batch in reader.batches():
            writer.write(batch, ["y"], {})
        assert b"canary" not in (tmp_path / ".b.parquet.deniable-part").read_bytes()
        writer.commit()
    assert b"canary" not in everything_in(target)
    changed = {"t": "y", "label": 6}
    assert pq.read_table(target).to_pylist() == [{k: v[0] for k, v in rows.items()} | changed]


def test_what_pandas_notes_in_a_parquet_file_is_dropped(tmp_path: Path) -> None:
    source, target = tmp_path / "a.parquet", tmp_path / "b.parquet"
    frame = pd.DataFrame({"t": ["x", "y"]}, index=pd.Index([7, 8], name="who"))
    frame.attrs["canary"] = "canary"
    frame.to_parquet(source)
    assert b"canary" in source.read_bytes()
    reader = copy(source, target, shout, columns=["t"])
    assert reader.passed == ("who",)
    assert b"canary" not in everything_in(target)
    found = pd.read_parquet(target)
    assert found.to_dict("list") == {"t": ["<x>", "<y>"], "who": [7, 8]}
    assert not found.attrs


# gzip, stdin, stdout, empty files


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.tsv", "a.jsonl"])
def test_gzip_in_and_out(name: str) -> None:
    data = b'{"t":"x"}\n' * 50 if "json" in name else b"t\n" + b"x\n" * 50
    columns = () if name == "a.txt" else ("t",)
    got = through(gzip.compress(data), name + ".gz", columns=columns)
    assert gzip.decompress(got) == data


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.tsv", "a.jsonl", "a.txt.gz"])
def test_an_empty_file_is_a_valid_one(name: str) -> None:
    assert through(b"", name, columns=() if "txt" in name else ("t",)) == b""


def test_a_header_without_records_is_kept() -> None:
    for data in (b"a,b\r\n", b"a,b", b"\xef\xbb\xbfa,b\n"):
        assert through(data, "x.csv", shout, columns=["b"]) == data


def test_stdin_to_stdout(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a,b\n1,2\n")))
    monkeypatch.setattr(sys, "stdout", out)
    reader = open_reader("-", format="csv", columns=["a"])
    assert reader.total_bytes is None
    with open_writer("-", reader) as writer:
        for batch in reader.batches():
            writer.write(batch, ["x"], {})
        writer.commit()
    assert out.buffer.getvalue() == b"a,b\nx,2\n"


def test_stdin_is_txt_unless_said_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"one\ntwo")))
    reader = open_reader("-")
    assert [batch.texts for batch in reader.batches()] == [["one", "two"]]


def test_a_batch_shows_no_text(tmp_path: Path) -> None:
    source = tmp_path / "a.jsonl"
    source.write_text('{"t": "canary", "u": "other canary"}\n')
    with open_reader(str(source), columns=["t"]) as reader:
        (batch,) = reader.batches()
    assert "canary" not in repr(batch) + json.dumps(batch.position)


def test_too_few_texts_are_refused(tmp_path: Path) -> None:
    source = tmp_path / "a.txt"
    source.write_text("a\nb\n")
    reader = open_reader(str(source))
    with (
        pytest.raises(ValueError, match="2 texts were read and 1 came back"),
        open_writer(str(tmp_path / "b.txt"), reader) as writer,
    ):
        for batch in reader.batches():
            writer.write(batch, ["a"], {})
    assert list(tmp_path.iterdir()) == [source]


def test_broken_records_can_be_skipped_and_are_counted(tmp_path: Path) -> None:
    cases = {
        "a.txt": (b"good\nb\xffd\ngood\n", b"<good>\n<good>\n", ()),
        "a.jsonl": (
            b'{"t":"a"}\n{"t":\n[]\n{"t":5}\n{"t":"b"}\n',
            b'{"t":"<a>"}\n{"t":"<b>"}\n',
            "t",
        ),
        "a.csv": (b't,u\na,1\nb\nc,2,3\n"x"y,4\nd,5\n', b"t,u\n<a>,1\n<d>,5\n", "t"),
    }
    counts = {"a.txt": 1, "a.jsonl": 3, "a.csv": 3}
    for name, (data, wanted, columns) in cases.items():
        source, target = tmp_path / name, tmp_path / ("out-" + name)
        source.write_bytes(data)
        reader = copy(source, target, shout, columns=columns, on_error="skip", characters=4)
        assert target.read_bytes() == wanted
        assert reader.skipped == counts[name]


def test_a_skipped_line_is_never_a_quote_left_open(tmp_path: Path) -> None:
    source = tmp_path / "a.csv"
    source.write_text('t,u\na,1\n"b,2\nc,3\n')
    with pytest.raises(InputError, match="line 3 opens a quote that is never closed"):
        copy(source, tmp_path / "b.csv", columns=["t"], on_error="skip")


@pytest.mark.parametrize("name", ["a.txt", "a.parquet"])
def test_a_reader_may_be_closed_again_after_its_writer(tmp_path: Path, name: str) -> None:
    source, target = tmp_path / name, tmp_path / ("out-" + name)
    source.write_text("x\n")
    columns = ["t"] if name == "a.parquet" else []
    if columns:
        pq.write_table(pa.table({"t": ["x"]}), source)
    with (
        open_reader(str(source), columns=columns) as reader,
        open_writer(str(target), reader) as writer,
    ):
        for batch in list(reader.batches()):  # read ahead, as several processes do
            writer.write(batch, batch.texts, {})
        writer.commit()
    assert target.exists()


@pytest.mark.parametrize(
    ("name", "data", "cells"),
    [
        ("a.txt", b"one\ntwo\n", None),
        ("a.csv", b"note,x\na,1\n", None),
        ("a.csv", b"note,x,note\na,1,b\n,1,c\n,1,\n", [2, 1, 0]),
        (
            "a.jsonl",
            b'{"note": "a"}\n{"x": 1}\n{"note": "b", "note": "c"}\n',
            [1, 0, 2],
        ),
    ],
)
def test_a_batch_says_how_many_texts_each_record_has(
    name: str, data: bytes, cells: list[int] | None, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    columns = [] if name == "a.txt" else ["note"]
    with open_reader(str(path), columns=columns) as reader:
        assert [batch.cells for batch in reader.batches()] == [cells]


@calm
@given(
    odd=st.lists(st.sampled_from(["1,ok", "2,a,b", '3,"a"b', "", '4,"two\nlines"']), max_size=12),
    characters=st.sampled_from([1, 7, 40, 4_000_000]),
)
def test_a_table_loses_its_odd_lines_and_no_others(odd: list[str], characters: int) -> None:
    """Whatever stands at the end of a block: what is skipped is counted, the rest comes back."""
    data = "".join(f"{line}\n" for line in ["id,text", *odd]).encode()
    whole = [line for line in odd if line not in ("2,a,b", '3,"a"b')]
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "in.csv", Path(folder) / "out.csv"
        source.write_bytes(data)
        reader = copy(source, target, columns=["text"], characters=characters, on_error="skip")
        expected = "".join(f"{line}\n" for line in ["id,text", *whole]).encode()
        assert target.read_bytes() == expected
        assert reader.skipped == len(odd) - len(whole)
        if len(whole) < len(odd):
            with pytest.raises(InputError, match="line "):
                copy(source, target, columns=["text"], characters=characters)


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl"])
def test_lines_that_are_no_text_are_counted_where_no_other_follows(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_bytes(b"bad \xff\nbad \xff\n")
    columns = [] if name == "a.txt" else ["text"]
    reader = copy(tmp_path / name, tmp_path / f"out-{name}", columns=columns, on_error="skip")
    assert reader.skipped == 2
