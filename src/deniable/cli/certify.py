"""`deniable certify`: the worst loss, recomputed from the tables that would be sampled."""

from __future__ import annotations

import json
import math
import sys

import click

from deniable import progress
from deniable.cli.options import chosen_space, parameters, set_option, space_options
from deniable.errors import ParameterError, SpaceError
from deniable.geometry import diameter
from deniable.mechanism import mechanism as make
from deniable.presets import PRESETS
from deniable.sanitizer import Sanitizer
from deniable.space import Space


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
    if mechanism is not None:
        # A wrong parameter is told before anything slow is done.
        make(mechanism, **parameters(settings), **({} if epsilon is None else {"epsilon": epsilon}))
    _check_diameter(chosen)
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


def _check_diameter(space: Space) -> None:
    """Refuse a space whose file states another diameter than its vectors have."""
    measured = diameter(space.geometry)
    if not math.isclose(space.diameter, measured, rel_tol=1e-6, abs_tol=1e-300):
        raise SpaceError(
            f"the space states a diameter of {space.diameter:g}, and its vectors have one of "
            f"{measured:g}; build it again, and empty the cache folder if that doesn't help"
        )
