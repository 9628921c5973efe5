"""Whom a record is about, and batches that lose some of their records, in every format."""

from __future__ import annotations

import base64
import io
import itertools
import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deniable.errors import DeniableError, InputError
from deniable.files import Batch, Reader, find_checkpoint, open_reader, open_writer

# Files are written here: how long an example takes says something about the machine only.
calm = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

SECRET = "canary"  # noqa: S105
TABLES = ("csv", "tsv", "tsv-plain", "jsonl", "parquet")
LINES = ("txt", "csv", "tsv", "tsv-plain", "jsonl")
Record = tuple[str | None, str | None]  # the subject and the note; None is left out, or a null


def shout(text: str) -> str:
    return f"<{text}>"


def made(kind: str, records: Sequence[Record], end: str = "\n", last: bool = True) -> bytes:
    """Return a file of a format that says who wrote what."""
    if kind == "parquet":
        who, note = ([record[at] for record in records] for at in (0, 1))
        columns = {"n": range(len(records)), "who": pa.array(who, pa.string())}
        out = io.BytesIO()
        table = pa.table({**columns, "note": pa.array(note, pa.string())})
        pq.write_table(table, out, row_group_size=3)
        return out.getvalue()
    lines = [spelt(kind, n, *record) for n, record in enumerate(records)]
    between = "," if kind == "csv" else "\t"
    head = [between.join(["n", "who", "note", "more"])] if kind[1:3] in ("sv",) else []
    text = end.join([*head, *lines])
    return (text + (end if last or not lines else "")).encode()


def spelt(kind: str, n: int, who: str | None, note: str | None) -> str:
    """Return a record as a format spells it, sometimes with more quotes than it needs."""
    if kind == "txt":
        return note or ""
    if kind == "jsonl":
        named = {} if who is None else {"who": who}
        pairs = {**named, "note": note, "more": n}
        return json.dumps(pairs, separators=(", ", " : ") if n % 2 else None)
    if kind == "tsv-plain":
        return "\t".join([str(n), who or "", note or "", '"more'])
    quoted = [f'"{cell}"' if cell and n % 2 else cell or "" for cell in (who, note)]
    return ("," if kind == "csv" else "\t").join([str(n), *quoted, '"a ""more"""'])


@contextmanager
def opened(data: bytes, kind: str, **options: Any) -> Iterator[Reader]:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "in")
        source.write_bytes(data)
        if kind != "txt":
            options = {"columns": ["note"], **options}
        with open_reader(str(source), format=kind, **options) as reader:
            yield reader


def read(data: bytes, kind: str, characters: int = 4_000_000, **options: Any) -> list[Batch]:
    with opened(data, kind, **options) as reader:
        return list(reader.batches(characters))


def output(data: bytes, kind: str, dropped: Sequence[int] = (), size: int = 9, **more: Any) -> Any:
    """Return what is written of a file without some records: bytes, or the table of them."""
    with opened(data, kind, **more) as reader:
        target, done = Path(reader.source).with_name("out"), 0
        with open_writer(str(target), reader) as writer:
            for batch in reader.batches(size):
                here = [n - done for n in dropped if done <= n < done + batch.records]
                done += batch.records
                left = reader.without(batch, here)
                assert (left.position, left.bytes_read) == (batch.position, batch.bytes_read)
                writer.write(left, [shout(text) for text in left.texts], {})
            writer.commit()
        return pq.read_table(target) if kind == "parquet" else target.read_bytes()


def sound(batch: Batch) -> bool:
    """Tell whether a batch keeps what its docstring says."""
    uneven = batch.cells is not None
    sizes = batch.cells if batch.cells is not None else [1] * batch.records
    return (
        len(sizes) == batch.records
        and sum(sizes) == len(batch.texts)
        and uneven == (sizes != [1] * batch.records)
        and (batch.subjects is None or len(batch.subjects) == batch.records)
    )


