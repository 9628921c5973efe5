"""A ledger in a file: SQLite made safe for several processes, and fair to them.

SQLite has one writer at a time. Every transaction that writes takes that place at its start, and
asks for it often enough not to be passed by for ever; whoever only reads waits for nobody.
"""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event

from deniable.budget.failures import PATIENCE, WAITED, shown
from deniable.errors import LedgerDownError, LedgerError

# The longer SQLite waits, the more seldom it asks (in the end every 100 ms, while the place is free
# for one or two), so that it begins anew after so many milliseconds.
TURN = 30


def open_file(url: URL) -> Engine:
    """Make the file, if there is none, and return what connects to it."""
    if not url.database or url.database == ":memory:" or url.query:
        raise LedgerError("a ledger in SQLite is a file; name one")
    _make(url.database)
    engine = create_engine(url, connect_args={"timeout": PATIENCE}, pool_timeout=PATIENCE)
    event.listen(engine, "connect", _prepare)
    return engine


def _make(path: str) -> None:
    """Make the file for its owner alone: it names subjects."""
    if Path(path).is_dir():
        raise LedgerError(f"{path}: is a folder; a ledger is a file")
    if not Path(path).parent.is_dir():
        raise LedgerError(f"{path}: its folder does not exist; make it first")
    try:
        # One that is there is never opened here: closing it would take away the locks that SQLite
        # has on it elsewhere in this process, and another could throw away what was written.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        _check(path)
    except OSError as error:
        raise LedgerError(f"{path}: can't be opened ({error.strerror})") from None


def _check(path: str) -> None:
    if not Path(path).is_file():
        raise LedgerError(f"{path}: is not a file that can keep anything; a ledger is one")
    if not os.access(path, os.R_OK | os.W_OK):
        raise LedgerError(f"{path}: can't be read and written by this user; change who may")


def _prepare(connection: Any, record: object) -> None:
    del record
    # Transactions are begun by begin(), not by the driver at the first write.
    connection.isolation_level = None
    # A charge that was confirmed survives a power cut.
    connection.execute("PRAGMA synchronous=FULL")


def begin(connection: Connection, *, reads: bool) -> None:
    """Begin to read, or to write."""
    if reads:
        connection.exec_driver_sql("BEGIN")
        return
    driver: Any = connection.connection.driver_connection
    driver.execute(f"PRAGMA busy_timeout={TURN}")
    try:
        if not _patiently(driver, "BEGIN IMMEDIATE"):
            raise LedgerDownError(f"{shown(connection.engine.url)}: {WAITED}")
    finally:
        driver.execute(f"PRAGMA busy_timeout={PATIENCE * 1000}")


def let_readers_in(engine: Engine) -> None:
    """Keep a journal beside which others can read; that is how the file is from then on."""
    with engine.connect() as connection:
        # Where the disk can't do it, the journal stays as it was.
        _patiently(connection.connection.driver_connection, "PRAGMA journal_mode=WAL")


def _patiently(driver: Any, statement: str) -> bool:
    """Run a statement as soon as nobody else is in the way; return whether it was run."""
    until = time.monotonic() + PATIENCE
    while not _tried(driver, statement):
        if time.monotonic() > until:
            return False
        time.sleep(0.001)
    return True


def _tried(driver: Any, statement: str) -> bool:
    try:
        driver.execute(statement)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
            raise
        return False
    return True
