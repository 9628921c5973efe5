"""What `deniable sanitize` says on stderr: what was chosen, how far it is, what was done."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import click
from tqdm import tqdm

from deniable.certificate import COPIES, Certificate
from deniable.errors import BudgetError
from deniable.files import Batch, format_of
from deniable.leaks import SEEN_IN_FULL
from deniable.mechanism import mechanism as make
from deniable.pipeline import Job
from deniable.presets import PRESETS
from deniable.sanitizer import Sanitizer
from deniable.space import Space
from deniable.strategy import REPETITION, SUBJECT
from deniable.tally import Tally

# How many columns that pass in clear, and how many refusals, are named on stderr.
SHOWN = 20
WHERE = {"dataset": "the data set", SUBJECT: "all records of a subject"}


def warn_of_format(job: Job, quiet: bool) -> None:
    """Say that a file is read as txt because its name says nothing else."""
    if quiet or job.format or job.source == "-" or format_of(job.source):
        return
    click.echo(
        f"deniable: {job.source}: read as txt, its ending names no format; --format names one",
        err=True,
    )


def announce(sanitizer: Sanitizer, preset: str | None) -> None:
    """Say in two lines what a preset chose and what that promises."""
    if preset is None:
        return
    chosen = PRESETS[preset]
    usual = make(chosen.mechanism, **chosen.parameters)
    changed = usual != sanitizer.mechanism or chosen.policy != sanitizer.policy
    # What a preset says of itself was measured on the embedded space.
    changed = changed or sanitizer.space.hash != Space.default().hash
    what = "changed by options" if changed else chosen.why
    settings = sanitizer.mechanism.parameters()
    shown = ", ".join(f"{key} {settings[key]}" for key in chosen.parameters)
    # A bar that is there already makes room.
    with tqdm.external_write_mode(sys.stderr):
        click.echo(f"deniable: preset {preset} ({what}): {chosen.mechanism}, {shown}", err=True)
        click.echo(f"deniable: promises, {sanitizer.guarantee.describe()}", err=True)


class Bar:
    """Bytes done, tokens per second and time left, on a terminal's stderr."""

    def __init__(self, job: Job, quiet: bool) -> None:
        total = None if job.source == "-" else Path(job.source).stat().st_size
        hidden = quiet or not sys.stderr.isatty()
        self._bar = tqdm(
            total=total, unit="B", unit_scale=True, disable=hidden, file=sys.stderr, leave=False
        )
        self._tokens = 0

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.close()

    def update(self, batch: Batch, tally: Tally) -> None:
        """Move the bar by one batch."""
        self._tokens += tally.tokens
        self._bar.update(batch.bytes_read - self._bar.n)
        elapsed = self._bar.format_dict.get("elapsed") or 0.0
        if elapsed:
            self._bar.set_postfix_str(f"{self._tokens / elapsed:,.0f} tokens/s")


def summarise(found: Certificate, sanitizer: Sanitizer | None) -> None:
    """Say what was done, and what it promises unless a preset's announcement said so."""
    document = found.document
    if sanitizer is not None:
        click.echo(f"deniable: promised, {sanitizer.guarantee.describe()}", err=True)
    skipped = f", {document['skipped']:,} broken ones skipped" if document["skipped"] else ""
    refused = found.subject.get("refused", 0)
    skipped += f", {refused:,} left out that budgets refused" if refused else ""
    records = "1 record" if document["records"] == 1 else f"{document['records']:,} records"
    click.echo(
        f"deniable: {records}{skipped}, {document['tokens_charged']:,} of "
        f"{document['tokens']:,} tokens drawn from the mechanism{_repeated(found)}{_rest(found)}; "
        f"at most {document['largest_record']['epsilon']:.4g} epsilon a record",
        err=True,
    )
    columns = [key.removeprefix("column ") for key in found.in_clear if key.startswith("column ")]
    if columns:
        more = f" and {len(columns) - SHOWN:,} more" if len(columns) > SHOWN else ""
        names = ", ".join(columns[:SHOWN]) + more
        click.echo(f"deniable: in clear, because not named: {names}", err=True)


def _repeated(found: Certificate) -> str:
    """Say how many tokens share the draws of others, if a strategy lets them."""
    entry = found.in_clear.get(REPETITION)
    where = WHERE.get(found.strategy, "a record")
    return "" if entry is None else f" (one draw for a word in {where})"


def _rest(found: Certificate) -> str:
    """Say what became of the other tokens: those in clear first."""
    clear = [
        f"{entry['count']:,} in clear or kept by the mechanism ({name})"
        if entry["what"].endswith(COPIES)
        else f"{entry['count']:,} in clear ({name})"
        for name, entry in found.in_clear.items()
        if entry["what"].endswith((COPIES, SEEN_IN_FULL))
    ]
    return "".join(f", {one}" for one in [*clear, "the rest handled by the policy"])


class Refusals:
    """What budgets refused: the first few are said, and the exit code tells."""

    def __init__(self) -> None:
        self._count = 0

    @property
    def code(self) -> int:
        """The exit code: 1 if any record was left out."""
        return min(1, self._count)

    def add(self, refused: Mapping[int, BudgetError]) -> None:
        """Say who was refused, what is spent and what was asked."""
        for error in refused.values():
            self._count += 1
            if self._count <= SHOWN:
                with tqdm.external_write_mode(sys.stderr):
                    click.echo(f"deniable: left out, {error.short()}", err=True)
