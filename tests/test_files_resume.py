"""A run may be killed at any moment: what appears is whole, in order, and every record once."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deniable.errors import InputError
from deniable.files import find_checkpoint, open_reader, open_writer

# Runs in a process of its own, and ends itself at the named moment of the given batch.
PROGRAM = """
import os, signal, sys
from deniable.files import find_checkpoint, journal, open_reader, open_writer, output

source, target, columns, moment, batch_number, sign = sys.argv[1:7]
columns = [column for column in columns.split(",") if column]
step = -1

def end_here(here):
    if here == moment and step == int(batch_number):
        os.kill(os.getpid(), getattr(signal, sign))

def around(owner, name):
    old = getattr(owner, name)
    def new(*arguments):
        end_here("before " + name)
        result = old(*arguments)
        end_here("after " + name)
        return result
    setattr(owner, name, new)

around(output.FileWriter, "_append")
around(journal.Note, "save")
around(output.FileWriter, "_commit")
around(output.FileWriter, "_remove_notes")
checkpoint = find_checkpoint(target, source, {"epsilon": 1})
reader = open_reader(source, columns=columns, start=checkpoint)
with open_writer(target, reader, fingerprint={"epsilon": 1}, resume=True) as writer:
    done = writer.saved["records"] if writer.saved else 0
    for step, batch in enumerate(reader.batches(150)):
        done += batch.records
        writer.write(batch, ["<" + text + ">" for text in batch.texts], {"records": done})
    step = int(batch_number)
    writer.commit()
