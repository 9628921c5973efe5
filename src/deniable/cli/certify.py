"""`deniable certify`: the worst loss, recomputed from the tables that would be sampled."""

from __future__ import annotations

import json
import sys

import click

from deniable import progress
from deniable.cli.options import chosen_space, parameters, set_option, space_options
from deniable.errors import ParameterError
from deniable.presets import PRESETS
from deniable.sanitizer import Sanitizer


@click.command()
@click.option("--mechanism", help="One of `deniable mechanisms`.")
@click.option("--epsilon", type=float, help="What is promised for each token.")
@click.option("--preset", type=click.Choice(list(PRESETS)), help="Instead of a mechanism.")
@set_option
@space_options
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def certify(
    *,
    mechanism: str | None,
    epsilon: float | None,
    preset: str | None,
    settings: tuple[str, ...],
    space: str | None,
    metric: str | None,
    unit_diameter: bool,
    limit: int | None,
    as_json: bool,
) -> None:
    """Recompute the worst loss of a mechanism; exit code 1 if its promise doesn't hold."""
    progress.show()
    if mechanism is None and preset is None:
        raise ParameterError("say what to certify: --mechanism and --epsilon, or --preset")
    chosen = chosen_space(space, metric, unit_diameter, limit).load()
    sanitizer = Sanitizer(mechanism, epsilon, preset=preset, space=chosen, **parameters(settings))
    made, kernel = sanitizer.mechanism, sanitizer.kernel
    found = kernel.certify()
    if as_json:
        head = {"mechanism": made.name, "epsilon": made.epsilon, "space": kernel.space.hash}
        click.echo(json.dumps({**head, **found.to_dict()}, indent=2))
    else:
        click.echo(f"{made.name}, epsilon {made.epsilon:g}, {kernel.space!r}")
        click.echo(f"claim              {kernel.guarantee.describe()}")
        click.echo(found.describe())
    sys.exit(0 if found.holds else 1)
