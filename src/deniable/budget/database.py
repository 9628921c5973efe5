"""The database of a ledger: opened, brought up to date, locked; its errors as one line each.

SQLite has one writer at a time, and every transaction takes that place at its start. PostgreSQL
takes advisory locks, one for each of a few buckets of subjects: writers with other subjects don't
wait. Either way nobody reads a subject's last charge while another adds to it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from zlib import crc32

from sqlalchemy import (
    ARRAY,
    URL,
    Connection,
    Engine,
    Integer,
    TableValuedAlias,
    Text,
    cast,
    column,
    create_engine,
    event,
    func,
    inspect,
    make_url,
    select,
    table,
)
from sqlalchemy.exc import (
    ArgumentError,
    DatabaseError,
    InterfaceError,
    OperationalError,
    SQLAlchemyError,
)

from deniable.budget.schema import METADATA
from deniable.errors import LedgerDownError, LedgerError, MissingExtraError

VERSION_TABLE = "deniable_version"
# The newest migration, so that an open ledger needs one query and no migration machinery.
HEAD = "0001"
BUCKETS = 64
LOCKS = 0x64656E69  # "deni": keeps these advisory locks apart from other programs'
PATIENCE = 60  # seconds that SQLite waits for another writer


def open_engine(place: str | Path) -> Engine:
    """Open (or make) a ledger: a file for SQLite, or a URL such as postgresql+psycopg://host/name."""
    url = _url(str(place))
    with reported(url):
        engine = _engine(url)
        _bring_up_to_date(engine)
    return engine


def exists(place: str) -> bool:
    """Whether there is a ledger to look at; a server is asked when it is opened."""
    url = _url(place)
    return url.get_backend_name() != "sqlite" or Path(str(url.database)).is_file()


def _url(place: str) -> URL:
    if "://" not in place:
        if not place:
            raise LedgerError("a ledger is a file or a database URL; got nothing")
        return URL.create("sqlite", database=place)
    with suppress(ArgumentError):
        url = make_url(place)
        if url.get_backend_name() in ("sqlite", "postgresql"):
            return url
    scheme = place.split("://", 1)[0]
    raise LedgerError(
        f"{scheme!r}:// is no ledger's URL; give a file for SQLite, or "
        "postgresql+psycopg://user@host/database"
    )


def _engine(url: URL) -> Engine:
    if url.get_backend_name() == "sqlite":
        _make_file(url.database)
        engine = create_engine(url, connect_args={"timeout": PATIENCE})
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_immediate)
        return engine
    try:
        return create_engine(url, pool_pre_ping=True)
    except ModuleNotFoundError:
        raise MissingExtraError("the driver for PostgreSQL", "postgresql") from None


def _make_file(path: str | None) -> None:
    """Make the file for its owner alone: it names subjects."""
    if not path or path == ":memory:":
        raise LedgerError("a ledger in SQLite is a file; name one")
    if Path(path).is_dir():
        raise LedgerError(f"{path}: is a folder; a ledger is a file")
    if not Path(path).parent.is_dir():
        raise LedgerError(f"{path}: its folder does not exist; make it first")
    try:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise LedgerError(f"{path}: can't be opened ({error.strerror})") from None


def _prepare_sqlite(connection: Any, record: object) -> None:
    del record
    # Transactions are begun by _begin_immediate, not by the driver at the first write.
    connection.isolation_level = None
    connection.execute("PRAGMA journal_mode=WAL")
    # A charge that was confirmed survives a power cut.
    connection.execute("PRAGMA synchronous=FULL")


def _begin_immediate(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _bring_up_to_date(engine: Engine) -> None:
    with engine.begin() as connection:
        lock_all(connection)
        found = _version(connection)
        if found == HEAD:
            return
        if found is None:
            _refuse_others(connection)
        from deniable.budget.migrate import upgrade  # noqa: PLC0415 (it is slow to import)

        upgrade(connection, found)


def _version(connection: Connection) -> str | None:
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    version = column("version_num", Text)
    return connection.execute(select(version).select_from(table(VERSION_TABLE))).scalar()


def _refuse_others(connection: Connection) -> None:
    names = set(inspect(connection).get_table_names())
    taken = names & set(METADATA.tables)
    if taken or (names and connection.dialect.name == "sqlite"):
        raise LedgerError(
            f"{shown(connection.engine.url)}: is the database of another program; name a new file"
        )


def lock(connection: Connection, subjects: Collection[str]) -> None:
    """Keep other writers from these subjects until the transaction ends."""
    _lock(connection, sorted({crc32(one.encode("utf-8", "replace")) % BUCKETS for one in subjects}))


def lock_all(connection: Connection) -> None:
    """Keep other writers from everything."""
    _lock(connection, list(range(BUCKETS)))


def _lock(connection: Connection, buckets: list[int]) -> None:
    if connection.dialect.name == "sqlite":
        return
    # One after the other and in order: two writers never wait for each other.
    keys = func.unnest(cast(buckets, ARRAY(Integer))).column_valued("key")
    connection.execute(select(func.pg_advisory_xact_lock(LOCKS, keys))).all()


def now(connection: Connection) -> float:
    """Return the time: the server's where there is one, for all writers alike."""
    if connection.dialect.name == "sqlite":
        return time.time()
    found = connection.execute(select(func.extract("epoch", func.clock_timestamp()))).scalar_one()
    return float(found)


def listed(connection: Connection, subjects: Collection[str]) -> TableValuedAlias:
    """Return these subjects as a table of one column, `value`, in one parameter however many."""
    if connection.dialect.name == "sqlite":
        return func.json_each(json.dumps(list(subjects))).table_valued("value")
    return func.unnest(cast(list(subjects), ARRAY(Text))).table_valued("value")


def shown(url: URL) -> str:
    """Return the name of a ledger as messages use it: never with a password."""
    if url.get_backend_name() == "sqlite":
        return str(url.database)
    return url.render_as_string(hide_password=True)


@contextmanager
def reported(url: URL) -> Iterator[None]:
    """Turn an error of the database into one line that holds no statement and no parameters."""
    try:
        yield
    except (OperationalError, InterfaceError) as error:
        problem: Exception = LedgerDownError(f"{shown(url)}: {_cause(error)}")
    except (DatabaseError, UnicodeError) as error:
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


CAUSES = {
    "file is not a database": "is not a ledger; name another file",
    "malformed": "is a damaged SQLite file; restore it from a copy",
    "database is locked": f"another program has held it for {PATIENCE} s; try again",
    "readonly": "can't be written to",
    "disk is full": "no space left on its disk; free some",
    "disk I/O error": "its disk can't be read or written",
    "unable to open": "can't be opened",
    "password authentication failed": "the database refuses the user or the password",
    "does not exist": "there is no such database or user; make it first",
    "could not translate host": "there is no such host",
    "failed to resolve host": "there is no such host",
    "onnection refused": "nothing answers there; start the database",
    "terminating connection": "the database went away; start it again",
    "closed the connection": "the database went away; start it again",
    "connection is closed": "the database went away; start it again",
    "connection is lost": "the database went away; start it again",
    "shutting down": "the database is shutting down; start it again",
    "starting up": "the database is starting up; try again",
    "permission denied": "the database refuses this user; grant it the ledger's tables",
}
