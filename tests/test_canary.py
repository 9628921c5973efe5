"""Private words planted in the input never show up where nobody asked for them."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import toys
from commands import COMMAND, listing, run, toy_space
from deniable import Policy, Sanitizer, Space, mechanism, mechanisms
from deniable.errors import DeniableError
from deniable.files import open_reader
from deniable.plan import Plan
from deniable.stock import Stock
from deniable.strategy import STRATEGIES, EachToken

# Unknown words, a name, numbers, an identifier, an address, symbols, and words in other scripts.
SECRETS = (
    "Zanzibarella", "Xqvortham", "O'Quimby", "4711-9082-3377-1209-4561", "ZQ12-QX77",
    "quimby.z@example.org", "https://q.example.org/zanz", "🦄", "Ζαφείρης", "Щукарёв", "秘密",
)  # fmt: skip
# The part of each that may not appear, in lower case; none of them comes up by chance in a hash,
# and fresh digits give so long a number once in 10^20 draws.
TRACES = (
    "zanzibarella", "xqvortham", "quimby", "4711-9082-3377-1209-4561", "zq12", "qx77",
    "example.org", "zanz", "🦄", "ζαφείρης", "щукарёв", "秘密", "\\u0396", "\\ud83e",
)  # fmt: skip
TEXT = "the red " + " and ".join(SECRETS) + " of blue, " + SECRETS[0].upper() + "'s."


def clean(text: str) -> bool:
    """Whether no trace is in a text."""
    lower = text.lower()
    return not [trace for trace in TRACES if trace in lower]


def space(name: str = "santext") -> Space:
    """Return a toy space that the mechanism accepts."""
    return toys.space_for(name)


def test_the_canary_is_seen_where_it_is() -> None:
    assert not clean(TEXT)
    assert all(not clean(secret) for secret in SECRETS)


@pytest.mark.parametrize("policy", [Policy(), Policy(unknown="mask"), Policy(numbers="mask", case="lower", symbols="draw", emails="draw"), Policy(numbers="words")], ids=str)  # fmt: skip  # noqa: E501
@pytest.mark.parametrize("name", mechanisms())
def test_no_unknown_token_passes_unless_declared(name: str, policy: Policy) -> None:
    given = next(toys.settings_of(name, mechanisms()[name]))
    sanitizer = Sanitizer(name, 1.0, space=space(name), policy=policy, **given)
    for _ in range(5):
        out = sanitizer.sanitize(TEXT)
        assert clean(out.text)
        assert clean("".join(sanitizer.sanitize_texts([TEXT, TEXT])[0]))
        assert clean(out.certificate.to_json())
        assert clean(repr(out))
    declared = Sanitizer(name, 1.0, space=space(name), policy=Policy(unknown="keep"), **given)
    out = declared.sanitize("Xqvortham")
    assert out.text == "Xqvortham"
    assert "unknown word" in out.certificate.in_clear


def whole() -> Any:
    """The end of the one record that TEXT is."""
    return np.array([len(TEXT.split(" "))])


def public_objects(sanitizer: Sanitizer) -> Iterator[Any]:
    """Yield everything that a debugger or a log may print."""
    out = sanitizer.sanitize(TEXT)
    texts, tally = sanitizer.sanitize_texts([TEXT, "red"])
    decided = sanitizer.plan.decide(TEXT.split(" "), whole())
    drawn = sanitizer.plan.draw(decided, sanitizer.chooser)
    yield from (decided, sanitizer.prepare([TEXT]))
    yield from (sanitizer, sanitizer.kernel, sanitizer.mechanism, sanitizer.guarantee)
    yield from (sanitizer.space, sanitizer.policy, sanitizer.plan, drawn, sanitizer.chooser)
    yield from (out, out.certificate, out.tokens, texts, tally, tally.to_dict())
    yield from (out.certificate.verify(sanitizer.space), sanitizer.kernel.certify())
    yield from (sanitizer.policy.decide(secret, sanitizer.space.index) for secret in SECRETS)
    yield from drawn.decisions


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", ["santext", "custext", "clusant"])
def test_no_repr_shows_private_text(name: str, strategy: str) -> None:
    for one in public_objects(Sanitizer(name, 1.0, space=space(name), strategy=strategy)):
        assert clean(repr(one)), type(one)
        assert clean(str(one)), type(one)


def test_what_is_remembered_is_remembered_in_memory_only() -> None:
    """The plan does hold tokens: this is why its repr must not."""
    sanitizer = Sanitizer("santext", 1.0, space=space())
    sanitizer.sanitize(TEXT)
    assert isinstance(sanitizer.plan, Plan)
    assert SECRETS[0] in sanitizer.plan
    assert isinstance(sanitizer.chooser, EachToken)
    assert isinstance(sanitizer.chooser._source, Stock)


def spoken(error: BaseException) -> str:
    """Everything that an exception, its causes and a log of it would say."""
    lines = traceback.format_exception(error)
    at: BaseException | None = error
    while at is not None:
        lines += [repr(at), str(at), repr(at.args)]
        held = [str(getattr(at, name, "")) for name in ("object", "doc", "filename")]
        lines += held
        at = at.__cause__ or at.__context__
    return "\n".join(lines)


class Failing:
    """A kernel that fails in the middle of the work."""

    def sample(self, ids: Any) -> Any:
        raise RuntimeError(f"no {len(ids)} draws")


def raised() -> Iterator[BaseException]:
    """Yield the error of every path on which private text is at hand."""
    sanitizer = Sanitizer("santext", 1.0, space=space())
    decided = sanitizer.plan.decide(TEXT.split(" "), whole())
    secret: Any = SECRETS[0].encode()
    listed: Any = [TEXT]
    for call in (
        lambda: sanitizer.sanitize(secret),
        lambda: sanitizer.sanitize(listed),
        lambda: sanitizer.sanitize_texts([TEXT, secret]),
        lambda: list(sanitizer.sanitize_many(TEXT)),
        lambda: list(sanitizer.sanitize_many([TEXT, secret])),
        lambda: sanitizer.sanitize_column(listed),
        lambda: sanitizer.plan.draw(decided, EachToken(Failing(), 3)),
    ):
        with pytest.raises((DeniableError, RuntimeError)) as caught:
            call()
        yield caught.value


def test_no_exception_says_private_text() -> None:
    for error in raised():
        # Source lines of this file are no private text, and don't hold the secrets.
        assert clean(spoken(error)), error


def test_nothing_is_logged_or_printed(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.DEBUG):
        for name in mechanisms():
            given = next(toys.settings_of(name, mechanisms()[name]))
            out = Sanitizer(name, 1.0, space=space(name), **given).sanitize(TEXT)
            out.certificate.verify(space(name))
    assert caplog.records == []
    assert capfd.readouterr() == ("", "")


def test_the_cache_is_the_same_for_any_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cache holds what binding computes, and text adds nothing to it."""
    monkeypatch.setenv("DENIABLE_CACHE", str(tmp_path / "cache"))
    sanitizers = []
    for name, cls in mechanisms().items():
        for given in toys.settings_of(name, cls):
            sanitizers.append(Sanitizer(name, 1.0, space=space(name), **given))
    before = listing(tmp_path)
    assert before
    for sanitizer in sanitizers:
        out = sanitizer.sanitize(TEXT)
        list(sanitizer.sanitize_many([TEXT] * 3))
        out.certificate.verify(sanitizer.space)
    assert listing(tmp_path) == before
    assert clean(" ".join(before))
    assert all(clean(content.decode("utf-8", "replace")) for content in before.values())


