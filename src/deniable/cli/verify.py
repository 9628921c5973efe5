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
    chosen = chosen_space(space, metric, unit_diameter, limit).load()
    if space is None and chosen.hash != stated.space.get("hash"):
        click.echo(
            f"deniable: {certificate} is about another space than the embedded one: name it with "
            "--space (and --metric, --limit as then)",
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


def _read(name: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{name}: can't be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise InputError(f"{name}: not a certificate: not UTF-8") from None
