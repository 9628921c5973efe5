"""What goes wrong with a database, as one line each: no statement, no parameters, no password."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import URL
from sqlalchemy.exc import (
    DatabaseError,
    InterfaceError,
    OperationalError,
    SQLAlchemyError,
    TimeoutError,  # noqa: A004 (of the pool of connections)
)

from deniable.errors import LedgerDownError, LedgerError

PATIENCE = 60  # seconds that a writer waits for the others


def shown(url: URL) -> str:
    """Return the name of a ledger as messages use it: never with a password."""
    if url.get_backend_name() == "sqlite":
        return str(url.database)
    # A password can be among the settings too.
    return url.set(query={}).render_as_string(hide_password=True)


@contextmanager
def reported(url: URL) -> Iterator[None]:
    """Turn an error of the database into one line that holds no statement and no parameters."""
    try:
        yield
    except (OperationalError, InterfaceError, sqlite3.OperationalError) as error:
        problem: Exception = LedgerDownError(f"{shown(url)}: {_cause(error)}")
    except TimeoutError:
        problem = LedgerDownError(f"{shown(url)}: {WAITED}")
    except (DatabaseError, sqlite3.DatabaseError, UnicodeError, OverflowError) as error:
        problem = LedgerError(f"{shown(url)}: {_cause(error)}")
    except SQLAlchemyError as error:
        problem = LedgerError(f"{shown(url)}: {type(error).__name__}")
    else:
        return
    # Raised here, outside the handler, so that the statement's parameters don't travel with it.
    raise problem


def _cause(error: Exception) -> str:
    """Return why, in words that hold nothing of what was stored."""
    said = str(getattr(error, "orig", error))
    for sign, meaning in CAUSES.items():
        if sign in said:
            return meaning
    return f"the database refused ({type(getattr(error, 'orig', error)).__name__})"


WAITED = f"others have held it for {PATIENCE} s; try again"
AWAY = "the database went away; start it again"
# The first sign that is found says it.
CAUSES = {
    "file is not a database": "is not a ledger; name another file",
    "malformed": "is a damaged SQLite file; restore it from a copy",
    "no such table": "its tables are not all there; restore it from a copy",
    'relation "': "its tables are not all there; restore it from a copy",
    "database is locked": WAITED,
    "lock timeout": WAITED,
    "readonly": "can't be written to",
    "read-only": "can't be written to",
    "disk is full": "no space left on its disk; free some",
    "No space left": "no space left on its disk; free some",
    "disk I/O error": "its disk can't be read or written",
    "unable to open": "can't be opened",
    "authentication failed": "the database refuses the user or the password",
    "no password supplied": "the database asks for a password; add one to its URL or ~/.pgpass",
    "does not exist": "there is no such database or user; make it first",
    "could not translate host": "there is no such host",
    "failed to resolve host": "there is no such host",
    "onnection refused": "nothing answers there; start the database",
    "timeout expired": "nothing answers there; start the database",
    "too many c": "the database has too many connections; close some",
    "terminating connection": AWAY,
    "closed the connection": AWAY,
    "connection is closed": AWAY,
    "connection is lost": AWAY,
    "shutting down": "the database is shutting down; start it again",
    "starting up": "the database is starting up; try again",
    "not yet accepting": "the database is starting up; try again",
    "permission denied": "the database refuses this user; grant it the ledger's tables",
}
