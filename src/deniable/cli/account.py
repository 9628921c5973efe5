"""`deniable account`: what many releases cost together, by every method of composition."""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import inf
from pathlib import Path

import click

from deniable import progress
from deniable.budget.curves import Curves, fewer, noise_by_epsilon
from deniable.budget.figure import check_figure, draw
from deniable.budget.methods import BOUND, METHODS, Account, Method
from deniable.budget.methods import account as by_every_method
from deniable.budget.release import Composition, Gaussian, Pure, Release, compose
from deniable.certificate import Certificate
from deniable.cli.options import chosen_space, parameters, set_option, space_options
from deniable.errors import CertificateError, InputError, ParameterError
from deniable.guarantee import Guarantee
from deniable.mechanism import mechanism as make
from deniable.pipeline import SpaceChoice

EXTRA = "rdp and pld are left out: pip install 'deniable[accounting]'"
MOST = 10**15
TARGETS = (0.5, 1.0, 2.0, 4.0, 8.0)
NEIGHBOURS = {
    "sampled": "one record more or less; nobody sees who takes part",
    "gaussian": "whatever moves the value by at most the sensitivity",
    "pure": "whatever each release's epsilon is about",
}


@click.command("account")
@click.option("--gaussian", is_flag=True, help="Gaussian noise: --sigma, --sensitivity.")
@click.option("--pure", is_flag=True, help="Releases that lose at most --epsilon each.")
@click.option("--mechanism", help="Draws of one of `deniable mechanisms`, with --epsilon.")
@click.option(
    "--certificate",
    "certificates",
    multiple=True,
    type=click.Path(dir_okay=False),
    help="All draws of these certificates together; repeatable.",
)
@click.option("--sigma", type=float, help="The noise's standard deviation.")
@click.option("--sensitivity", type=float, default=1.0, show_default=True, help="In L2.")
@click.option("--sample-rate", type=float, default=1.0, help="Of Poisson sampling.  [default: 1]")
@click.option("--epsilon", type=float, help="What one release loses at most.")
@click.option("--spread", type=float, help="How far a pair's loss spreads; 2 epsilon if not known.")
@click.option("--steps", type=click.IntRange(min=1), default=1, show_default=True, help="How many.")
@click.option("--delta", type=float, default=1e-6, show_default=True)
@click.option(
    "--noise-for",
    "targets",
    type=float,
    multiple=True,
    help="Also the noise that each method needs for this epsilon; repeatable, --gaussian only.",
)
@click.option("--plot", type=click.Path(dir_okay=False), help="Draw it, into .png or .svg.")
@click.option("--json", "as_json", is_flag=True, help="Print method names and epsilons as JSON.")
@set_option
@space_options
def account(
    *,
    gaussian: bool,
    pure: bool,
    mechanism: str | None,
    certificates: tuple[str, ...],
    sigma: float | None,
    sensitivity: float,
    sample_rate: float,
    epsilon: float | None,
    spread: float | None,
    steps: int,
    delta: float,
    targets: tuple[float, ...],
    plot: str | None,
    as_json: bool,
    settings: tuple[str, ...],
    space: str | None,
    metric: str | None,
    unit_diameter: bool,
    limit: int | None,
) -> None:
    """Compose releases, by every method: which of them hold, and which is the least.

    \b
    deniable account --gaussian --sigma 0.6 --steps 1000 --sample-rate 0.01 --delta 1e-5
    deniable account --pure --epsilon 1 --steps 100 --delta 1e-6
    deniable account --mechanism custext --epsilon 1 --steps 100
    deniable account --certificate monday.cert.json --certificate tuesday.cert.json

    A bound holds. An approximation may be below what is truly lost: it is shown, and never chosen.
    """
    progress.show()
    _check_one(gaussian=gaussian, pure=pure, mechanism=mechanism, certificates=certificates)
    _check_belongs(
        "--gaussian",
        gaussian,
        sigma=sigma is not None,
        sensitivity=sensitivity != 1.0,
        sample_rate=sample_rate != 1.0,
        noise_for=bool(targets),
    )
    _check_belongs("--pure", pure, spread=spread is not None)
    if targets and as_json:
        raise ParameterError("--noise-for is a table of its own: leave --json out")
    if steps > MOST:
        raise ParameterError(f"--steps can be at most {MOST:,}")
    if plot:
        check_figure(Path(plot))
        if certificates:
            raise ParameterError("--plot needs releases of one kind, not --certificate")
    if certificates:
        composition = compose(*map(_of_certificate, certificates))
    elif mechanism is not None:
        choice = chosen_space(space, metric, unit_diameter, limit)
        composition = {_of_mechanism(mechanism, epsilon, settings, choice): steps}
    elif gaussian:
        noise = _given("--gaussian", "--sigma", sigma)
        composition = {Gaussian(noise, sensitivity, sample_rate): steps}
    else:
        loss = _given("--pure", "--epsilon", epsilon)
        composition = {Pure(loss, inf if spread is None else spread): steps}
    _answer(composition, delta, targets, plot, as_json=as_json)


