"""Bad input and bad output: one line that says where, nothing written, nothing private shown."""

# ruff: noqa: E501  (a case a line is easier to read than one in three)

from __future__ import annotations

import errno
import gzip
import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deniable.errors import DeniableError, InputError, ParameterError
from deniable.files import find_checkpoint, open_reader, open_writer

SECRET = "canary"  # noqa: S105


def run(source: Path | str, target: Path | str, **options: Any) -> None:
    reader = open_reader(str(source), **options)
    with open_writer(str(target), reader) as writer:
        for batch in reader.batches(16):
            writer.write(batch, ["public"] * len(batch.texts), {})
        writer.commit()


def chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def refused(
    folder: Path, source: Path | str, target: Path | str | None = None, **options: Any
) -> str:
    """Run, expect a refusal, and return its message."""
    before = sorted(folder.iterdir())
    with pytest.raises(DeniableError) as caught:
        run(source, folder / "out" if target is None else target, **options)
    assert sorted(folder.iterdir()) == before
    message = str(caught.value)
    assert "\n" not in message
    for error in chain(caught.value):
        held = repr(error) + repr(getattr(error, "object", "")) + repr(getattr(error, "doc", ""))
        assert SECRET not in held
    assert caught.value.exit_code == 2
    return message


GOOD_CSV = f"id,note\n1,{SECRET}\n2,{SECRET}\n"
GOOD_JSON = json.dumps({"note": SECRET}) + "\n"


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.txt", b"canary\ncanary\ncanary \xff\n", r"byte 21 \(line 3\) is not utf-8"),
        ("a.csv", GOOD_CSV.encode() + b"3,canary \xff\n", r"byte 35 \(line 4\) is not utf-8"),
        ("a.jsonl", GOOD_JSON.encode() + b'{"note":"\xff"}', r"byte 28 \(line 2\) is not utf-8"),
        ("a.txt", b"canary\nca\0nary\n", "line 2 holds a NUL"),
        ("a.csv", GOOD_CSV.encode() + b"3,ca\0nary\n", "line 4 holds a NUL"),
        ("a.csv", b"no\0te,id\n", "line 1 holds a NUL"),
        ("a.jsonl", GOOD_JSON.encode() * 2 + b'{"note": "canary\n', "line 3 is broken JSON"),
        ("a.jsonl", GOOD_JSON.encode() + b'{"note": "canary" "x": 1}\n', "line 2 is broken JSON"),
        ("a.jsonl", GOOD_JSON.encode() + b'{"note": "canary",}\n', "line 2 is broken JSON"),
        ("a.jsonl", GOOD_JSON.encode() + b'{"note": "ca\0nary"}\n', "line 2 is broken JSON"),
        ("a.jsonl", GOOD_JSON.encode() + b'{"note": "canary"} {}\n', "line 2 is not one JSON object"),
        ("a.jsonl", b'{"note": ' + b"[" * 200_000 + b"\n", "line 1 is broken JSON"),
        ("a.jsonl", GOOD_JSON.encode() + b'["canary"]\n', "line 2 is not a JSON object"),
        ("a.jsonl", GOOD_JSON.encode() + b'{"note": ["canary"]}\n', "line 2 has no text in column 'note'"),
        ("a.jsonl", b'{"not": "canary"}\n', r"no column 'note' \(there are: not\); did you mean 'not'"),
        ("a.csv", GOOD_CSV.encode() + b"canary\n", "line 4 has too many or too few fields"),
        ("a.csv", GOOD_CSV.encode() + b"3,canary,canary\n", "line 4 has too many or too few fields"),
        ("a.csv", GOOD_CSV.encode() + b'3,"canary"canary\n', "line 4 has text after a closing quote"),
        ("a.csv", GOOD_CSV.encode() + b'"canary"canary,3', "line 4 has text after a closing quote"),
        ("a.csv", GOOD_CSV.encode() + b"3,canary\rcanary\n", "line 4 has .* a bare carriage return"),
        ("a.csv", b"id,note\r1,canary\r2,canary\r\n", "the header is not well formed csv"),
        ("a.csv", GOOD_CSV.encode() + b'3,"canary\n4,5\n', "line 4 opens a quote that is never"),
        ("a.csv", b"id,notes\n1,canary\n", r"no column 'note' \(there are: id, notes\); did you mean"),
        ("a.csv", b"canary " * 20 + b"\n1,2\n", r"no column 'note' \(the first record has 1 column\)"),
        ("a.csv", b'"canary\n', "the header is not well formed csv"),
        ("a.tsv", b'id\tnote\n1\t"canary\n2\tcanary"\n', "line 2 opens a quote.*--format tsv-plain"),
        ("a.tsv", b'id\tnote\n1\t"canary" canary\n', "line 2 has text after.*--format tsv-plain"),
        ("a.parquet", b"canary", "is not a whole parquet file"),
        ("a.txt.gz", b"canary", "is not a whole gzip file"),
        ("a.txt.gz", gzip.compress(b"canary" * 99, mtime=0)[:-9], "is not a whole gzip file"),
    ],
)  # fmt: skip
def test_broken_content(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    source = tmp_path / name
    source.write_bytes(content)
    columns = () if ".txt" in name else ("note",)
    message = refused(tmp_path, source, columns=columns)
    assert name in message
    assert re.search(says, message), message


@pytest.mark.parametrize(
    ("source", "options", "says"),
    [
        ("none.txt", {}, "no such file"),
        (".", {}, "is a folder"),
        ("a.txt", {"columns": ["note"]}, "has no columns"),
        ("a.csv", {}, "say which column"),
        ("a.jsonl", {}, "say which column"),
        ("a.parquet", {}, "say which column"),
        ("a.csv", {"columns": ["note", "note"]}, "named twice"),
        ("a.parquet", {"columns": ["nope"]}, r"no column 'nope' \(there are: note, id\)"),
        ("a.parquet", {"columns": ["id"]}, "column 'id' holds int64, not text"),
        ("a.csv", {"columns": ["note"], "encoding": "utf-99"}, "unknown encoding"),
        ("a.csv", {"columns": ["note"], "encoding": "utf-7"}, "unknown encoding"),
        ("a.csv", {"columns": ["note"], "encoding": "rot13"}, "unknown encoding"),
        ("a.csv", {"columns": ["note"], "format": "xml"}, "unknown format"),
        ("a.csv", {"columns": ["note"], "on_error": "cry"}, "unknown on_error"),
        ("-", {"columns": ["note"], "format": "parquet"}, "parquet can't be read from a pipe"),
    ],
)
def test_bad_calls(tmp_path: Path, source: str, options: dict[str, Any], says: str) -> None:
    (tmp_path / "a.txt").write_text(SECRET)
    (tmp_path / "a.csv").write_text(GOOD_CSV)
    (tmp_path / "a.jsonl").write_text(GOOD_JSON)
    pq.write_table(pa.table({"note": [SECRET], "id": [1]}), tmp_path / "a.parquet")
    path = source if source == "-" else tmp_path / source
    assert re.search(says, refused(tmp_path, path, **options))


def test_a_parquet_cell_that_is_not_utf8(tmp_path: Path) -> None:
    broken = pa.array([b"canary \xff"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"note": broken}), tmp_path / "a.parquet")
    message = refused(tmp_path, tmp_path / "a.parquet", columns=["note"])
    assert "a cell that is not utf-8" in message


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("none/out.txt", "there is no folder"),
        ("folder", "is a folder"),
        ("a.txt", "is the input itself"),
        ("link.txt", "is the input itself"),
        ("a.txt/out.txt", "there is no folder"),
        ("out.csv", "the output is txt, as the input"),
        ("n" * 300, "can't be written"),
        pytest.param(
            "/proc/out.txt",
            "can't be written",
            marks=pytest.mark.skipif(not Path("/proc").is_dir(), reason="this system has no /proc"),
        ),
    ],
)
def test_bad_targets(tmp_path: Path, target: str, says: str) -> None:
    source = tmp_path / "a.txt"
    source.write_text(SECRET)
    (tmp_path / "folder").mkdir()
    (tmp_path / "link.txt").symlink_to(source)
    assert says in refused(tmp_path, source, tmp_path / target)
    assert source.read_text() == SECRET