print(done)
"""
RECORDS = 60


def make(folder: Path, kind: str) -> tuple[Path, Path, str]:
    """Write an input; return it, the target and the columns."""
    source, target = folder / f"in.{kind}", folder / f"out.{kind}"
    texts = [f"record {n} é" for n in range(RECORDS)]
    if kind == "txt":
        source.write_text("\n".join(texts))
        return source, target, ""
    if kind == "csv":
        source.write_text("\ufefft,u\r\n" + "".join(f'"{t}\n",{t}\r\n' for t in texts))
    elif kind == "jsonl.gz":
        source.write_bytes(gzip.compress("".join(f'{{"t":"{t}"}}\n' for t in texts).encode()))
    else:
        pq.write_table(pa.table({"t": texts, "u": texts}), source, row_group_size=25)
    return source, target, "t"


def content(path: Path) -> Any:
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pylist()
    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" else data


def run(
    source: Path, target: Path, columns: str, moment: str = "", batch: int = 0, sign: str = ""
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PROGRAM, str(source), str(target), columns]
    return subprocess.run(
        [*command, moment, str(batch), sign], capture_output=True, text=True, check=False
    )


ENDS = [
    ("txt", [("before save", 0, "SIGKILL"), ("after save", 1, "SIGKILL")]),
    ("txt", [("after _append", 2, "SIGINT"), ("before _append", 1, "SIGKILL")]),
    ("csv", [("before save", 3, "SIGKILL"), ("after save", 0, "SIGINT")]),
    ("csv", [("before _commit", 99, "SIGINT"), ("before _commit", 99, "SIGKILL")]),
    ("jsonl.gz", [("before save", 1, "SIGKILL"), ("after save", 2, "SIGKILL")]),
    ("parquet", [("before save", 2, "SIGKILL"), ("after save", 1, "SIGINT")]),
    ("parquet", [("after save", 0, "SIGKILL"), ("before _commit", 99, "SIGKILL")]),
    ("parquet", [("after _commit", 99, "SIGKILL")]),
    ("txt", [("before _remove_notes", 99, "SIGKILL")]),
]


@pytest.mark.parametrize(("kind", "ends"), ENDS, ids=lambda value: str(value)[:40])
def test_a_killed_run_is_continued(
    tmp_path: Path, kind: str, ends: list[tuple[str, int, str]]
) -> None:
    source, target, columns = make(tmp_path, kind)
    (tmp_path / "whole").mkdir()
    whole = tmp_path / "whole" / target.name
    assert run(source, whole, columns).stdout == f"{RECORDS}\n"
    for moment, batch, sign in ends:
        broken = run(source, target, columns, moment, batch, sign)
        assert broken.returncode == -getattr(signal, sign), broken.stderr
        if "after _commit" not in moment and "_remove_notes" not in moment:
            assert not target.exists()
    finished = run(source, target, columns)
    assert finished.stdout == f"{RECORDS}\n", finished.stderr
    assert content(target) == content(whole)
    assert sorted(tmp_path.iterdir()) == sorted([source, target, tmp_path / "whole"])
    assert list((tmp_path / "whole").iterdir()) == [whole]


def start(folder: Path, **fingerprint: Any) -> tuple[Path, Path]:
    """Leave a run that stopped after its first batch."""
    source, target, _ = make(folder, "txt")
    with pytest.raises(KeyboardInterrupt), begin(source, target, **fingerprint) as (reader, writer):
        for batch in reader.batches(100):
            writer.write(batch, ["public"] * len(batch.texts), {"spent": 1})
            raise KeyboardInterrupt
    return source, target


class begin:  # noqa: N801
    """Open a reader and a writer as the command line does."""

    def __init__(self, source: Path, target: Path, *, resume: bool = False, **mark: Any) -> None:
        at = find_checkpoint(str(target), str(source), mark) if resume else None
        self.reader = open_reader(str(source), start=at)
        self.writer = open_writer(str(target), self.reader, fingerprint=mark, resume=resume)

    def __enter__(self) -> Any:
        return self.reader, self.writer.__enter__()

    def __exit__(self, *error: Any) -> None:
        self.writer.__exit__(*error)


def test_an_interrupted_run_leaves_no_target_and_nothing_private(tmp_path: Path) -> None:
    source, target = start(tmp_path, epsilon=1)
    left = sorted(set(tmp_path.iterdir()) - {source})
    assert [path.name for path in left] == [
        ".out.txt.deniable-journal.json",
        ".out.txt.deniable-part",
    ]
    for path in left:
        assert path.stat().st_mode & 0o777 == 0o600
        assert b"record" not in path.read_bytes().replace(b"records", b"")
    assert not target.exists()


def test_resume_gives_back_the_state(tmp_path: Path) -> None:
    source, target = start(tmp_path, epsilon=1)
    with begin(source, target, resume=True, epsilon=1) as (_, writer):
        assert writer.saved == {"spent": 1}
        assert writer.start["line"] > 1


def test_resume_with_nothing_left_starts_anew(tmp_path: Path) -> None:
    source, target, _ = make(tmp_path, "txt")
    with begin(source, target, resume=True) as (_, writer):
        assert writer.saved is None


def test_resume_says_what_differs(tmp_path: Path) -> None:
    source, target = start(tmp_path, epsilon=1, mechanism="santext")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(InputError, match="differ in: epsilon; repeat the options"):
        find_checkpoint(str(target), str(source), {"epsilon": 2, "mechanism": "santext"})
    with pytest.raises(InputError, match="differ in: epsilon, mechanism;"):
        find_checkpoint(str(target), str(source), {})
    at = find_checkpoint(str(target), str(source), {"epsilon": 1, "mechanism": "santext"})
    with pytest.raises(InputError, match="differ in --encoding; repeat"):
        open_reader(str(source), encoding="latin-1", start=at)
    source.write_text("other\n")
    with pytest.raises(InputError, match="the input has changed since"):
        find_checkpoint(str(target), str(source), {"epsilon": 1, "mechanism": "santext"})
    assert sorted(tmp_path.iterdir()) == before


def test_a_damaged_rest_is_refused(tmp_path: Path) -> None:
    source, target = start(tmp_path)
    part, journal = tmp_path / ".out.txt.deniable-part", tmp_path / ".out.txt.deniable-journal.json"
    os.truncate(part, 3)
    with pytest.raises(InputError, match="is damaged; omit --resume"):
        find_checkpoint(str(target), str(source))
    for text in (b"", b"[]", b"{}", b"\xff", journal.read_bytes()[:-5]):
        journal.write_bytes(text)
        with pytest.raises(InputError, match="is damaged; omit --resume"):
            find_checkpoint(str(target), str(source))


def test_without_resume_the_old_part_goes_with_a_warning(tmp_path: Path) -> None:
    source, target = start(tmp_path)
    with (
        pytest.warns(UserWarning, match="thrown away; --resume would have gone on"),
        begin(source, target) as (reader, writer),
    ):
        for batch in reader.batches():
            writer.write(batch, ["x"] * len(batch.texts), {})
        writer.commit()
    assert target.read_text() == "\n".join(["x"] * RECORDS)
    assert sorted(tmp_path.iterdir()) == [source, target]


def test_the_second_run_to_a_target_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    source, target, _ = make(tmp_path, "txt")
    with begin(source, target) as (reader, writer):
        batches = reader.batches(100)
        writer.write(first := next(batches), first.texts, {})
        for resume in (False, True):
            with pytest.raises(InputError, match=r"another run is writing it|has changed"):
                begin(source, target, resume=resume)
        for batch in batches:
            writer.write(batch, batch.texts, {})
        writer.commit()
    assert target.read_bytes() == source.read_bytes()
    assert sorted(tmp_path.iterdir()) == [source, target]


def test_leaving_without_commit_writes_nothing(tmp_path: Path) -> None:
    source, target, _ = make(tmp_path, "txt")
    target.write_text("what was there")
    with begin(source, target) as (reader, writer):
        for batch in reader.batches(100):
            writer.write(batch, batch.texts, {})
    assert target.read_text() == "what was there"
    assert sorted(tmp_path.iterdir()) == [source, target]


def test_the_target_keeps_its_mode_and_its_link(tmp_path: Path) -> None:
    source, target, _ = make(tmp_path, "txt")
    link = tmp_path / "link.txt"
    link.symlink_to(target)
    target.write_text("old")
    target.chmod(0o640)
    with begin(source, link) as (reader, writer):
        for batch in reader.batches():
            writer.write(batch, batch.texts, {})
        writer.commit()
    assert link.is_symlink()
    assert target.stat().st_mode & 0o777 == 0o640
    assert target.read_bytes() == source.read_bytes()


def test_a_new_target_gets_the_mode_of_any_new_file(tmp_path: Path) -> None:
    source, target, _ = make(tmp_path, "parquet")
    reader = open_reader(str(source), columns=["t"])
    with open_writer(str(target), reader) as writer:
        for batch in reader.batches():
            writer.write(batch, batch.texts, {})
        writer.commit()
    assert target.stat().st_mode == source.stat().st_mode


LIMITED = """
import resource, sys
from deniable.errors import InputError
from deniable.files import open_reader, open_writer
reader = open_reader(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))
try:
    with open_writer(sys.argv[2], reader) as writer:
        for batch in reader.batches(100):
            writer.write(batch, batch.texts, {})
        writer.commit()
