"""`deniable sanitize`: a file in, a sanitized file and its certificate out."""

from __future__ import annotations

import os
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any, Literal

import click
from tqdm import tqdm

from deniable import progress
from deniable.certificate import COPIES, Certificate
from deniable.cli.options import chosen_space, pairs, parameters, set_option, space_options
from deniable.errors import InputError, ParameterError
from deniable.files import FORMATS, Batch, format_of, open_reader
from deniable.leaks import SEEN_IN_FULL
from deniable.mechanism import mechanism as make
from deniable.pipeline import Job, run
from deniable.policy import Policy
from deniable.presets import DEFAULT, PRESETS
from deniable.sanitizer import Sanitizer
from deniable.space import Space
from deniable.strategy import REPETITION, STRATEGIES
from deniable.tally import Tally

# How many columns that pass in clear are named on stderr.
SHOWN = 20


@click.command()
@click.argument("file", default="-")
@click.option("-o", "--output", default="-", help="Where to write; stdout when not given.")
@click.option("--mechanism", help="One of `deniable mechanisms`.")
@click.option("--epsilon", type=float, help="What is promised for each token.")
@click.option(
    "--preset",
    type=click.Choice(list(PRESETS)),
    help="Instead of a mechanism; --epsilon, --set, --policy and --keep change it.",
)
@set_option
@space_options
@click.option(
    "--strategy",
    type=click.Choice(STRATEGIES),
    default="token",
    show_default=True,
    help="Draw each token anew, or a word once for each record or for the whole data set.",
)
@click.option("--column", "columns", multiple=True, help="A column to sanitize; repeatable.")
@click.option("--format", "format_", type=click.Choice(FORMATS), help="If the name doesn't tell.")
@click.option("--encoding", default="utf-8", show_default=True, help="Of a text file.")
@click.option(
    "--on-error",
    type=click.Choice(["stop", "skip"]),
    default="stop",
    show_default=True,
    help="What to do with a broken record.",
)
@click.option("--keep", multiple=True, help="Public words: `stopwords`, or a file of words.")
@click.option(
    "--policy",
    "policies",
    multiple=True,
    metavar="NAME=VALUE",
    help="Such as numbers=mask or case=lower; repeatable.",
)
@click.option("--certificate", type=click.Path(dir_okay=False), help="Write the certificate here.")
@click.option("--json", "as_json", is_flag=True, help="Print the certificate; needs -o.")
@click.option(
    "--resume", is_flag=True, help="Go on after a break; needs -o, and no --strategy dataset."
)
@click.option("--workers", type=click.IntRange(1, 256), default=1, help="Processes.  [default: 1]")
@click.option("--quiet", is_flag=True, help="Nothing on stderr but errors.")
def sanitize(
    *,
    file: str,
    output: str,
    mechanism: str | None,
    epsilon: float | None,
    preset: str | None,
    settings: tuple[str, ...],
    space: str | None,
    metric: str | None,
    unit_diameter: bool,
    limit: int | None,
    strategy: str,
    columns: tuple[str, ...],
    format_: str | None,
    encoding: str,
    on_error: Literal["stop", "skip"],
    keep: tuple[str, ...],
    policies: tuple[str, ...],
    certificate: str | None,
    as_json: bool,
    resume: bool,
    workers: int,
    quiet: bool,
) -> None:
    """Sanitize FILE (stdin when it is - or missing), a line or a column cell at a time.

    Without --mechanism the preset `balanced` is used. Formats: txt, csv, tsv, jsonl, parquet;
    txt, csv, tsv and jsonl may be gzipped.
    """
    progress.show(not quiet)
    _check_files(file, output, certificate, resume, as_json)
    job = Job(file, output, columns, format_, encoding, on_error, resume, workers)
    # A missing file or column is told before anything slow is done; a pipe can be read only once.
    if Path(file).is_file() or (file != "-" and not Path(file).exists()):
        open_reader(
            file, columns=columns, format=format_, encoding=encoding, on_error=on_error
        ).close()
    choice = chosen_space(space, metric, unit_diameter, limit)
    policy = _policy(preset, mechanism, keep, policies)
    sanitizer = Sanitizer(
        mechanism,
        epsilon,
        space=choice.load(),
        policy=policy,
        preset=preset,
        strategy=strategy,
        **parameters(settings),
    )
    _warn_of_format(job, quiet)
    announce = partial(_announce, sanitizer, None if mechanism or quiet else preset or DEFAULT)
    save = partial(_save, certificate)
    with _Bar(job, quiet) as bar:
        found = run(sanitizer, choice, job, bar.update, announce, save)
    if as_json:
        click.echo(found.to_json())
    if not quiet:
        _summarise(found, sanitizer if mechanism else None)