def test_a_folder_that_may_not_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "a.txt"
    source.write_text(SECRET)

    def deny(*_: object, **__: object) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr("deniable.files.output.os.open", deny)
    assert refused(tmp_path, source).endswith("out: can't be written (Permission denied)")


@pytest.mark.parametrize("name", ["a.txt", "a.parquet"])
@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_full_disk_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, after: int
) -> None:
    source, target = tmp_path / name, tmp_path / ("out-" + name)
    target.write_text("what was there")
    if name == "a.txt":
        source.write_text("one of the lines\n" * 10)
    else:
        pq.write_table(pa.table({"t": ["x"] * 100}), source, row_group_size=10)
    calls = 0
    write = os.write

    def fill(file: int, data: Any) -> int:
        nonlocal calls
        calls += 1
        if calls > after:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(file, data[:5])  # a nearly full disk takes a part

    monkeypatch.setattr("deniable.files.output.os.write", fill)
    columns: Sequence[str] = () if name == "a.txt" else ("t",)
    assert "no space left" in refused(tmp_path, source, target, columns=columns)
    assert target.read_text() == "what was there"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_device(tmp_path: Path) -> None:
    source = tmp_path / "a.txt"
    source.write_text(SECRET)
    assert refused(tmp_path, source, "/dev/full").startswith("/dev/full: no space left")
    assert Path("/dev/full").is_char_device()


