"""From a file to a file: batches are read, sanitized by one or several processes, and written.

Batches go out in the order in which they came in. Only a few are in flight, so memory doesn't
grow with the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal

from deniable.certificate import Certificate
from deniable.errors import InputError, ParameterError
from deniable.files import Batch, Reader, Writer, find_checkpoint, open_reader, open_writer
from deniable.mechanism import Mechanism
from deniable.policy import Policy
from deniable.sanitizer import Sanitizer
from deniable.space import Space
from deniable.strategy import Chooser
from deniable.tally import Tally
from deniable.workers import Workers

Done = tuple[Batch, list[str], Tally]
Task = tuple[list[str], list[int] | None]
NOT_KEPT = "nothing was kept: --strategy dataset can't be gone on with, start anew"
GO_ON = "nothing was written, and the same command with --resume goes on after what was done of it"
Watcher = Callable[[Batch, Tally], None]


@dataclass(frozen=True)
class SpaceChoice:
    """How to load a space again in another process; the embedded one without a path."""

    path: str | None = None
    metric: str | None = None
    unit_diameter: bool = False
    limit: int | None = None

    def load(self) -> Space:
        """Load the space."""
        if self.path is None and not self.metric and not self.unit_diameter and not self.limit:
            return Space.default()
        path = self.path or Space.default_path()
        return Space.load(path, self.metric, unit_diameter=self.unit_diameter, limit=self.limit)


@dataclass(frozen=True)
class Job:
    """One file to sanitize."""

    source: str
    target: str
    columns: tuple[str, ...] = ()
    format: str | None = None
    encoding: str = "utf-8"
    on_error: Literal["stop", "skip"] = "stop"
    resume: bool = False
    workers: int = 1


def run(
    sanitizer: Sanitizer,
    choice: SpaceChoice,
    job: Job,
    watch: Watcher,
    opened: Callable[[], None] = lambda: None,
    certified: Callable[[Certificate], None] = lambda _: None,
) -> Certificate:
    """Sanitize a file and return its certificate; the target appears whole or not at all.

    `opened` is called once input and output are open, before anything is sanitized; `certified`
    with the certificate before the output appears, which it doesn't if the call fails.
    """
    if job.resume and sanitizer.strategy == "dataset":
        raise ParameterError(
            "--resume can't go on with --strategy dataset, whose words' draws are never written to "
            "disk; start anew without --resume"
        )
    fingerprint = _fingerprint(sanitizer)
    start = find_checkpoint(job.target, job.source, fingerprint) if job.resume else None
    if job.resume and start is None and Path(job.target).exists():
        # Sanitizing it again would be a second draw, which an attacker could compare.
        raise InputError(
            f"{job.target}: nothing to resume, it is there already; to draw it anew (which costs "
            "epsilon again) leave --resume out"
        )
    reader = open_reader(
        job.source,
        columns=job.columns,
        format=job.format,
        encoding=job.encoding,
        on_error=job.on_error,
        start=start,
    )
    with reader, _open_writer(job, reader, fingerprint) as writer, _kept(writer, sanitizer, job):
        tally = Tally.from_dict(writer.saved) if writer.saved else Tally()
        opened()
        for batch, texts, part in _sanitized(sanitizer, choice, reader, job.workers):
            part.records = batch.records
            tally.add(part)
            tally.skipped = reader.skipped
            writer.write(batch, texts, tally.to_dict())
            watch(batch, part)
        tally.skipped = reader.skipped
        found = sanitizer.certificate(tally, reader.passed)
        certified(found)
        writer.commit()
    return found


@contextmanager
def _kept(writer: Writer, sanitizer: Sanitizer, job: Job) -> Iterator[None]:
    """Throw away what can never be gone on with, and tell a break what can be."""
    try:
        yield
    except BaseException as error:
        if sanitizer.strategy == "dataset":
            # The codebook ends with this process.
            writer.discard()
            error.add_note(NOT_KEPT)
        elif "-" not in (job.source, job.target):
            error.add_note(GO_ON)
        raise


def _fingerprint(sanitizer: Sanitizer) -> dict[str, Any]:
    """What must be the same for a broken run to be continued; nothing of the private text."""
    return {
        "mechanism": sanitizer.mechanism.name,
        "parameters": repr(sorted(sanitizer.mechanism.parameters().items())),
        "space": sanitizer.space.hash,
        "policy": sanitizer.policy.to_dict(),
        "strategy": sanitizer.strategy,
    }


def _open_writer(job: Job, reader: Reader, fingerprint: dict[str, Any]) -> Writer:
    return open_writer(job.target, reader, fingerprint=fingerprint, resume=job.resume)


def _sanitized(
    sanitizer: Sanitizer, choice: SpaceChoice, reader: Reader, workers: int
) -> Iterator[Done]:
    if workers > 1:
        yield from _in_processes(sanitizer, choice, reader, workers)
        return
    for batch in reader.batches():
        texts, tally = sanitizer.sanitize_texts(batch.texts, batch.cells)
        yield batch, texts, tally


def _in_processes(
    sanitizer: Sanitizer, choice: SpaceChoice, reader: Reader, workers: int
) -> Iterator[Done]:
    """Hand batches to processes that each bind the mechanism for themselves."""
    settings = (sanitizer.mechanism, sanitizer.policy, sanitizer.strategy)
    # One codebook for all, or a word would have a draw in each process.
    shared = sanitizer.chooser if sanitizer.strategy == "dataset" else None
    prepare = partial(_texts_sanitizer, choice, *settings, shared)
    with Workers(workers, prepare) as pool:
        for batch, (texts, tally) in pool.in_order(reader.batches(), attrgetter("texts", "cells")):
            yield batch, texts, tally


def _texts_sanitizer(
    choice: SpaceChoice,
    mechanism: Mechanism,
    policy: Policy,
    strategy: str,
    shared: Chooser | None,
) -> Callable[[Task], tuple[list[str], Tally]]:
    made = Sanitizer(mechanism, space=choice.load(), policy=policy, strategy=strategy)
    made.chooser = shared or made.chooser
    return lambda task: made.sanitize_texts(*task)