WHO = st.text(st.sampled_from("ab é'1"), min_size=1, max_size=4).filter(lambda who: who.strip())
NOTE = st.text(st.sampled_from("xy z漢"), min_size=1, max_size=8)
RECORDS = st.lists(st.tuples(WHO, st.none() | NOTE), max_size=9)


# subjects


@pytest.mark.parametrize("kind", TABLES)
@calm
@given(
    records=RECORDS,
    size=st.integers(1, 60),
    last=st.booleans(),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_each_record_has_its_subject(
    kind: str, records: list[Record], size: int, last: bool, end: str
) -> None:
    data = made(kind, records, end, last)
    batches = read(data, kind, size, subject="who")
    assert all(map(sound, batches))
    found = [subject for batch in batches for subject in batch.subjects or []]
    assert found == [who for who, _ in records]
    texts = [text for batch in batches for text in batch.texts]
    assert texts == [note for _, note in records if note is not None]


@pytest.mark.parametrize("kind", TABLES)
def test_the_subject_passes_in_clear_and_is_listed(kind: str) -> None:
    data = made(kind, [("Ann", "x"), (" Bob ", "y"), ('B"ob', "z")][: 2 if "sv" in kind else 3])
    plain, named = (output(data, kind, subject=subject) for subject in (None, "who"))
    assert plain == named
    with opened(data, kind, subject="who") as reader:
        subjects = [subject for batch in reader.batches() for subject in batch.subjects or ()]
        assert subjects[:2] == ["Ann", " Bob "]
        assert "who" in reader.passed
        assert reader.subject == "who"


@pytest.mark.parametrize("kind", ["txt", *TABLES])
def test_without_a_subject_column_there_are_no_subjects(kind: str) -> None:
    assert [batch.subjects for batch in read(made(kind, [("Ann", "x")]), kind)] == [None]


def test_a_csv_subject_is_what_its_cell_says() -> None:
    data = b'who,note\n"a ""b""\nc",x\n b ,y\n7,z\n007,w\n'
    (batch,) = read(data, "csv", subject="who")
    assert batch.subjects == ['a "b"\nc', " b ", "7", "007"]
    for header in (b"note,who", b'note,"who"'):  # behind the text
        (batch,) = read(header + b'\nx,"Ann"\n,Bob\n', "csv", subject="who")
        assert (batch.subjects, batch.texts, batch.cells) == (["Ann", "Bob"], ["x"], [1, 0])


@pytest.mark.parametrize("order", list(itertools.permutations(["who", "a", "b", "c"]))[::3])
def test_a_subject_may_stand_anywhere_in_a_table(order: tuple[str, ...]) -> None:
    rows = [",".join(name + str(n) for name in order) for n in range(3)]
    data = "\n".join([",".join(order), *rows, ""]).encode()
    with opened(data, "csv", columns=["c", "a"], subject="who") as reader:
        (batch,) = reader.batches()
        assert batch.subjects == ["who0", "who1", "who2"]
        assert reader.head() + reader.render(batch, batch.texts) == data


def test_a_jsonl_subject_is_a_string_or_a_whole_number() -> None:
    long = "1" * 5000
    said = ['"7"', "7", "-3", long, '"\\u0041nn"', '"1.5"', '"who"']
    for key, inner in (("who", "{}"), ("a.who", '{{"a": {}}}')):
        lines = [f'{{"who": {value}, "note": "x"}}' for value in said]
        data = "\n".join(inner.format(line) for line in lines).encode()
        note = key.replace("who", "note")
        (batch,) = read(data, "jsonl", columns=[note], subject=key)
        assert batch.subjects == ["7", "7", "-3", long, "Ann", "1.5", "who"]


def test_a_jsonl_subject_beside_a_nested_one() -> None:
    data = b'{"x": {"who": "no"}, "who": "Ann", "note": "x"}\n{"who": "Bob", "y": ["who"]}\n'
    with opened(data, "jsonl", subject="who") as reader:
        (batch,) = reader.batches()
        assert batch.subjects == ["Ann", "Bob"]
        assert reader.passed == ("x", "who", "y")


@pytest.mark.parametrize(
    "kind",
    [
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.int8(),
        pa.uint64(),
        pa.dictionary(pa.int8(), pa.string()),
        pa.dictionary(pa.int32(), pa.large_string()),
        pa.dictionary(pa.int16(), pa.int64()),
    ],
    ids=str,
)
def test_parquet_subjects_of_every_type(kind: pa.DataType) -> None:
    out = io.BytesIO()
    plain = pa.array(["7", "8", "7", None]).cast(pa.int8())
    who = plain.cast(pa.string()).cast(kind) if kind != pa.int8() else plain
    pq.write_table(pa.table({"who": who, "note": ["a", None, "c", "d"]}), out)
    (batch,) = read(out.getvalue(), "parquet", subject="who", on_error="skip")
    assert (batch.subjects, batch.texts, batch.cells) == (["7", "8", "7"], ["a", "c"], [1, 0, 1])
    assert batch.records == 3


# records that aren't about anyone


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("bad", [None, "", " ", "\u3000 "])
@pytest.mark.parametrize("size", [1, 4_000_000])
def test_a_record_without_a_subject_stops_or_is_skipped(
    kind: str, bad: str | None, size: int
) -> None:
    records = [("Ann", "x"), ("Bob", SECRET), (bad, SECRET), ("Cy", "z"), (bad, SECRET)]
    if kind == "parquet":
        records = [*records, *[(bad, SECRET)] * 4]  # a row group of nothing else
    data = made(kind, records)
    # A parquet row is counted from 0, a line from 1 and with the header.
    place = {"jsonl": "line 3", "parquet": r"row 2 \(the first is 0\)"}.get(kind, "line 4")
    says = rf"{place} has no subject in column 'who'; .*--on-error skip"
    with pytest.raises(InputError, match=says) as caught:
        read(data, kind, size, subject="who")
    assert SECRET not in str(caught.value)
    assert "\n" not in str(caught.value)
    with opened(data, kind, subject="who", on_error="skip") as reader:
        batches = list(reader.batches(size))
        assert reader.skipped == len(records) - 3
        assert [name for batch in batches for name in batch.subjects or ()] == ["Ann", "Bob", "Cy"]
        assert all(map(sound, batches))
    wanted = output(data, kind, [at for at, (who, _) in enumerate(records) if who == bad])
    assert output(data, kind, size=size, subject="who", on_error="skip") == wanted


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
@pytest.mark.parametrize("size", [1, 4_000_000])
def test_a_skipped_last_record_takes_no_line_end_but_its_own(kind: str, size: int) -> None:
    data = made(kind, [("Ann", "x"), ("", "y")], "\r\n", last=False)
    got = output(data, kind, size=size, subject="who", on_error="skip")
    assert got.endswith(b"\r\n")
    assert got == output(made(kind, [("Ann", "x")], "\r\n"), kind)


@pytest.mark.parametrize(
    ("name", "data", "wanted"),
    [
        ("csv", b"n,note\r\n1,a\r\n2,b,c", b"n,note\r\n1,<a>\r\n"),
        ("jsonl", b'{"note": "a"}\n{"note": ', b'{"note": "<a>"}\n'),
        ("jsonl", b'{"note": "a"}\n\xff', b'{"note": "<a>"}\n'),
        ("txt", b"a\n\xff", b"<a>\n"),
    ],
)
def test_a_broken_last_line_takes_no_line_end_but_its_own(
    name: str, data: bytes, wanted: bytes
) -> None:
    assert output(data, name, size=4_000_000, on_error="skip") == wanted


def test_lines_are_counted_rightly_behind_skipped_ones() -> None:
    data = b'n,note\n1,a,b\n2,c,d\n"3,e\n'
    with pytest.raises(InputError, match="line 4 opens a quote"):
        read(data, "csv", on_error="skip")


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("1.5", "has no text or whole number in the subject column 'who'"),
        ("1e3", "has no text or whole number"),
        ("true", "has no text or whole number"),
        ("NaN", "has no text or whole number"),
        ('["canary"]', "has no text or whole number"),
        ('{"canary": 1}', "has no text or whole number"),
        ('"canary \\ud800"', "has no text or whole number"),
        ('"canary", "who": "canary"', "has the subject column 'who' twice"),
        ('"canary", "\\u0077ho": "canary"', "has the subject column 'who' twice"),
        ("null", "has no subject"),
        ('"\\u0020\\t"', "has no subject"),
    ],
)
def test_what_is_no_jsonl_subject(value: str, says: str) -> None:
    good = '{"who": "Ann", "note": "x"}\n'
    data = f'{good}\n{{"note": "canary", "who": {value}}}\n{good}'.encode()
    with pytest.raises(InputError, match=f": line 3 {says}") as caught:
        read(data, "jsonl", subject="who")
    assert SECRET not in str(caught.value)
    with opened(data, "jsonl", subject="who", on_error="skip") as reader:
        (batch,) = reader.batches()
        assert batch.subjects == ["Ann", "Ann"]
        assert reader.skipped == 1