def _check_files(
    file: str, output: str, certificate: str | None, resume: bool, as_json: bool
) -> None:
    if output == "-" and (resume or as_json):
        raise ParameterError(f"--{'resume' if resume else 'json'} needs an output file: add -o OUT")
    for target in (output, certificate):
        if file == "-" and target not in (None, "-") and _is_stdin(Path(str(target))):
            raise InputError(f"{target}: it is the input, which would be overwritten")
    if certificate == "-":
        raise ParameterError("--certificate takes a file; for stdout use --json")
    if certificate is not None:
        _check_certificate(certificate, (file, output))


def _check_certificate(certificate: str, others: tuple[str, ...]) -> None:
    path = Path(certificate)
    if not path.parent.is_dir():
        raise InputError(f"{certificate}: the folder {path.parent} does not exist; make it first")
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"{certificate}: the folder {path.parent} can't be written to")
    if path.exists() and not path.is_file():
        raise InputError(f"{certificate}: not a plain file; name one to write the certificate to")
    for other in others:
        if other != "-" and Path(other).resolve() == path.resolve():
            raise InputError(f"{certificate}: the certificate would overwrite {other}")


def _is_stdin(path: Path) -> bool:
    """Whether stdin is redirected from this file."""
    try:
        return path.is_file() and os.path.samestat(path.stat(), os.fstat(sys.stdin.fileno()))
    except (OSError, ValueError):
        return False


def _policy(
    preset: str | None, mechanism: str | None, keep: tuple[str, ...], policies: tuple[str, ...]
) -> Policy | None:
    base = Policy() if mechanism else PRESETS[preset or DEFAULT].policy
    changes: dict[str, Any] = dict(pairs(policies, "--policy"))
    words = set(base.public)
    for name in keep:
        if name == "stopwords":
            changes["stopwords"] = "keep"
        else:
            words |= _public_words(name)
    if words:
        changes["public"] = words
    return Policy.from_dict({**base.to_dict(), **changes})


def _public_words(name: str) -> set[str]:
    try:
        text = Path(name).read_text(encoding="utf-8-sig")
    except OSError:
        raise InputError(
            f"--keep takes `stopwords` or a file of words; can't read {name}"
        ) from None
    except UnicodeDecodeError:
        raise InputError(f"{name}: not UTF-8, for --keep") from None
    return {line.strip().lower() for line in text.splitlines() if line.strip()}


def _warn_of_format(job: Job, quiet: bool) -> None:
    if quiet or job.format or job.source == "-" or format_of(job.source):
        return
    click.echo(
        f"deniable: {job.source}: read as txt, its ending names no format; --format names one",
        err=True,
    )


def _announce(sanitizer: Sanitizer, preset: str | None) -> None:
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


class _Bar:
    """Bytes done, tokens per second and time left, on a terminal's stderr."""

    def __init__(self, job: Job, quiet: bool) -> None:
        total = None if job.source == "-" else Path(job.source).stat().st_size
        hidden = quiet or not sys.stderr.isatty()
        self._bar = tqdm(
            total=total, unit="B", unit_scale=True, disable=hidden, file=sys.stderr, leave=False
        )
        self._tokens = 0

    def __enter__(self) -> _Bar:
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


def _save(path: str | None, found: Certificate) -> None:
    if path is not None:
        _write_whole(Path(path).resolve(), found.to_json() + "\n")


def _summarise(found: Certificate, sanitizer: Sanitizer | None) -> None:
    """Say what was done, and what it promises unless a preset's announcement said so."""
    document = found.document
    if sanitizer is not None:
        click.echo(f"deniable: promised, {sanitizer.guarantee.describe()}", err=True)
    skipped = f", {document['skipped']:,} broken ones skipped" if document["skipped"] else ""
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
    where = "the data set" if found.strategy == "dataset" else "a record"
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


def _write_whole(path: Path, text: str) -> None:
    name = None
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            # As any new file: mkstemp's own mode is for its owner alone.
            mask = os.umask(0)
            os.umask(mask)
            os.fchmod(file.fileno(), 0o666 & ~mask)
        Path(name).replace(path)
    except OSError as error:
        if name is not None:
            Path(name).unlink(missing_ok=True)
        raise InputError(f"{path}: can't be written ({error.strerror})") from None
