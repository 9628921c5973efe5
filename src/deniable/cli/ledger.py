"""`deniable ledger`: what people have spent, what they may spend, and what is remembered."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import click

from deniable import progress
from deniable.cli.spending import LEDGER_HELP
from deniable.errors import LedgerError, ParameterError

if TYPE_CHECKING:
    from deniable.budget.ledger import Balance, Ledger

F = TypeVar("F", bound=Callable[..., Any])
COLUMNS = ("subject", "epsilon", "delta", "charges", "draws", "budget", "period")
VARIABLE = "DENIABLE_LEDGER"
JSON = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")


@click.group()
def ledger() -> None:
    """Look at a ledger, set budgets, replay it, forget words.

    \b
    deniable ledger show --ledger spent.db
    deniable ledger set-budget 100 --period 30d --ledger spent.db
    deniable ledger check --ledger spent.db
    """


def _place(command: F) -> F:
    return click.option("--ledger", "place", envvar=VARIABLE, help=f"{LEDGER_HELP} ${VARIABLE}.")(
        command
    )


def _file(command: F) -> F:
    return click.argument("file", required=False)(_place(command))


def _open(place: str | None, file: str | None = None, *, new: bool = False) -> Ledger:
    """Open the ledger that is named; only `set-budget` may make one."""
    from deniable.budget.database import exists  # noqa: PLC0415 (SQL only if it is used)
    from deniable.budget.ledger import Ledger  # noqa: PLC0415 (as above)

    # Said last on the line, and so more than what the environment says.
    named = file or place
    if named is None:
        raise ParameterError("name a ledger: --ledger FILE, or a database URL")
    if not new and not exists(named):
        raise LedgerError(f"{named}: no such ledger")
    return Ledger(named)


@ledger.command("show")
@_file
@click.option("--subject", help="Of one subject only.")
@JSON
def show(*, file: str | None, place: str | None, subject: str | None, as_json: bool) -> None:
    """Show what everyone has spent, and may spend."""
    with _open(place, file) as opened:
        balances = opened.balances(subject)
    if subject is not None and not balances:
        raise LedgerError(f"nothing was ever charged to {subject!r}")
    rows = [one.to_dict() for one in balances]
    click.echo(json.dumps(rows, indent=2) if as_json else "\n".join(_table(balances)))


def _table(balances: list[Balance]) -> Iterator[str]:
    from deniable.budget.limits import show_period  # noqa: PLC0415 (SQL only if it is used)

    width = max([len("subject"), *(len(one.subject) for one in balances)])
    yield f"{'subject':{width}}  {'epsilon':>12}{'of':>12}{'delta':>10}{'charges':>9}{'draws':>11}"
    for one in balances:
        budget = one.budget
        limit = "-" if budget is None else f"{budget.epsilon:g}"
        period = "" if budget is None or budget.period is None else show_period(budget.period)
        yield (
            f"{one.subject:{width}}  {one.epsilon:>12.6g}{limit:>12}{one.delta:>10g}"
            f"{one.records:>9,}{one.cost.count:>11,}{f'  in any {period}' if period else ''}"
        )


@ledger.command("export")
@_file
@click.option("--format", "form", type=click.Choice(["csv", "jsonl"]), default="csv")
def export(*, file: str | None, place: str | None, form: str) -> None:
    """Print every charge, subject by subject, as csv or jsonl."""
    with _open(place, file) as opened:
        for number, charge in enumerate(opened.charges()):
            row = dict(charge._mapping)
            if form == "jsonl":
                click.echo(json.dumps(row))
                continue
            if number == 0:
                click.echo(_csv(list(row)), nl=False)
            click.echo(_csv(list(row.values())), nl=False)


def _csv(values: list[Any]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(values)
    return text.getvalue()


@ledger.command("set-budget")
@click.argument("epsilon", type=float)
@_place
@click.option("--subject", help="Of one subject; of everyone else without.")
@click.option("--delta", type=float, default=0.0, show_default=True)
@click.option("--period", help="For any such time, as 30d or 12h.  [default: ever]")
def set_budget(
    *, epsilon: float, place: str | None, subject: str | None, delta: float, period: str | None
) -> None:
    """Set what a subject (or everyone without a budget of his own) may spend.

    Nothing that was set before is lost: the newest budget counts.
    """
    from deniable.budget.limits import Budget, parse_period  # noqa: PLC0415 (as above)

    budget = Budget(epsilon, delta, None if period is None else parse_period(period))
    with _open(place, new=True) as opened:
        opened.set_budget(budget, subject)
    whose = "everyone without one of his own" if subject is None else repr(subject)
    click.echo(f"deniable: the budget of {whose} is now {budget.describe()}", err=True)


@ledger.command("check")
@_file
@JSON
def check(*, file: str | None, place: str | None, as_json: bool) -> None:
    """Replay every charge, and compare; exit code 1 if the ledger doesn't add up.

    A charge that was changed, taken out of the middle, or went beyond the budget of its time is
    found. Charges taken off a subject's end leave no trace: keep copies.
    """
    from deniable.budget.replay import replay  # noqa: PLC0415 (as above)

    progress.show()
    with _open(place, file) as opened:
        found = replay(opened)
    if as_json:
        click.echo(json.dumps({"holds": found.holds, **vars(found)}, indent=2))
    else:
        click.echo(f"{found.subjects:,} subjects, {found.charges:,} charges, {found.draws:,} draws")
        for problem in found.problems:
            click.echo(problem)
        if found.more:
            click.echo(f"and {found.more:,} problems more")
        click.echo("adds up" if found.holds else "DOES NOT ADD UP")
    sys.exit(0 if found.holds else 1)


@ledger.command("forget")
@click.argument("subject")
@_place
def forget(*, subject: str, place: str | None) -> None:
    """Erase the remembered words of SUBJECT; what was charged stays charged.

    Their next draws are new ones, and are paid for.
    """
    from deniable.budget.memory import forget as erase  # noqa: PLC0415 (as above)

    with _open(place) as opened:
        count = erase(opened, subject)
    click.echo(f"deniable: {count:,} remembered words of {subject!r} erased", err=True)


@ledger.command("new-key")
@click.argument("file", type=click.Path())
def key(*, file: str) -> None:
    """Write a new key for --remember into FILE (or to stdout for -)."""
    from deniable.budget.key import new_key, write_key  # noqa: PLC0415 (as above)

    if file == "-":
        click.echo(new_key())
        return
    write_key(file)
    click.echo(f"deniable: {file}: keep it; without it every word would be drawn anew", err=True)