except InputError as error:
    print(error)
"""


def test_the_system_stops_the_file_from_growing(tmp_path: Path) -> None:
    source, target, _ = make(tmp_path, "txt")
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(source), str(target)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "no space left" in done.stdout
    assert list(tmp_path.iterdir()) == [source]


PEAK = """
import re, sys
from pathlib import Path
from deniable.files import open_reader, open_writer
columns = [column for column in sys.argv[3].split(",") if column]
reader = open_reader(sys.argv[1], columns=columns)
with open_writer(sys.argv[2], reader) as writer:
    for batch in reader.batches(500_000):
        writer.write(batch, batch.texts, {})
    writer.commit()
# VmHWM and not ru_maxrss, which a process inherits from the one that started it.
print(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
"""


def big(folder: Path, kind: str, size: int) -> tuple[Path, Path, str]:
    source, target = folder / f"in{size}.{kind}", folder / f"out{size}.{kind}"
    text = "some words in a record that is as long as many are, and no longer"
    row = {"txt": f"{text}\n", "csv": f'1,"{text}"\n', "jsonl": json.dumps({"t": text}) + "\n"}
    if kind == "parquet":
        texts = pa.array([f"{text} {n}" for n in range(10_000)])
        with pq.ParquetWriter(source, pa.schema({"t": pa.string()})) as writer:
            for _ in range(size // 700_000):
                writer.write_table(pa.table({"t": texts}))
        return source, target, "t"
    with source.open("w") as file:
        file.write("n,t\n" if kind == "csv" else "")
        for _ in range(size // 1_000_000):
            file.write(row[kind] * (1_000_000 // len(row[kind])))
    return source, target, "" if kind == "txt" else "t"


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read in /proc")
@pytest.mark.parametrize("kind", ["txt", "csv", "jsonl", "parquet"])
def test_memory_does_not_grow_with_the_file(tmp_path: Path, kind: str) -> None:
    peaks = []
    for size in (5_000_000, 60_000_000):
        source, target, columns = big(tmp_path, kind, size)
        done = subprocess.run(
            [sys.executable, "-c", PEAK, str(source), str(target), columns],
            capture_output=True,
            text=True,
            check=True,
        )
        peaks.append(int(done.stdout))
        source.unlink()
        target.unlink()
    assert peaks[1] - peaks[0] < 20_000, peaks  # KiB; the files differ by 53,000


@pytest.mark.parametrize("kind", ["txt", "csv", "jsonl.gz", "parquet"])
@pytest.mark.parametrize("size", [7, 60, 150])
def test_batches_are_the_same_wherever_a_run_goes_on(tmp_path: Path, kind: str, size: int) -> None:
    """What a batch holds depends on where it begins, not on how one came there."""
    source, _, columns = make(tmp_path, kind)
    named = [column for column in columns.split(",") if column]
    with open_reader(str(source), columns=named) as reader:
        whole = [(batch.position, batch.texts) for batch in reader.batches(size)]
    assert len(whole) > 1
    for done, (position, _) in enumerate(whole[:-1], start=1):
        with open_reader(str(source), columns=named, start=position) as reader:
            rest = [(batch.position, batch.texts) for batch in reader.batches(size)]
        assert rest == whole[done:]
