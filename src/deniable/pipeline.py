"""From a file to a file: batches are read, sanitized by one or several processes, and written.

Batches go out in the order in which they came in. Only a few are in flight, so memory doesn't
grow with the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Literal

from deniable.certificate import Certificate
from deniable.errors import BudgetError, DeniableError, InputError, ParameterError
from deniable.files import (
    Batch,
    Reader,
    Writer,
    find_checkpoint,
    open_reader,
    open_writer,
    was_begun,
)
from deniable.mechanism import Mechanism
from deniable.policy import Policy
from deniable.sanitizer import Done, Sanitizer
from deniable.space import Space
from deniable.strategy import SUBJECT, Chooser
from deniable.tally import Tally
from deniable.workers import Workers

# The texts of a batch, its cells, its subjects, and which part of the run it is.
Task = tuple[list[str], list[int] | None, list[str] | None, int]
NOT_KEPT = "nothing was kept: --strategy dataset can't be gone on with, start anew"
GO_ON = "nothing was written, and the same command with --resume goes on after what was done of it"
Watcher = Callable[[Batch, Tally], None]
Refused = Callable[[Mapping[int, BudgetError]], None]


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
    subject_column: str | None = None
    on_refusal: Literal["stop", "skip"] = "stop"


def run(
    sanitizer: Sanitizer,
    choice: SpaceChoice,
    job: Job,
    watch: Watcher,
    opened: Callable[[], None] = lambda: None,
    certified: Callable[[Certificate], None] = lambda _: None,
    refused: Refused = lambda _: None,
) -> Certificate:
    """Sanitize a file and return its certificate; the target appears whole or not at all.

    `opened` is called once input and output are open, before anything is sanitized; `certified`
    with the certificate before the output appears, which it doesn't if the call fails; `refused`
    with what refused records that were left out.
    """
    if job.resume and sanitizer.strategy == "dataset":
        raise ParameterError(
            "--resume can't go on with --strategy dataset, whose words' draws are never written to "
            "disk; start anew without --resume"
        )
    fingerprint = _fingerprint(sanitizer)
    start = find_checkpoint(job.target, job.source, fingerprint) if job.resume else None
    begun = job.resume and was_begun(job.target, job.source, fingerprint)
    if job.resume and not begun and Path(job.target).exists():
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
        subject=job.subject_column,
    )
    with reader, _open_writer(job, reader, fingerprint) as writer, _kept(writer, sanitizer, job):
        progress = _progress(writer.saved, sanitizer)
        if sanitizer.purse is not None and not writer.saved:
            # Whoever goes on after a break must know under which name the first batch was paid.
            writer.begin(progress.to_dict())
        opened()
        for batch, done in _sanitized(sanitizer, choice, job, reader, progress):
            rest = reader.without(batch, done.refused) if done.refused else batch
            done.tally.records = rest.records
            done.tally.refused = len(done.refused)
            progress.add(done.tally, reader.skipped)
            writer.write(rest, done.texts, progress.to_dict())
            watch(batch, done.tally)
            refused(done.refused)
        progress.tally.skipped = reader.skipped
        found = sanitizer.certificate(progress.tally, reader.passed)
        certified(found)
        writer.commit()
    return found


@dataclass
class _Progress:
    """How far a run has come: what is counted, how many batches are written, under which name
    they were paid for."""

    tally: Tally
    parts: int = 0
    run: str | None = None

    def add(self, part: Tally, skipped: int) -> None:
        """Add a batch."""
        self.tally.add(part)
        self.tally.skipped = skipped
        self.parts += 1

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data, for the journal."""
        return {"tally": self.tally.to_dict(), "parts": self.parts, "run": self.run}


def _progress(saved: Mapping[str, Any] | None, sanitizer: Sanitizer) -> _Progress:
    """Go on where a broken run stopped; what it has paid for isn't paid for again."""
    purse = sanitizer.purse
    if not saved:
        return _Progress(Tally(), run=None if purse is None else purse.run)
    if purse is not None and saved["run"] is not None:
        purse.run = saved["run"]
    return _Progress(Tally.from_dict(saved["tally"]), saved["parts"], saved["run"])


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
        elif "-" not in (job.source, job.target) and _may_go_on(error):
            error.add_note(GO_ON)
        raise


def _may_go_on(error: BaseException) -> bool:
    return error.resumable if isinstance(error, DeniableError) else True


def _fingerprint(sanitizer: Sanitizer) -> dict[str, Any]:
    """What must be the same for a broken run to be continued; nothing of the private text."""
    return {
        "mechanism": sanitizer.mechanism.name,
        "parameters": repr(sorted(sanitizer.mechanism.parameters().items())),
        "space": sanitizer.space.hash,
        "policy": sanitizer.policy.to_dict(),
        "strategy": sanitizer.strategy,
        "ledger": None if sanitizer.purse is None else sanitizer.purse.ledger.name,
        "subject": sanitizer.subject,
    }


def _open_writer(job: Job, reader: Reader, fingerprint: dict[str, Any]) -> Writer:
    return open_writer(job.target, reader, fingerprint=fingerprint, resume=job.resume)


def _sanitized(
    sanitizer: Sanitizer, choice: SpaceChoice, job: Job, reader: Reader, progress: _Progress
) -> Iterator[tuple[Batch, Done]]:
    parts = count(progress.parts)

    def task(batch: Batch) -> Task:
        return batch.texts, batch.cells, _subjects(batch, sanitizer), next(parts)

    stop = job.on_refusal == "stop"
    if job.workers > 1:
        prepare = _prepare(sanitizer, choice, stop=stop)
        with Workers(job.workers, prepare) as pool:
            yield from pool.in_order(reader.batches(), task)
        return
    for batch in reader.batches():
        yield batch, sanitizer.sanitize_records(*task(batch), stop=stop)


def _subjects(batch: Batch, sanitizer: Sanitizer) -> list[str] | None:
    """Return the subject of each record: its own, or the one of the whole file."""
    if batch.subjects is not None or sanitizer.subject is None:
        return batch.subjects
    return [sanitizer.subject] * batch.records


def _prepare(
    sanitizer: Sanitizer, choice: SpaceChoice, *, stop: bool
) -> Callable[[], Callable[[Task], Done]]:
    """Return what a worker process calls once: it binds the mechanism for itself."""
    settings = (sanitizer.mechanism, sanitizer.policy, sanitizer.strategy)
    # One codebook for all, or a word would have a draw in each process.
    shared = sanitizer.chooser if sanitizer.strategy == "dataset" else None
    purse = None if sanitizer.purse is None else sanitizer.purse.choice
    return partial(_records_sanitizer, choice, *settings, shared, purse, stop)


def _records_sanitizer(
    choice: SpaceChoice,
    mechanism: Mechanism,
    policy: Policy,
    strategy: str,
    shared: Chooser | None,
    purse: Mapping[str, Any] | None,
    stop: bool,
) -> Callable[[Task], Done]:
    remembered = strategy == SUBJECT
    made = Sanitizer(
        mechanism,
        space=choice.load(),
        policy=policy,
        strategy="token" if remembered else strategy,
        remember=remembered,
        **(purse or {}),
    )
    made.chooser = shared or made.chooser
    return lambda task: made.sanitize_records(*task, stop=stop)