# calls that can't be meant


def refused(data: bytes, kind: str, **options: Any) -> str:
    with pytest.raises(DeniableError) as caught:
        read(data, kind, **options)
    error: BaseException | None = caught.value
    while error is not None:
        assert SECRET not in repr(error)
        error = error.__cause__ or error.__context__
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("on_error", ["stop", "skip"])
def test_a_subject_column_that_is_not_there(kind: str, on_error: str) -> None:
    data = made(kind, [(SECRET, SECRET), (SECRET, SECRET)])
    message = refused(data, kind, subject="whom", on_error=on_error)
    assert "no column 'whom' (there are: " in message
    assert message.endswith("did you mean 'who'?")


@pytest.mark.parametrize("kind", TABLES)
def test_a_column_is_never_both_subject_and_text(kind: str) -> None:
    message = refused(made(kind, [(SECRET, SECRET)]), kind, columns=["who", "note"], subject="who")
    assert "column 'who' can't be both the subject and a text to sanitize" in message


def test_txt_has_no_subject_column() -> None:
    message = refused(b"canary\n", "txt", subject="who")
    assert "a txt file has no column of subjects; name one subject for the whole file" in message
    assert "--subject" in message


def test_a_subject_column_that_stands_twice_is_refused() -> None:
    says = "two columns are called 'who'; rename one"
    assert says in refused(b"who,note,who\ncanary,canary,canary\n", "csv", subject="who")
    out = io.BytesIO()
    columns = [pa.array([SECRET])] * 3
    pq.write_table(pa.Table.from_arrays(columns, names=["who", "note", "who"]), out)
    assert says in refused(out.getvalue(), "parquet", subject="who")