def _answer(
    composition: Composition,
    delta: float,
    targets: Sequence[float],
    plot: str | None,
    *,
    as_json: bool,
) -> None:
    found = by_every_method(composition, delta)
    if as_json:
        click.echo(json.dumps({one.method.name: one.epsilon for one in found}, indent=2))
    else:
        click.echo("\n".join(_table(composition, delta, found)))
    if targets and not as_json:
        click.echo("\n".join(_noise_table(composition, targets, delta)))
    if plot:
        [(once, steps)] = composition.items()
        draw(Path(plot), once, steps, delta, targets or TARGETS)
    if not all(method.available for method in METHODS):
        click.echo(f"deniable: {EXTRA}", err=True)


def _check_one(**choices: object) -> None:
    given = [f"--{name}".removesuffix("s") for name, value in choices.items() if value]
    if len(given) != 1:
        what = f"got {' and '.join(given)}" if given else "got none of them"
        raise ParameterError(
            f"say what to compose: --gaussian, --pure, --mechanism or --certificate; {what}"
        )


def _check_belongs(choice: str, chosen: bool, **options: bool) -> None:
    """Refuse options of a choice that wasn't made: they would be ignored."""
    for name, given in options.items():
        if given and not chosen:
            raise ParameterError(f"--{name.replace('_', '-')} needs {choice}")


def _given(choice: str, option: str, value: float | None) -> float:
    if value is None:
        raise ParameterError(f"{choice} needs {option}")
    return value


def _of_mechanism(
    name: str, epsilon: float | None, settings: Sequence[str], choice: SpaceChoice
) -> Release:
    """Return one draw of a mechanism, for its worst covered pair."""
    wanted = _given("--mechanism", "--epsilon", epsilon)
    made = make(name, epsilon=wanted, **parameters(settings))
    return Pure.of(made.bind(choice.load()).guarantee)


def _of_certificate(path: str) -> Composition:
    """Return the draws that a certificate counts."""
    try:
        found = Certificate.from_json(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        raise InputError(f"{path}: can't be read") from None
    except CertificateError as error:
        raise CertificateError(f"{path}: {error}") from None
    return {Pure.of(Guarantee.from_dict(found.guarantee)): found.document["tokens_charged"]}


def _table(composition: Composition, delta: float, found: Sequence[Account]) -> list[str]:
    """Return the table: a method a line; for one kind of release, after fewer steps too."""
    parts = _parts(composition)
    earlier = [
        {one.method: one.epsilon for one in by_every_method(part, delta)} for part in parts.values()
    ]
    rows = {a.method: [*(part.get(a.method, inf) for part in earlier), a.epsilon] for a in found}
    marks = {one.method: "  <- the least bound" for one in found if one.best}
    total = sum(composition.values())
    head = [*parts, f"{total:,} release{'s' if total > 1 else ''}"]
    lines = [f"epsilon at delta {delta:g}; neighbours: {_neighbours(composition)}"]
    lines += _columns(head, rows, marks)
    if not found:
        lines += ["no method has an answer: try a larger delta, or releases that lose less"]
    doubtful = [one.method.name for one in found if one.method.kind != BOUND]
    if doubtful:
        lines += [f"approximations may be too low, and promise nothing: {', '.join(doubtful)}"]
    return lines


def _columns(head: Sequence[str], rows: Curves, marks: dict[Method, str]) -> list[str]:
    width = max([14, *(len(name) + 2 for name in head)])
    lines = [f"{'method':26}{'kind':15}" + "".join(f"{name:>{width}}" for name in head)]
    for method, numbers in rows.items():
        shown = [f"{number:.6g}" if number < inf else "-" for number in numbers]
        cells = "".join(f"{number:>{width}}" for number in shown)
        lines.append(f"{method.name:26}{method.kind:15}{cells}{marks.get(method, '')}")
    return lines


def _parts(composition: Composition) -> dict[str, Composition]:
    """Return the first hundredth and tenth of the steps, if there is one kind of release."""
    if len(composition) != 1:
        return {}
    [(once, steps)] = composition.items()
    return {f"first {count:,}": {once: count} for count in fewer(steps)[:-1]}


def _neighbours(composition: Composition) -> str:
    gaussian = [one for one in composition if isinstance(one, Gaussian)]
    if not gaussian:
        return NEIGHBOURS["pure"]
    return NEIGHBOURS["sampled" if any(one.sample_rate < 1 for one in gaussian) else "gaussian"]


def _noise_table(composition: Composition, targets: Sequence[float], delta: float) -> list[str]:
    """Return the noise that each method needs, a column an epsilon."""
    [(once, steps)] = composition.items()
    needed = noise_by_epsilon(once, steps, targets, delta)
    head = [f"epsilon {target:g}" for target in targets]
    title = f"sigma needed for {steps:,} step{'s' if steps > 1 else ''}"
    return ["", title, *_columns(head, needed, {})]