def look_in(folder: Path) -> None:
    """No file, and no file's name, has a trace."""
    for path in folder.rglob("*"):
        assert clean(path.name)
        if path.is_file():
            with contextlib.suppress(FileNotFoundError):
                assert clean(path.read_bytes().decode("utf-8", "replace")), path


@pytest.mark.parametrize("workers", [1, 2])
def test_a_run_leaves_no_trace_anywhere(tmp_path: Path, workers: int) -> None:
    """Files are looked at during the run: part, journal, cache, temporary folder, stdout."""
    import subprocess  # noqa: PLC0415

    (tmp_path / "private").mkdir()
    source = tmp_path / "private" / "notes.jsonl"
    row = json.dumps({"id": 5, "note": TEXT}, ensure_ascii=False) + "\n"
    source.write_text(row * 20_000)
    target = tmp_path / "public"
    target.mkdir()
    scratch, cache = tmp_path / "tmp", tmp_path / "cache"
    scratch.mkdir()
    settings = {"TMPDIR": str(scratch), "DENIABLE_CACHE": str(cache), "HOME": str(tmp_path / "h")}
    arguments = ["sanitize", str(source), "--column", "note", "--workers", str(workers)]
    arguments += ["--space", str(toy_space(tmp_path)), "--mechanism", "santext", "--epsilon", "1"]
    arguments += ["-o", str(target / "o.jsonl"), "--certificate", str(target / "c.json")]
    with subprocess.Popen(
        [*COMMAND, *arguments],
        env={**os.environ, **settings},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        looked = 0
        while process.poll() is None:
            for folder in (target, scratch, cache, tmp_path / "h"):
                look_in(folder)
            looked += 1
        assert process.stdout is not None
        assert clean(process.stdout.read().decode())
    assert process.returncode == 0
    assert looked > 0
    for folder in (target, scratch, cache, tmp_path / "h"):
        look_in(folder)
    assert sorted(path.name for path in target.iterdir()) == ["c.json", "o.jsonl"]
    assert list(scratch.rglob("*")) == []


BROKEN: list[tuple[str, bytes, list[str]]] = [
    ("a.txt", TEXT.encode() + b"\n\xff", []),
    ("a.jsonl", json.dumps({"note": TEXT}).encode()[:-1] + b"\n", ["--column", "note"]),
    ("a.jsonl", json.dumps({"note": [TEXT]}).encode() + b"\n", ["--column", "note"]),
    ("a.csv", f'id,note\n1,"{TEXT}\n'.encode(), ["--column", "note"]),
    ("a.csv", f'id,note\n1,"x",{SECRETS[0]},3\n'.encode(), ["--column", "note"]),
    ("a.parquet", TEXT.encode(), ["--column", "note"]),
    ("a.txt.gz", TEXT.encode(), []),
    ("a.json", TEXT.encode(), ["--format", "jsonl", "--column", "note"]),
]


@pytest.mark.parametrize(("name", "content", "more"), BROKEN)
def test_no_error_of_a_broken_file_says_private_text(
    tmp_path: Path, name: str, content: bytes, more: list[str]
) -> None:
    (tmp_path / name).write_bytes(content)
    space_path = toy_space(tmp_path)
    done = run(
        "sanitize", tmp_path / name, *more, "--space", space_path,
        "--mechanism", "santext", "--epsilon", "1", "-o", tmp_path / f"out{Path(name).suffix}",
    )  # fmt: skip
    assert done.returncode == 2
    assert clean(done.stdout.decode() + done.stderr.decode())


def test_a_crash_says_where_and_never_what(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that nobody foresaw, with private text in its message."""
    from deniable.cli import _run  # noqa: PLC0415

    (tmp_path / "a.txt").write_text(TEXT)

    def fail(*_: object) -> None:
        raise KeyError(TEXT)

    monkeypatch.setattr(Plan, "draw", fail)
    said = io.StringIO()
    arguments = ["sanitize", str(tmp_path / "a.txt"), "--space", str(toy_space(tmp_path))]
    with contextlib.redirect_stderr(said):
        code = _run([*arguments, "--mechanism", "santext", "--epsilon", "1", "--quiet"])
    assert code == 70
    assert clean(said.getvalue())
    assert "KeyError at test_canary.py" in said.getvalue()


def test_a_batch_of_a_file_shows_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(TEXT)
    with open_reader(str(tmp_path / "a.txt")) as reader:
        assert all(clean(repr(batch)) for batch in reader.batches())
        assert clean(repr(reader))


def test_tokens_of_the_output_do_not_repeat_the_input() -> None:
    out = Sanitizer("santext", 1.0, space=space()).sanitize(TEXT)
    for token in out.tokens:
        assert clean(repr(token))
    kernel = mechanism("santext", epsilon=1.0).bind(space())
    assert clean(repr(kernel))
    assert "canary" in sys.modules[__name__].__name__
