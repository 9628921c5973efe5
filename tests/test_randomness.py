"""Randomness comes from the operating system, and no two streams are ever the same."""

from __future__ import annotations

import inspect
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import deniable
import toys
from deniable import Sanitizer, mechanism, mechanisms
from deniable.files import Batch
from deniable.pipeline import Job, SpaceChoice, run
from deniable.sampling import Randomness, randomness
from deniable.stock import Stock
from deniable.tally import Tally
from deniable.testing import seeded

PRINT = "from deniable.sampling import randomness; print(randomness().words(8).tolist())"


def test_the_key_is_the_operating_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    true = os.urandom

    def urandom(size: int) -> bytes:
        asked.append(size)
        return true(size)

    monkeypatch.setattr(os, "urandom", urandom)
    source = Randomness()
    assert sum(asked) >= 32 + 16
    assert source.label == "os-entropy"


def test_two_sources_two_calls_and_two_processes_differ() -> None:
    streams = [Randomness().words(8).tolist() for _ in range(20)]
    streams += [randomness().words(8).tolist() for _ in range(20)]
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", PRINT], capture_output=True, text=True, check=True
        )
        streams.append([int(word) for word in done.stdout.strip("[]\n").split(",")])
    every = [word for stream in streams for word in stream]
    assert len(set(every)) == len(every)


def _send(work: Callable[[], Any], writer: int) -> None:
    os.write(writer, repr(work()).encode())


def in_forks(work: Callable[[], Any], count: int) -> list[str]:
    """Run the same work in forked children."""
    context = multiprocessing.get_context("fork")
    found = []
    for _ in range(count):
        reader, writer = os.pipe()
        child = context.Process(target=_send, args=(work, writer))
        child.start()
        os.close(writer)
        with os.fdopen(reader) as file:
            found.append(file.read())
        child.join()
        assert child.exitcode == 0
    return found


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_children_differ_from_each_other_and_from_the_parent() -> None:
    randomness().words(3)
    streams = in_forks(lambda: randomness().words(4).tolist(), 3)
    streams.append(repr(randomness().words(4).tolist()))
    assert len(set(streams)) == 4
    assert all(len(stream) > 40 for stream in streams)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("name", mechanisms())
def test_draws_made_ahead_are_not_inherited(name: str) -> None:
    kernel = mechanism(name, epsilon=1.0).bind(toys.space_for(name))
    stock, ids = Stock(kernel), np.full(60, 9, dtype=np.int64)
    stock.sample(ids)
    stock.sample(ids)  # from here on, some are ahead
    outputs = in_forks(lambda: stock.sample(ids).tolist(), 2)
    outputs.append(repr(stock.sample(ids).tolist()))
    assert len(set(outputs)) == 3


def test_threads_share_one_stream_without_sharing_words() -> None:
    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(lambda _: randomness().words(20_000), range(24)))
    every = np.concatenate(parts)
    assert len(np.unique(every)) == len(every)


def test_two_workers_of_a_run_and_two_runs_differ(tmp_path: Path) -> None:
    """Every line is the same text, so equal outputs could only come from equal streams."""
    space = tmp_path / "toy.space"
    toys.space("random").save(space)
    choice = SpaceChoice(str(space))
    line = " ".join(["the red and blue of"] * 12)
    source = tmp_path / "in.txt"
    lines = 100_000 * 5 // len(line)
    source.write_text(f"{line}\n" * lines * 17)  # three batches
    outputs, batches = [], []

    def watch(batch: Batch, _: Tally) -> None:
        batches.append(batch.records)

    for number in range(2):
        target = tmp_path / f"out{number}.txt"
        job = Job(str(source), str(target), workers=2)
        run(Sanitizer("santext", 0.01, space=choice.load()), choice, job, watch)
        outputs += target.read_text().splitlines()
    assert len(batches) >= 6
    assert len(outputs) == lines * 34
    assert len(set(outputs)) == len(outputs)


def public_functions() -> list[Any]:
    found: list[Any] = []
    for name in deniable.__all__:
        one = getattr(deniable, name)
        found.append(one)
        if inspect.isclass(one):
            found += [value for key, value in vars(one).items() if not key.startswith("_")]
    return [
        one.__func__ if isinstance(one, classmethod | staticmethod) else one
        for one in found
        if callable(one) or isinstance(one, classmethod | staticmethod)
    ]


def test_nothing_public_takes_a_seed() -> None:
    words = ("seed", "rng", "random_state", "generator")
    for one in [*public_functions(), *mechanisms().values()]:
        try:
            names = list(inspect.signature(one).parameters)
        except ValueError:
            continue
        assert not [name for name in names if any(word in name.lower() for word in words)], one


def test_the_command_line_takes_no_seed() -> None:
    from deniable.cli import deniable as commands  # noqa: PLC0415 (a click group)

    for command in commands.commands.values():
        assert not [p.name for p in command.params if "seed" in str(p.name)]


@pytest.mark.parametrize("name", mechanisms())
def test_a_seed_repeats_and_marks_the_certificate(name: str) -> None:
    sanitizer = Sanitizer(name, 1.0, space=toys.space_for(name))
    text = "The red w5, and blue of w9? 1234 unknown"
    outs = []
    for seed in (7, 7, 8):
        with seeded(seed):
            outs.append([sanitizer.sanitize(text) for _ in range(5)])
    assert [o.text for o in outs[0]] == [o.text for o in outs[1]]
    assert [o.text for o in outs[0]] != [o.text for o in outs[2]]
    assert {o.certificate.randomness for o in outs[0]} == {"seeded: not private"}
    after = [sanitizer.sanitize(text) for _ in range(5)]
    assert {o.certificate.randomness for o in after} == {"os-entropy"}
    assert [o.text for o in after] != [o.text for o in outs[0]]


def test_threads_of_one_sanitizer_share_nothing() -> None:
    source = Randomness()
    with ThreadPoolExecutor(8) as pool:
        streams = list(pool.map(lambda _: source.words(1000).tolist(), range(64)))
    assert len({word for stream in streams for word in stream}) == 64_000


def test_threads_of_one_sanitizer_count_every_token() -> None:
    sanitizer = Sanitizer(mechanism="random", space=toys.space("random"))
    texts = [" ".join(f"{i}x{j} word{j} {i}" for j in range(30)) for i in range(64)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(sanitizer.sanitize, texts))
    assert {one.certificate.in_clear["identifier"]["count"] for one in found} == {60}
    assert {one.certificate.in_clear["number"]["count"] for one in found} == {30}
