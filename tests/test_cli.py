"""The command line: what it refuses, what it writes, and how it ends."""

# ruff: noqa: E501  (a case a line is easier to read than one in three)

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from commands import COMMAND, listing, run, toy_space

# Three batches of this many lines, so that a run can be stopped in between.
RECORDS = 110_000
LINE = "The red w5, and blue of w9! 1234"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with inputs of every sort, good and bad."""
    toy_space(tmp_path)
    (tmp_path / "a.txt").write_text(f"{LINE}\n" * 3)
    (tmp_path / "a.csv").write_text(f'id,note\n1,"{LINE}"\n')
    (tmp_path / "a.tsv").write_text(f"id\tnote\n1\t{LINE}\n")
    (tmp_path / "a.jsonl").write_text(json.dumps({"id": 1, "note": LINE}) + "\n")
    (tmp_path / "bad.txt").write_bytes(b"canary\ncanary \xff\n")
    (tmp_path / "bad.jsonl").write_text('{"note": "canary"}\n{"note": "canary"\n{"note": "red"}\n')
    (tmp_path / "empty.txt").write_text("")
    pq.write_table(pa.table({"id": [1, 2], "note": [LINE, None]}), tmp_path / "a.parquet")
    np.savez(tmp_path / "nan.npz", words=np.array(["a", "b"]), vectors=np.array([[0.0], [np.nan]]))
    np.savez(tmp_path / "none.npz", words=np.array([], dtype=str), vectors=np.zeros((0, 3)))
    (tmp_path / "cert.json").write_text("{}")
    return tmp_path


def sanitize(folder: Path, *arguments: object, **options: Any) -> Any:
    """Sanitize with a small space, unless another is named."""
    space = [] if "--space" in arguments else ["--space", folder / "toy.space"]
    chosen = [] if "--mechanism" in arguments else ["--mechanism", "santext"]
    epsilon = [] if "--epsilon" in arguments else ["--epsilon", "1"]
    return run("sanitize", *arguments, *space, *chosen, *epsilon, **options)


BAD: list[tuple[str, list[str], str]] = [
    ("missing file", ["none.txt"], "no such file"),
    ("a folder", ["."], "is a folder"),
    ("wrong encoding", ["bad.txt"], "byte 14 (line 2) is not utf-8"),
    ("unknown encoding", ["a.txt", "--encoding", "utf-99"], "unknown encoding"),
    ("missing column", ["a.csv", "--column", "notes"], "no column 'notes' (there are: id, note); did you mean 'note'"),
    ("no column", ["a.jsonl"], "say which column"),
    ("column of a text file", ["a.txt", "--column", "note"], "has no columns"),
    ("parquet column", ["a.parquet", "--column", "x"], "no column 'x' (there are: id, note)"),
    ("parquet numbers", ["a.parquet", "--column", "id"], "holds int64, not text"),
    ("broken JSON", ["bad.jsonl", "--column", "note"], "line 2 is broken JSON"),
    ("epsilon 0", ["a.txt", "--epsilon", "0"], "epsilon must be a finite number above 0, got 0"),
    ("epsilon negative", ["a.txt", "--epsilon", "-1"], "epsilon must be a finite number above 0"),
    ("epsilon NaN", ["a.txt", "--epsilon", "nan"], "epsilon must be a finite number above 0, got nan"),
    ("epsilon infinite", ["a.txt", "--epsilon", "inf"], "epsilon must be a finite number above 0"),
    ("epsilon a word", ["a.txt", "--epsilon", "much"], "not a valid float"),
    ("epsilon by --set", ["a.txt", "--set", "epsilon=2"], "give epsilon with --epsilon"),
    ("unknown mechanism", ["a.txt", "--mechanism", "santxt"], "no mechanism 'santxt'; did you mean santext?"),
    ("unknown parameter", ["a.txt", "--set", "calibrat=tight"], "did you mean calibrate?"),
    ("bad parameter", ["a.txt", "--set", "calibrate=loose"], "calibrate must be one of paper, tight"),
    ("half a parameter", ["a.txt", "--set", "calibrate"], "--set takes NAME=VALUE"),
    ("missing parameter file", ["a.txt", "--set", "calibrate=@none.json"], "none.json: can't be read"),
    ("preset and mechanism", ["a.txt", "--preset", "strict"], "give a preset or a mechanism, not both"),
    ("unknown preset", ["a.txt", "--preset", "stric"], "Invalid value for '--preset'"),
    ("unknown policy", ["a.txt", "--policy", "number=mask"], "policy setting can't be 'number'"),
    ("bad policy", ["a.txt", "--policy", "numbers=maks"], "did you mean 'mask'"),
    ("missing public words", ["a.txt", "--keep", "none"], "--keep takes `stopwords` or a file of words"),
    ("unknown option", ["a.txt", "--epsilonn", "1"], "No such option"),
    ("space with NaN", ["a.txt", "--space", "nan.npz"], "NaN or an infinity"),
    ("space with no words", ["a.txt", "--space", "none.npz"], "no word vectors in it"),
    ("missing space", ["a.txt", "--space", "none"], "none"),
    ("a space that is none", ["a.txt", "--space", "a.parquet"], "a.parquet"),
    ("cosine for santext", ["a.txt", "--metric", "cosine"], "santext needs a space whose metric is euclidean or angular"),
    ("output folder missing", ["a.txt", "-o", "none/out.txt"], "there is no folder"),
    ("output is a folder", ["a.txt", "-o", "."], "is a folder"),
    ("output is the input", ["a.txt", "-o", "a.txt"], "is the input itself"),
    ("output of another format", ["a.txt", "-o", "out.csv"], "rename it"),
    ("output not writable", ["a.txt", "-o", "/proc/out.txt"], "/proc/out.txt: can't be written"),
    ("certificate folder missing", ["a.txt", "-o", "o.txt", "--certificate", "none/c.json"], "does not exist"),
    ("certificate is the output", ["a.txt", "-o", "o.txt", "--certificate", "o.txt"], "would overwrite"),
    ("resume without output", ["a.txt", "--resume"], "--resume needs an output file"),
    ("JSON without output", ["a.txt", "--json"], "--json needs an output file"),
    ("no workers", ["a.txt", "--workers", "0"], "--workers"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "says"), [c[1:] for c in BAD], ids=[c[0] for c in BAD])
def test_bad_input_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], says: str
) -> None:
    """Exit code 2, one line, nothing written. (--quiet: without the two lines of what was chosen)"""
    monkeypatch.chdir(folder)
    before = listing(folder)
    if "-o" not in arguments and "--resume" not in arguments and "--json" not in arguments:
        arguments = [*arguments, "-o", f"out{Path(arguments[0]).suffix or '.txt'}"]
    done = sanitize(folder, *arguments, "--quiet")
    error = done.stderr.decode()
    assert done.returncode == 2, error
    assert error.count("\n") == 1, error
    assert error.startswith("deniable: ")
    assert says in error
    assert "canary" not in error
    assert done.stdout == b""
    assert listing(folder) == before


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["verify", "none.json"], "none.json: can't be read"),
        (["verify", "a.txt"], "not a certificate: not JSON"),
        (["verify", "cert.json"], "not a certificate: missing"),
        (["verify", "bad.txt"], "not a certificate: not UTF-8"),
        (["certify", "--mechanism", "nothing", "--epsilon", "1"], "no mechanism 'nothing'"),
        (["certify", "--mechanism", "santext"], "santext needs epsilon"),
        (["mechanisms", "nothing"], "no mechanism 'nothing'"),
        (["sanitise"], "No such command"),
        (["space", "inspect", "none"], "none"),
    ],
)
def test_other_bad_calls_are_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], says: str
) -> None:
    monkeypatch.chdir(folder)
    before = listing(folder)
    done = run(*arguments)
    assert done.returncode == 2
    assert says in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1
    assert listing(folder) == before


def test_without_quiet_the_error_is_still_one_line(folder: Path) -> None:
    done = sanitize(folder, folder / "bad.jsonl", "--column", "note", "-o", folder / "o.jsonl")
    lines = done.stderr.decode().splitlines()
    assert len(lines) == 1
    assert "line 2 is broken JSON" in lines[0]


def test_the_promise_is_said_at_the_end(folder: Path) -> None:
    done = sanitize(folder, folder / "a.txt", "-o", folder / "o.txt")
    lines = done.stderr.decode().splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("deniable: promised, for each token")
    assert "3 records" in lines[1]


def test_an_empty_file_is_valid(folder: Path) -> None:
    done = sanitize(folder, folder / "empty.txt", "-o", folder / "out.txt")
    assert done.returncode == 0
    assert (folder / "out.txt").read_bytes() == b""


def test_broken_records_are_skipped_and_counted(folder: Path) -> None:
    arguments = [folder / "bad.jsonl", "--column", "note", "-o", folder / "out.jsonl"]
    done = sanitize(folder, *arguments, "--on-error", "skip", "--json", "--quiet")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["document"]["skipped"] == 1
    assert len((folder / "out.jsonl").read_text().splitlines()) == 2
    assert b"1 broken ones skipped" in sanitize(folder, *arguments, "--on-error", "skip").stderr


def test_a_file_without_options_is_sanitized_and_the_choice_is_said(folder: Path) -> None:
    done = run("sanitize", folder / "a.txt")
    assert done.returncode == 0
    lines = done.stderr.decode().splitlines()
    assert lines[0].startswith("deniable: preset balanced (")
    assert lines[1].startswith("deniable: promises, ")
    assert len(lines) == 3  # and what was done
    out = done.stdout.decode().splitlines()
    assert len(out) == 3
    assert all(one.count(" ") == LINE.count(" ") for one in out)


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.tsv", "a.jsonl", "a.parquet", "-"])
def test_every_format(folder: Path, name: str) -> None:
    """The structure stays, the other columns pass, and the certificate counts and verifies."""
    columns = [] if name in ("a.txt", "-") else ["--column", "note"]
    source = name if name == "-" else folder / name
    target = folder / f"out{Path(name).suffix or '.txt'}"
    certificate = folder / "safe.cert.json"
    given = f"{LINE}\n{LINE}\n".encode()
    done = sanitize(
        folder, source, *columns, "-o", target, "--certificate", certificate, stdin=given
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == b""
    assert b"\r" not in done.stderr, "no progress where nobody watches"
    if name == "a.parquet":
        table = pq.read_table(target).to_pydict()
        assert table["id"] == [1, 2]
        assert table["note"][1] is None
        cells = table["note"][:1]
    elif name == "a.jsonl":
        record = json.loads(target.read_text())
        assert record["id"] == 1
        cells = [record["note"]]
    elif name in ("a.csv", "a.tsv"):
        header, row = target.read_text().splitlines()
        assert header == (folder / name).read_text().splitlines()[0]
        assert row.startswith("1")
        cells = [row.partition("\t" if name == "a.tsv" else ",")[2].strip('"')]
    else:
        cells = target.read_text().splitlines()
        assert len(cells) == (2 if name == "-" else 3)
    for cell in cells:
        assert len(cell.split(" ")) == len(LINE.split(" "))
        assert cell.split(" ")[-1].isdigit()
    data = json.loads(certificate.read_text())
    assert data["document"]["tokens_charged"] == 7 * len(cells)
    assert data["randomness"] == "os-entropy"
    assert ("column id" in data["in_clear"]) == bool(columns)
    checked = run("verify", certificate, "--space", folder / "toy.space")
    assert checked.returncode == 0, checked.stdout
    assert checked.stdout.decode().splitlines()[-1] == "verified"


def test_verify_and_certify_end_with_1_when_a_promise_does_not_hold(folder: Path) -> None:
    certificate = folder / "c.json"
    sanitize(folder, folder / "a.txt", "-o", folder / "o.txt", "--certificate", certificate)
    text = certificate.read_text().replace('"epsilon": 1.0', '"epsilon": 0.5')
    certificate.write_text(text)
    done = run("verify", certificate, "--space", folder / "toy.space")
    assert done.returncode == 1
    assert done.stdout.decode().splitlines()[-1] == "NOT VERIFIED"
    assert (
        run("verify", certificate, "--space", folder / "toy.space", "--limit", "5").returncode == 1
    )
    done = run(
        "certify",
        "--mechanism",
        "santext",
        "--epsilon",
        "2",
        "--space",
        folder / "toy.space",
        "--json",
    )
    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert found["holds"]
    assert found["worst"] <= 1


def test_certify_ends_with_1_when_the_promise_is_false(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from deniable.cli import _run  # noqa: PLC0415  (in this process, to break the promise)
    from deniable.kernels.exponential import ExponentialKernel  # noqa: PLC0415

    true = ExponentialKernel.promised
    monkeypatch.setattr(ExponentialKernel, "promised", lambda self, a, b: true(self, a, b) / 3)
    arguments = ["certify", "--mechanism", "santext", "--epsilon", "1"]
    with pytest.raises(SystemExit) as ended:
        _run([*arguments, "--space", str(folder / "toy.space")])
    assert ended.value.code == 1


def test_lists(folder: Path) -> None:
    names = [one["name"] for one in json.loads(run("mechanisms", "--json").stdout)]
    assert names == sorted(names)
    assert "santext" in names
    assert "Yue et al." in run("mechanisms", "santext").stdout.decode()
    assert [one["name"] for one in json.loads(run("presets", "--json").stdout)] == [
        "strict",
        "balanced",
        "fluent",
    ]


def big(folder: Path, lines: int = RECORDS) -> Path:
    path = folder / "big.txt"
    path.write_text(f"{LINE} {LINE} {LINE}\n" * lines)
    return path


def start(folder: Path, source: Path, *more: str) -> subprocess.Popen[bytes]:
    arguments = ["sanitize", str(source), "--space", str(folder / "toy.space"), "--quiet"]
    arguments += ["--mechanism", "santext", "--epsilon", "1", "-o", str(folder / "out.txt")]
    return subprocess.Popen([*COMMAND, *arguments, *more], stderr=subprocess.PIPE)


def wait_for_journal(folder: Path, process: subprocess.Popen[bytes]) -> None:
    """Wait until a first batch is noted; however slow the machine is, that comes."""
    while not (folder / ".out.txt.deniable-journal.json").exists():
        assert process.poll() is None, "ended before it could be stopped"
        time.sleep(0.005)


@pytest.mark.parametrize(
    ("sign", "workers"),
    [(signal.SIGKILL, 1), (signal.SIGINT, 1), (signal.SIGINT, 2), (signal.SIGTERM, 1)],
)
def test_a_stopped_run_leaves_no_output_and_goes_on(folder: Path, sign: int, workers: int) -> None:
    source = big(folder)
    before = set(folder.iterdir())
    process = start(folder, source, "--workers", str(workers))
    wait_for_journal(folder, process)
    process.send_signal(sign)
    error = process.communicate(timeout=60)[1].decode()
    assert process.returncode == (-9 if sign == signal.SIGKILL else 130), error
    assert not (folder / "out.txt").exists()
    if sign != signal.SIGKILL:
        # An empty line may close the terminal's ^C.
        assert error.strip().count("\n") == 0
        assert "interrupted; nothing was written, and the same command with --resume" in error
    left = {path.name for path in set(folder.iterdir()) - before}
    assert left == {".out.txt.deniable-part", ".out.txt.deniable-journal.json"}
    certificate = folder / "c.json"
    done = start(folder, source, "--resume", "--certificate", str(certificate))
    assert done.wait(timeout=100) == 0
    done.communicate()
    assert len((folder / "out.txt").read_text().splitlines()) == RECORDS
    document = json.loads(certificate.read_text())["document"]
    assert document["records"] == RECORDS
    assert document["tokens"] == RECORDS * 24
    assert document["tokens_charged"] == RECORDS * 21
    assert set(folder.iterdir()) - before == {folder / "out.txt", certificate}


def limit_files() -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))


def test_a_full_disk(folder: Path) -> None:
    """The system refuses to let a file grow: one line, and nothing is left."""
    source = big(folder, 10_000)
    before = listing(folder)
    command = [*COMMAND, "sanitize", str(source), "--space", str(folder / "toy.space"), "--quiet"]
    command += ["--mechanism", "santext", "--epsilon", "1", "-o", str(folder / "out.txt")]
    done = subprocess.run(command, capture_output=True, check=False, preexec_fn=limit_files)
    assert done.returncode == 2
    assert (
        done.stderr.decode()
        == f"deniable: {folder}/out.txt: no space left; free some, or write to another disk\n"
    )
    assert listing(folder) == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_device_for_stdout(folder: Path) -> None:
    command = [*COMMAND, "sanitize", str(folder / "a.txt"), "--space", str(folder / "toy.space")]
    command += ["--mechanism", "santext", "--epsilon", "1", "--quiet"]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1


def test_a_reader_that_goes_away_is_no_error(folder: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "sanitize", str(big(folder, 20_000)), "--space", str(folder / "toy.space"), "--mechanism", "santext", "--epsilon", "1", "--quiet"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    os.read(process.stdout.fileno(), 10)
    process.stdout.close()
    process.wait(timeout=60)
    assert process.stderr.read() == b""
    process.stderr.close()


def test_resume_never_draws_a_finished_output_again(folder: Path) -> None:
    assert sanitize(folder, folder / "a.txt", "-o", folder / "once.txt").returncode == 0
    before = (folder / "once.txt").read_bytes()
    done = sanitize(folder, folder / "a.txt", "-o", folder / "once.txt", "--resume")
    assert done.returncode == 2
    assert b"nothing to resume" in done.stderr
    assert (folder / "once.txt").read_bytes() == before


def test_a_certificate_of_the_embedded_space_with_options_verifies(folder: Path) -> None:
    certificate = folder / "small.cert.json"
    options = ["--mechanism", "custext", "--epsilon", "1", "--metric", "angular", "--limit", "300"]
    done = run("sanitize", folder / "a.txt", *options, "--certificate", certificate)
    assert done.returncode == 0
    found = run("verify", certificate)
    assert found.returncode == 0, found.stdout
    assert run("verify", certificate, "--limit", "200").returncode == 1


def test_without_a_command_the_help_is_shown() -> None:
    done = run()
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) > 10


def test_an_overridden_preset_does_not_say_what_it_was_chosen_for(folder: Path) -> None:
    arguments = ["sanitize", folder / "a.txt", "--limit", "400", "--set", "clusters=20"]
    done = run(*arguments, "--epsilon", "2")
    assert b"preset balanced (changed by options): clusant, epsilon 2.0" in done.stderr


def test_columns_that_pass_are_said(folder: Path) -> None:
    (folder / "two.csv").write_text("id,note\n7,hello\n")
    done = sanitize(folder, folder / "two.csv", "--column", "note", "-o", folder / "two.out.csv")
    assert b"in clear, because not named: id" in done.stderr


def test_a_closed_pipe_is_not_a_broken_promise() -> None:
    """The reader of stdout goes away while more is to come."""
    command = [*COMMAND, "sanitize", "--quiet", "--mechanism", "random", "--limit", "50"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.close()
        process.stdin.write(b"red\n" * 100_000)
        process.stdin.close()
        assert process.wait(60) == 141


def test_a_preset_says_nothing_of_other_spaces_than_the_one_it_was_measured_on(
    folder: Path,
) -> None:
    for more in (("--space", folder / "toy.space"), ("--limit", 500), ("--metric", "cosine")):
        said = run("sanitize", folder / "a.txt", *more).stderr.decode()
        assert "preset balanced (changed by options)" in said
        assert "guessed" not in said
    assert "guessed less than" in run("sanitize", folder / "a.txt").stderr.decode()


def test_words_in_clear_are_counted_on_stderr(folder: Path) -> None:
    plus = ("--mechanism", "custext+", "--epsilon", "2")
    said = run("sanitize", folder / "a.txt", *plus).stderr.decode()
    assert "9 in clear or kept by the mechanism (stop words)" in said
    said = run("sanitize", folder / "a.txt", "--keep", "stopwords").stderr.decode()
    assert "9 in clear (stop word)" in said


def test_an_ending_that_names_no_format_is_said(folder: Path) -> None:
    (folder / "a.json").write_text("red\n")
    assert "its ending names no format" in run("sanitize", folder / "a.json").stderr.decode()
    assert "ending" not in run("sanitize", folder / "a.txt").stderr.decode()


def test_byte_order_marks_are_no_part_of_a_word(folder: Path) -> None:
    mark = "\ufeff"
    (folder / "v.txt").write_text(f"{mark}red 1 0\nblue 0 1\n")
    (folder / "keep.txt").write_text(f"{mark}red\r\nblue\r\n")
    done = run("space", "build", "--vectors", folder / "v.txt", "-o", folder / "v")
    assert done.returncode == 0
    assert (folder / "v" / "words.txt").read_text() == "red\nblue\n"
    kept = run("sanitize", "--keep", folder / "keep.txt", stdin=b"red blue\n")
    assert kept.stdout == b"red blue\n"


def test_the_first_record_of_a_file_without_a_header_is_not_shown(folder: Path) -> None:
    (folder / "bare.csv").write_text("Alice Smith,HIV positive,1980\nBob,cancer,1970\n")
    (folder / "keys.jsonl").write_text('{"Alice has a cold": 1, "text": "red"}\n')
    for name, more in (("bare.csv", ("--column", "note")), ("bare.csv", ()), ("keys.jsonl", ())):
        done = run("sanitize", folder / name, *more)
        assert done.returncode == 2
        assert b"Alice" not in done.stderr
        assert b"the first record has" in done.stderr


def test_ever_new_keys_do_not_make_an_endless_certificate(folder: Path) -> None:
    lines = "".join(f'{{"k{i}": 1, "note": "red"}}\n' for i in range(5000))
    (folder / "many.jsonl").write_text(lines)
    output = ("-o", folder / "o.jsonl", "--certificate", folder / "o.json")
    done = run("sanitize", folder / "many.jsonl", "--column", "note", *output)
    assert done.returncode == 0
    assert len(done.stderr) < 2000
    assert (folder / "o.json").stat().st_size < 30_000
    assert json.loads((folder / "o.json").read_text())["in_clear"]["other columns"]["count"] == 4900
    assert run("verify", folder / "o.json", "--limit", 500).returncode == 1  # another space


def test_a_killed_worker_loses_nothing(folder: Path) -> None:
    process = start(folder, big(folder), "--workers", "2")
    wait_for_journal(folder, process)
    children = psutil.Process(process.pid).children()
    workers = [child for child in children if "spawn_main" in " ".join(child.cmdline())]
    workers[-1].kill()
    error = process.communicate(timeout=100)[1].decode()
    # A worker that had nothing left to do isn't missed.
    assert process.returncode in (0, 130), error
    if process.returncode == 130:
        assert "--resume goes on" in error
        assert not (folder / "out.txt").exists()
        again = start(folder, folder / "big.txt", "--resume")
        again.communicate(timeout=100)
        assert again.returncode == 0
    assert (folder / "out.txt").read_text().count("\n") == RECORDS


def test_a_space_that_states_a_wrong_diameter_is_not_certified(folder: Path) -> None:
    meta = folder / "toy.space" / "meta.json"
    meta.write_text(json.dumps({**json.loads(meta.read_text()), "diameter": 0.001}))
    done = run("certify", "--mechanism", "santext", "--epsilon", 1, "--space", folder / "toy.space")
    assert done.returncode == 2
    assert b"states a diameter of 0.001" in done.stderr