def test_a_device_is_written_and_not_replaced(tmp_path: Path) -> None:
    source = tmp_path / "a.txt"
    source.write_text(SECRET)
    run(source, "/dev/null")
    assert Path("/dev/null").is_char_device()
    pq.write_table(pa.table({"t": ["x"]}), tmp_path / "a.parquet")
    message = refused(tmp_path, tmp_path / "a.parquet", "/dev/null", columns=["t"])
    assert "can't be written to a pipe" in message


def test_text_that_the_encoding_cannot_hold(tmp_path: Path) -> None:
    source = tmp_path / "a.txt"
    source.write_bytes("é".encode("latin-1"))
    reader = open_reader(str(source), encoding="latin-1")
    with (
        pytest.raises(InputError, match="doesn't fit in iso8859-1; convert the input to utf-8"),
        open_writer(str(tmp_path / "b.txt"), reader) as writer,
    ):
        for batch in reader.batches():
            writer.write(batch, ["漢"], {})
    assert list(tmp_path.iterdir()) == [source]


def test_json_escapes_what_the_encoding_cannot_hold(tmp_path: Path) -> None:
    source, target = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    source.write_bytes('{"t":"é"}'.encode("latin-1"))
    reader = open_reader(str(source), columns=["t"], encoding="latin-1")
    with open_writer(str(target), reader) as writer:
        for batch in reader.batches():
            writer.write(batch, ["漢\ud800"], {})
        writer.commit()
    assert target.read_bytes() == b'{"t":"\\u6f22\\ud800"}'


def test_a_quote_left_open_is_found_before_memory_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deniable.files.tables.LONGEST", 100)
    source = tmp_path / "a.csv"
    source.write_text(GOOD_CSV + '3,"' + "canary\n" * 100 + '"\n')
    assert "line 4 opens a quote that is never closed" in refused(
        tmp_path, source, columns=["note"]
    )


def test_pipes_cannot_be_resumed(tmp_path: Path) -> None:
    for source, target in (("-", "out.txt"), ("a.txt", "-")):
        with pytest.raises(InputError, match="--resume needs"):
            find_checkpoint(target, source)
    source_path = tmp_path / "a.txt"
    source_path.write_text("x")
    with pytest.raises(InputError, match="--resume needs"):
        open_writer("-", open_reader(str(source_path)), resume=True)


def test_parameters_are_a_kind_of_their_own() -> None:
    with pytest.raises(ParameterError, match="one of txt, csv"):
        open_reader("-", format="docx")
