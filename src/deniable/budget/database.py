"""The database of a ledger: opened, brought up to date, read and locked.

SQLite has one writer at a time. PostgreSQL takes advisory locks, one for each of a few buckets of
subjects: writers with other subjects don't wait. Either way nobody reads a subject's last charge
while another adds to it. Whoever only reads sees one moment of the ledger, and nobody waits for it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from weakref import WeakSet
from zlib import crc32

from sqlalchemy import (
    ARRAY,
    URL,
    Connection,
    Engine,
    Integer,
    Pool,
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
from sqlalchemy.exc import ArgumentError

from deniable.budget import sqlite
from deniable.budget.failures import PATIENCE, reported, shown
from deniable.budget.schema import METADATA
from deniable.errors import LedgerError, MissingExtraError

VERSION_TABLE = "deniable_version"
# The newest migration, so that an open ledger needs one query and no migration machinery.
HEAD = "0001"
BUCKETS = 64
LOCKS = 0x64656E69  # "deni": keeps these advisory locks apart from other programs'
DRIVERS = {
    "sqlite": "sqlite",
    "sqlite+pysqlite": "sqlite",
    "postgresql": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
}
# How a connection is told that it only reads.
READING: dict[str, dict[str, Any]] = {
    "sqlite": {"deniable_reads": True},
    "postgresql": {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True},
}
# Whatever the server's settings are: nobody is waited for without end, and what was confirmed
# survives a power cut.
WRITING = (
    f"SELECT set_config('lock_timeout', '{PATIENCE}s', true), "  # noqa: S608 (a number of ours)
    "set_config('synchronous_commit', CASE is_now WHEN 'off' THEN 'local' ELSE is_now END, true) "
    "FROM current_setting('synchronous_commit') AS is_now"
)

_engines: WeakSet[Engine] = WeakSet()
_inherited: list[Pool] = []


def _leave_to_parent() -> None:
    """Use no connection of the process that this one was forked from, nor close any."""
    for engine in list(_engines):
        _inherited.append(engine.pool)
        engine.dispose(close=False)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)


def open_engine(place: str | Path) -> Engine:
    """Open (or make) a ledger: a file for SQLite, or a URL such as postgresql+psycopg://host/name."""
    url = _url(str(place))
    with reported(url):
        engine = _engine(url)
        try:
            _bring_up_to_date(engine)
        except BaseException:
            engine.dispose()
            raise
    _engines.add(engine)
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
    # What is no number where a port should be is a ValueError, and may be half a password.
    with suppress(ArgumentError, ValueError):
        url = make_url(place)
        if url.drivername in DRIVERS:
            return url.set(drivername=DRIVERS[url.drivername])
    scheme = place.split("://", 1)[0]
    if scheme in DRIVERS:
        raise LedgerError(f"a URL of {scheme} can't be read; in a password, : / @ are %3A %2F %40")
    raise LedgerError(
        f"{scheme!r}:// is no ledger's URL; give a file for SQLite, or "
        "postgresql+psycopg://user@host/database"
    )


def _engine(url: URL) -> Engine:
    engine = sqlite.open_file(url) if url.get_backend_name() == "sqlite" else _postgresql(url)
    event.listen(engine, "begin", _begin)
    return engine


def _postgresql(url: URL) -> Engine:
    settings = {"connect_timeout": PATIENCE // 4, "client_encoding": "utf8"}
    try:
        return create_engine(
            url,
            connect_args={name: settings[name] for name in settings.keys() - url.query.keys()},
            pool_pre_ping=True,
            pool_timeout=PATIENCE,
            # Each statement sees what was committed before the locks were had.
            isolation_level="READ COMMITTED",
        )
    except ModuleNotFoundError:
        raise MissingExtraError("the driver for PostgreSQL", "postgresql") from None


def _begin(connection: Connection) -> None:
    options = connection.get_execution_options()
    if connection.dialect.name == "sqlite":
        sqlite.begin(connection, reads=options.get("deniable_reads", False))
    elif not options.get("postgresql_readonly"):
        connection.exec_driver_sql(WRITING)


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """One moment of the ledger, for reading it."""
    with engine.connect() as connection:
        told = connection.execution_options(**READING[engine.dialect.name])
        with told.begin():
            yield told


def _bring_up_to_date(engine: Engine) -> None:
    with reading(engine) as connection:
        found = _found(connection)
    if found != HEAD:
        with engine.begin() as connection:
            lock_all(connection)
            _upgrade(connection)
    if engine.dialect.name == "sqlite":
        sqlite.let_readers_in(engine)


def _found(connection: Connection) -> str | None:
    """Return the version of a ledger, or None where there is nothing yet."""
    if inspect(connection).has_table(VERSION_TABLE):
        version = column("version_num", Text)
        found = connection.execute(select(version).select_from(table(VERSION_TABLE))).scalar()
        if found is not None:
            return str(found)
    names = set(inspect(connection).get_table_names())
    if names & set(METADATA.tables) or (names and connection.dialect.name == "sqlite"):
        raise LedgerError(
            f"{shown(connection.engine.url)}: is the database of another program; name a new file"
        )
    return None


def _upgrade(connection: Connection) -> None:
    # Another may have been first while this one waited.
    found = _found(connection)
    if found != HEAD:
        from deniable.budget.migrate import upgrade  # noqa: PLC0415 (it is slow to import)

        upgrade(connection, found)


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
    return func.unnest(cast(list(subjects), ARRAY(Text))).table_valued("value").render_derived()
