"""The command line: thin commands, one file each. Results on stdout, everything else on stderr."""

from __future__ import annotations

import os
import signal
import sys
import traceback
import warnings
from typing import Any

import click

from deniable.cli.account import account
from deniable.cli.certify import certify
from deniable.cli.ledger import ledger
from deniable.cli.mechanisms import mechanisms, presets
from deniable.cli.sanitize import sanitize
from deniable.cli.space import space
from deniable.cli.verify import verify
from deniable.errors import DeniableError
from deniable.pipeline import GO_ON, NOT_KEPT
from deniable.workers import WorkerLostError

INTERRUPTED = 130
BROKEN_PIPE = 141
INTERNAL = 70


class _Group(click.Group):
    """A group that tells a closed pipe from a promise that doesn't hold (click exits with 1)."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; a reader that has gone away isn't an error."""
        try:
            found = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise click.exceptions.Exit(BROKEN_PIPE) from None
        return found


@click.group(
    cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(package_name="deniable")
def deniable() -> None:
    """Sanitize text so that its owner can deny it, and say exactly how deniable it is.

    \b
    deniable sanitize notes.txt                                     the balanced preset, to stdout
    deniable sanitize notes.jsonl --column text -o safe.jsonl --certificate safe.cert.json
    deniable verify safe.cert.json                                  recompute what was promised

    Exit code 0: done. 1: a promise doesn't hold. 2: the call or the input is wrong.
    """


for _command in (sanitize, mechanisms, presets, certify, account, ledger, space, verify):
    deniable.add_command(_command)


def main(arguments: list[str] | None = None) -> None:
    """Run a command; every foreseen mistake is one line on stderr and exit code 2."""
    warnings.showwarning = _say_warning
    # A stop by the system keeps what a stop by Ctrl-C keeps.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(_run(arguments))


def _what_next(error: BaseException) -> str:
    """Return what the run itself said of its break, if it had come so far."""
    for one in (error, error.__cause__, error.__context__):
        for note in getattr(one, "__notes__", ()):
            if note in (GO_ON, NOT_KEPT):
                return f"; {note}"
    return ""


def _run(arguments: list[str] | None) -> int:  # noqa: PLR0911 (one exit for each way to end)
    try:
        code = deniable.main(arguments, prog_name="deniable", standalone_mode=False)
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return 2
    except click.ClickException as error:
        return _say(" ".join(error.format_message().split()), 2)
    except DeniableError as error:
        return _say(" ".join(str(error).split()) + _what_next(error), error.exit_code)
    except (KeyboardInterrupt, click.Abort) as error:
        return _say(f"interrupted{_what_next(error)}", INTERRUPTED)
    except WorkerLostError as error:
        return _say(
            f"a worker process was killed (memory?){_what_next(error)}",
            INTERRUPTED,
        )
    except Exception as error:
        return _say(f"internal error: {_where(error)}; please report it", INTERNAL)
    return code if isinstance(code, int) else 0


def _say(message: str, code: int) -> int:
    click.echo(f"deniable: {message}", err=True)
    return code


def _where(error: Exception) -> str:
    """Name the kind of error and the place, never its message."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {os.path.basename(frame.filename)}:{frame.lineno}"  # noqa: PTH119


def _say_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    click.echo(f"deniable: {message}", err=True)
