"""`deniable certify`: the worst loss, recomputed from the tables that would be sampled."""

from __future__ import annotations

import json
import sys

import click

from deniable import progress
from deniable.cli.options import chosen_space, parameters, set_option, space_options
from deniable.mechanism import mechanism as make


@click.command()
@click.option("--mechanism", required=True, help="One of `deniable mechanisms`.")
@click.option("--epsilon", type=float, required=True, help="What is promised for each token.")
@set_option
@space_options
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def certify(
    *,
    mechanism: str,
    epsilon: float,
    settings: tuple[str, ...],
    space: str | None,
    metric: str | None,
    unit_diameter: bool,
    limit: int | None,
    as_json: bool,
) -> None:
    """Recompute the worst loss of a mechanism; exit code 1 if its promise doesn't hold."""
    progress.show()
    made = make(mechanism, epsilon=epsilon, **parameters(settings))
    kernel = made.bind(chosen_space(space, metric, unit_diameter, limit).load())
    found = kernel.certify()
    if as_json:
        head = {"mechanism": made.name, "epsilon": epsilon, "space": kernel.space.hash}
        click.echo(json.dumps({**head, **found.to_dict()}, indent=2))
    else:
        click.echo(f"{made.name}, epsilon {epsilon:g}, {kernel.space!r}")
        click.echo(f"claim              {kernel.guarantee.describe()}")
        click.echo(found.describe())
    sys.exit(0 if found.holds else 1)
