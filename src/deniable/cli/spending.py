"""Options about budgets: the ledger, whom to charge, how much at most, what to remember."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from deniable.errors import ParameterError

F = TypeVar("F", bound=Callable[..., Any])
LEDGER_HELP = "A file (SQLite), or postgresql+psycopg://USER@HOST/DATABASE."


def ledger_options(command: F) -> F:
    """Add what `sanitize` needs to charge a ledger."""
    for option in (
        click.option("--key-file", type=click.Path(), help="For --remember; else $DENIABLE_KEY."),
        click.option(
            "--remember",
            is_flag=True,
            help="Draw a word of a subject once, and give the same answer ever after; needs a key.",
        ),
        click.option(
            "--on-refusal",
            type=click.Choice(["stop", "skip"]),
            default="stop",
            show_default=True,
            help="What to do when a budget refuses a record: nothing is written, or the rest is.",
        ),
        click.option("--period", help="The budget is for any such time, as 30d.  [default: ever]"),
        click.option(
            "--delta",
            type=float,
            default=0.0,
            show_default=True,
            help="Of the budget; above 0 more fits in, and the promise may fail with that chance.",
        ),
        click.option(
            "--budget", type=float, help="The epsilon that a subject without its own may spend."
        ),
        click.option("--subject-column", help="The column that says whom a record is about."),
        click.option("--subject", help="Whom the whole file is about."),
        click.option("--ledger", help=f"Charge each record to its subject here. {LEDGER_HELP}"),
    ):
        command = option(command)
    return command


def check_spending(
    ledger: str | None,
    subject: str | None,
    subject_column: str | None,
    budget: float | None,
    delta: float,
    period: str | None,
    *,
    remember: bool,
    key_file: str | None,
) -> dict[str, Any]:
    """Return what a Sanitizer is told of ledgers, or refuse options that don't fit together."""
    given = {
        "--subject": subject,
        "--subject-column": subject_column,
        "--budget": budget,
        "--period": period,
        "--remember": remember or None,
    }
    used = [name for name, value in given.items() if value is not None]
    if ledger is None:
        if used:
            raise ParameterError(f"{used[0]} needs a ledger to be kept in: add --ledger FILE")
        return {}
    if (subject is None) == (subject_column is None):
        raise ParameterError("--ledger charges somebody: give --subject-column, or --subject")
    if budget is None and (period is not None or delta):
        raise ParameterError("--period and --delta belong to a budget: add --budget EPSILON")
    if key_file is not None and not remember:
        raise ParameterError("--key-file is for --remember")
    from deniable.budget.key import read_key  # noqa: PLC0415 (SQL only if it is used)
    from deniable.budget.limits import Budget, parse_period  # noqa: PLC0415 (as above)

    seconds = None if period is None else parse_period(period)
    return {
        "ledger": ledger,
        "subject": subject,
        "budget": None if budget is None else Budget(budget, delta, seconds),
        "remember": remember,
        "key": read_key(key_file) if remember else None,
    }
