"""`deniable sanitize`: a file in, a sanitized file and its certificate out."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any, Literal

import click

from deniable import progress
from deniable.cli.options import chosen_space, pairs, parameters, set_option, space_options
from deniable.cli.outputs import check_files, save
from deniable.cli.said import Bar, Refusals, announce, summarise, warn_of_format
from deniable.cli.spending import check_spending, ledger_options
from deniable.errors import InputError
from deniable.files import FORMATS, open_reader
from deniable.pipeline import Job, run
from deniable.policy import Policy
from deniable.presets import DEFAULT, PRESETS
from deniable.sanitizer import Sanitizer
from deniable.strategy import STRATEGIES


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
@ledger_options
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
    ledger: str | None,
    subject: str | None,
    subject_column: str | None,
    budget: float | None,
    delta: float,
    period: str | None,
    on_refusal: Literal["stop", "skip"],
    remember: bool,
    key_file: str | None,
    quiet: bool,
) -> None:
    """Sanitize FILE (stdin when it is - or missing), a line or a column cell at a time.

    Without --mechanism the preset `balanced` is used. Formats: txt, csv, tsv, jsonl, parquet;
    txt, csv, tsv and jsonl may be gzipped.
    """
    progress.show(not quiet)
    check_files(file, output, certificate, resume, as_json)
    spending = check_spending(
        ledger, subject, subject_column, budget, delta, period, remember=remember, key_file=key_file
    )
    job = Job(
        file,
        output,
        columns,
        format_,
        encoding,
        on_error,
        resume,
        workers,
        subject_column,
        on_refusal,
    )
    # A missing file or column is told before anything slow is done; a pipe can be read only once.
    if Path(file).is_file() or (file != "-" and not Path(file).exists()):
        open_reader(
            file,
            columns=columns,
            format=format_,
            encoding=encoding,
            on_error=on_error,
            subject=subject_column,
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
        **spending,
        **parameters(settings),
    )
    warn_of_format(job, quiet)
    opened = partial(announce, sanitizer, None if mechanism or quiet else preset or DEFAULT)
    refusals = Refusals()
    with Bar(job, quiet) as bar:
        certified = partial(save, certificate)
        found = run(sanitizer, choice, job, bar.update, opened, certified, refusals.add)
    if as_json:
        click.echo(found.to_json())
    if not quiet:
        summarise(found, sanitizer if mechanism else None)
    sys.exit(refusals.code)


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
