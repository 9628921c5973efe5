"""Brings a ledger's tables to the newest version; imported only when there is something to do."""

from __future__ import annotations

from pathlib import Path

from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from deniable.budget.database import VERSION_TABLE
from deniable.budget.failures import shown
from deniable.errors import LedgerError

SCRIPTS = Path(__file__).parent / "migrations"


def upgrade(connection: Connection, found: str | None) -> None:
    """Run the migrations that are missing, within the connection's transaction."""
    scripts = ScriptDirectory(str(SCRIPTS))
    if found is not None and found not in {one.revision for one in scripts.walk_revisions()}:
        raise LedgerError(
            f"{shown(connection.engine.url)}: is a ledger of version {found}, made by a newer "
            "deniable; update this one (pip install --upgrade deniable)"
        )
    settings = {"fn": lambda revision, _: scripts._upgrade_revs("head", revision)}
    context = MigrationContext.configure(
        connection, opts={"version_table": VERSION_TABLE, **settings}
    )
    with Operations.context(context):
        context.run_migrations()