@pytest.mark.parametrize("values", [[1.5], [True], [b"canary"], [["canary"]], [{"canary": 1}]])
def test_a_parquet_column_that_can_not_hold_subjects(values: list[Any]) -> None:
    out = io.BytesIO()
    for who in (
        pa.array(values),
        pa.array(values).dictionary_encode() if values == [1.5] else None,
    ):
        if who is not None:
            out = io.BytesIO()
            pq.write_table(pa.table({"who": who, "note": [SECRET]}), out)
            with pytest.raises(
                InputError, match=r"column 'who' holds .*, and subjects are text or"
            ):
                read(out.getvalue(), "parquet", subject="who")


def test_a_parquet_subject_that_is_not_utf8() -> None:
    out = io.BytesIO()
    who = pa.array([b"canary \xff"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"who": who, "note": ["x"]}), out)
    assert "a cell that is not utf-8" in refused(out.getvalue(), "parquet", subject="who")


def test_a_batch_shows_no_subject() -> None:
    for kind in TABLES:
        for batch in read(made(kind, [(SECRET, "x")]), kind, subject="who"):
            assert SECRET not in repr(batch) + json.dumps(batch.position)


# without


@pytest.mark.parametrize("kind", LINES)
@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("end", ["\n", "\r\n", "mixed"])
@pytest.mark.parametrize("size", [1, 30, 4_000_000])
def test_a_batch_without_records_is_that_of_a_file_without_them(
    kind: str, last: bool, end: str, size: int
) -> None:
    notes = ["x y", None, "z", "z z"]
    lines = made(kind, [("Ann", note) for note in notes], last=last).decode().splitlines(True)
    if end != "\n":
        lines = [
            line.replace("\n", "\r\n") if end != "mixed" or n % 2 else line
            for n, line in enumerate(lines)
        ]
    head = len(lines) - len(notes)
    subject = None if kind == "txt" else "who"
    for dropped in itertools.product([False, True], repeat=len(notes)):
        gone = [at for at, drop in enumerate(dropped) if drop]
        kept = lines[:head] + [line for at, line in enumerate(lines[head:]) if at not in gone]
        got = output("".join(lines).encode(), kind, gone, size, subject=subject)
        assert got == output("".join(kept).encode(), kind, size=size)


