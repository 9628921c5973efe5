"""`deniable verify`: recompute a certificate."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from deniable import progress
from deniable.certificate import Certificate
from deniable.cli.options import chosen_space, space_options
from deniable.errors import InputError
from deniable.pipeline import SpaceChoice
from deniable.similarity import NAMED as SIMILARITIES
from deniable.space import UNIT_DIAMETER, Space


@click.command()
@click.argument("certificate")
@space_options
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def verify(
    *,
    certificate: str,
    space: str | None,
    metric: str | None,
    unit_diameter: bool,
    limit: int | None,
    as_json: bool,
) -> None:
    """Recompute CERTIFICATE from its space and parameters; exit code 1 if anything differs.

    Name the space with --space unless it was the embedded one.
    """
    progress.show()
    stated = Certificate.from_json(_read(certificate))
    choice = chosen_space(space, metric, unit_diameter, limit)
    chosen = (_as_stated(stated) if choice == SpaceChoice() else choice).load()
    if space is None and chosen.hash != stated.space.get("hash"):
        click.echo(
            f"deniable: {certificate} is about another space than the embedded one: name it with "
            "--space (and --metric, --unit-diameter, --limit as then)",
            err=True,
        )
    found = stated.verify(chosen)
    if as_json:
        click.echo(json.dumps(found.to_dict(), indent=2))
    else:
        click.echo(stated.describe())
        if found.certification is not None:
            click.echo(found.certification.describe())
        for problem in found.problems:
            click.echo(f"problem            {problem}")
        click.echo("verified" if found.holds else "NOT VERIFIED")
    sys.exit(0 if found.holds else 1)


def _as_stated(stated: Certificate) -> SpaceChoice:
    """Return the embedded space with the options that the certificate tells of, if it can be."""
    usual, told = Space.default(), stated.space
    size, metric = told.get("size"), told.get("metric")
    return SpaceChoice(
        metric=metric if metric in SIMILARITIES and metric != usual.metric else None,
        unit_diameter=str(told.get("name", "")).endswith(UNIT_DIAMETER),
        limit=size if isinstance(size, int) and 0 < size < len(usual) else None,
    )


def _read(name: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{name}: can't be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise InputError(f"{name}: not a certificate: not UTF-8") from None