@pytest.mark.parametrize("size", [1, 60, 4_000_000])
def test_parquet_without_records_is_the_table_without_them(size: int) -> None:
    records: list[Record] = [("Ann", "x"), ("Bob", None), ("Ann", "y z"), ("Cy", "z"), ("Bob", "w")]
    data = made("parquet", records)
    whole = output(data, "parquet")
    for kept in itertools.product([False, True], repeat=len(records)):
        gone = [at for at, keep in enumerate(kept) if not keep]
        got = output(data, "parquet", gone, size, subject="who")
        assert got.equals(whole.filter(pa.array(kept)))
        assert got.schema == whole.schema


@pytest.mark.parametrize("kind", ["txt", *TABLES])
@calm
@given(data=st.data())
def test_a_batch_stays_sound_whatever_it_loses(kind: str, data: st.DataObject) -> None:
    records = data.draw(RECORDS.filter(bool))
    subject = None if kind == "txt" else "who"
    with opened(made(kind, records), kind, subject=subject) as reader:
        for batch in reader.batches(data.draw(st.integers(1, 200))):
            assert sound(batch)
            for _ in range(2):  # twice: what lost some may lose more
                dropped = data.draw(st.sets(st.integers(0, max(0, batch.records - 1))))
                left = reader.without(batch, dropped & set(range(batch.records)))
                assert sound(left)
                assert left.records == batch.records - len(dropped & set(range(batch.records)))
                kept = [name for at, name in enumerate(batch.subjects or ()) if at not in dropped]
                assert (left.subjects or []) == kept
                reader.render(left, left.texts)
                batch = left  # noqa: PLW2901


@pytest.mark.parametrize("kind", ["txt", *TABLES])
def test_a_batch_that_loses_all_is_nothing(kind: str) -> None:
    data = made(kind, [("Ann", "x"), ("Bob", None)], last=False)
    with opened(data, kind, subject=None if kind == "txt" else "who") as reader:
        for batch in reader.batches():
            left = reader.without(batch, range(batch.records))
            assert (left.texts, left.records, left.subjects or []) == ([], 0, [])
            assert reader.render(left, []) == b""
            assert reader.without(left, []) == left


@pytest.mark.parametrize("kind", ["txt", *TABLES])
@pytest.mark.parametrize("wrong", [-1, 2])
def test_a_record_that_is_not_there_is_not_dropped(kind: str, wrong: int) -> None:
    with opened(made(kind, [("Ann", "x"), ("Bob", "y")]), kind) as reader:
        (batch,) = reader.batches()
        with pytest.raises(ValueError, match="a batch of 2 records"):
            reader.without(batch, [0, wrong])
        assert reader.without(batch, [0, 0]).texts == ["y"]


def test_empty_lines_are_no_records_and_stay() -> None:
    csv = b'who,note\n\nAnn,x\n\r\n"B\nob",y\n\n'
    jsonl = b'\n{"who":"Ann","note":"x"}\n \r\n{"who":"B\\nob","note":"y"}\n\n'
    for kind, data in (("csv", csv), ("jsonl", jsonl)):
        (batch,) = read(data, kind, subject="who")
        assert (batch.records, batch.cells, batch.subjects) == (2, None, ["Ann", "B\nob"])
        lines = data.replace(b"B\nob", b"B|ob").splitlines(keepends=True)
        for at, name in enumerate([b"Ann", b"ob"]):
            left = b"".join(line for line in lines if name not in line).replace(b"|", b"\n")
            assert output(data, kind, [at], subject="who") == output(left, kind)


@pytest.mark.parametrize(
    ("kind", "data", "columns", "cells"),
    [
        ("csv", b"note\na\n\nb\n", ["note"], [1, 0, 1]),  # its empty line is an empty cell
        ("csv", b"n,note\n1,a\n2,\n\n3,b\n", ["note"], [1, 0, 1]),
        ("csv", b'n,note\n1,a\n2,""\n', ["note"], None),
        ("tsv", b"n\tnote\n1\t\n", ["note"], [0]),
        ("csv", b"n,note\n\n1,a\n\n2,b\n", ["n", "note"], [2, 2]),
        ("csv", b"n,note\n,a\n2,\n", ["n", "note"], None),
        ("jsonl", b'\n{"note": null}\n\n{"note": "a"}\n{}\n\n', ["note"], [0, 1, 0]),
        ("jsonl", b'{"note": "a"}\n \n{"note": "b"}\n', ["note"], None),
        ("txt", b"a\n\nb", [], None),
    ],
)
def test_cells_say_how_many_texts_each_record_has(
    kind: str, data: bytes, columns: list[str], cells: list[int] | None
) -> None:
    (batch,) = read(data, kind, columns=columns)
    assert sound(batch)
    assert batch.cells == cells


def test_cells_of_parquet() -> None:
    out = io.BytesIO()
    pq.write_table(pa.table({"a": ["x", None, "", "y"], "b": [None, None, "z", "w"]}), out)
    for columns, cells in ((["a"], [1, 0, 1, 1]), (["a", "b"], [1, 0, 2, 2])):
        (batch,) = read(out.getvalue(), "parquet", columns=columns)
        assert batch.cells == cells
    (batch,) = read(made("parquet", [("Ann", "x")] * 3), "parquet")
    assert batch.cells is None


def held(path: Path) -> bytes:
    """Return the bytes of a parquet file, with the Arrow schema that it holds unpacked."""
    metadata = pq.ParquetFile(path).metadata.metadata or {}
    return path.read_bytes() + base64.b64decode(metadata[b"ARROW:schema"])


def ordered(values: list[str]) -> pa.Array:
    kind = pa.dictionary(pa.int8(), pa.string(), ordered=True)
    return pa.DictionaryArray.from_arrays(
        pa.array([2, 0, 1, 2, 0, None], pa.int8()), pa.array(values), ordered=True
    ).cast(kind)


@pytest.mark.parametrize("size", [1, 100, 4_000_000])
@pytest.mark.parametrize("group", [2, 3, 6])
def test_nothing_is_left_of_a_dropped_row(tmp_path: Path, size: int, group: int) -> None:
    """Nor in a dictionary, which all the rows of a row group share, and often those of others."""
    names = ["long enough Ann", "Bob is longer too", SECRET + " is long enough"]
    who = [names[2], names[0], names[1], names[2], names[0], names[1]]
    coded = pa.array(who).dictionary_encode()
    content = pa.table(
        {
            "who": coded,
            "note": pa.array(who).dictionary_encode(),
            "level": ordered(names),
            "view": pa.array(who, pa.string_view()),
            "bytes": pa.array([name.encode() for name in who], pa.binary_view()),
            "deep": pa.StructArray.from_arrays([coded], ["a"]),
            "list": pa.ListArray.from_arrays(list(range(7)), coded),
            "views": pa.array([[1, 2], [3]] * 3, pa.list_view(pa.int8())),
            "fixed": pa.array([[name] for name in who], pa.list_(pa.string(), 1)),
            "map": pa.array([[(name, 1)] for name in who], pa.map_(pa.string(), pa.int8())),
            "label": pa.ExtensionArray.from_storage(
                pa.opaque(pa.string(), "a", "b"), pa.array(who)
            ),
        }
    )
    source, target = tmp_path / "in.parquet", tmp_path / "out.parquet"
    pq.write_table(content, source, row_group_size=group, compression="none")
    assert SECRET.encode() in source.read_bytes()
    with (
        open_reader(str(source), columns=["note"], subject="who") as reader,
        open_writer(str(target), reader) as writer,
    ):
        for batch in reader.batches(size):
            subjects = batch.subjects or []
            left = reader.without(batch, [n for n, who in enumerate(subjects) if SECRET in who])
            writer.write(left, left.texts, {})
        writer.commit()
    assert SECRET.encode() not in held(target)
    old, new = pq.read_table(source), pq.read_table(target)
    kept = [name for name in who if SECRET not in name]
    assert new.column("note").to_pylist() == kept
    assert [row["who"] for row in new.to_pylist()] == kept
    mask = [SECRET not in name for name in who]
    wanted = [row for row, keep in zip(old.to_pylist(), mask, strict=True) if keep]
    assert new.to_pylist() == wanted
    assert new.schema.field("level").type == old.schema.field("level").type
    assert new.schema.field("deep").type == old.schema.field("deep").type


def test_a_dictionary_keeps_its_order_and_where_nothing_is_dropped_its_values() -> None:
    level = ordered(["low", "mid", "high"])
    content = pa.table({"level": level, "note": list("abcdef"), "who": list("uvwxyz")})
    out = io.BytesIO()
    pq.write_table(content, out)
    got = output(out.getvalue(), "parquet", [2], 4_000_000)  # the only "mid"
    assert got.column("level").chunk(0).dictionary.to_pylist() == ["low", "high"]
    assert got.column("level").type.ordered
    for gone in ([], [0]):
        got = output(out.getvalue(), "parquet", gone, 4_000_000)
        assert got.column("level").chunk(0).dictionary.to_pylist() == ["low", "mid", "high"]


def test_a_row_group_that_loses_every_row_goes(tmp_path: Path) -> None:
    data = made("parquet", [("Ann", "x")] * 7)
    assert output(data, "parquet", range(7)).num_rows == 0
    with opened(data, "parquet") as reader:
        target = Path(reader.source).with_name("out")
        with open_writer(str(target), reader) as writer:
            for at, batch in enumerate(reader.batches()):
                left = reader.without(batch, range(batch.records) if at == 1 else [0])
                writer.write(left, left.texts, {})
            writer.commit()
        about = pq.ParquetFile(target).metadata
        assert [about.row_group(g).num_rows for g in range(about.num_row_groups)] == [2]


# resume


@pytest.mark.parametrize("kind", TABLES)
def test_a_run_goes_on_with_its_subject_column_and_no_other(kind: str, tmp_path: Path) -> None:
    records = [(("Ann", "Bob", "")[n % 3], f"text {n}") for n in range(30)]
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_bytes(made(kind, records))
    options: dict[str, Any] = {"columns": ["note"], "format": kind, "on_error": "skip"}

    def go(subject: str | None, stop: bool) -> Reader:
        at = find_checkpoint(str(target), str(source))
        reader = open_reader(str(source), subject=subject, start=at, **options)
        with open_writer(str(target), reader, resume=True) as writer:
            for batch in reader.batches(100):
                gone = [n for n, name in enumerate(batch.subjects or ()) if name == "Bob"]
                left = reader.without(batch, gone)
                writer.write(left, [shout(text) for text in left.texts], {})
                if stop:
                    raise KeyboardInterrupt
            writer.commit()
        return reader

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            go("who", stop=True)
    for other in (None, "n", "more"):
        with pytest.raises(
            InputError, match=r"differ in --subject-column; repeat|no column 'more'|holds"
        ):
            go(other, stop=False)
    assert go("who", stop=False).skipped == 10
    wanted = output(source.read_bytes(), kind, [n for n in range(30) if n % 3])
    got = pq.read_table(target) if kind == "parquet" else target.read_bytes()
    assert got == wanted
