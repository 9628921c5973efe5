"""The first tables: charges, budgets, remembered words, and the key they are recognised by."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

IDENTITY = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "deniable_charges",
        sa.Column("id", IDENTITY, primary_key=True, autoincrement=True),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("run", sa.Text, nullable=False),
        sa.Column("part", sa.BigInteger, nullable=False),
        sa.Column("mechanism", sa.Text, nullable=False),
        sa.Column("relation", sa.Text, nullable=False),
        sa.Column("records", sa.BigInteger, nullable=False),
        sa.Column("draws", sa.BigInteger, nullable=False),
        sa.Column("epsilon", sa.Double, nullable=False),
        sa.Column("delta", sa.Double, nullable=False),
        sa.Column("rho", sa.Double, nullable=False),
        sa.Column("total_records", sa.BigInteger, nullable=False),
        sa.Column("total_draws", sa.BigInteger, nullable=False),
        sa.Column("total_epsilon", sa.Double, nullable=False),
        sa.Column("total_rho", sa.Double, nullable=False),
        sa.Column("total_epsilon_beside", sa.Double, nullable=False),
        sa.Column("total_delta_beside", sa.Double, nullable=False),
        sa.UniqueConstraint("subject", "number", name="deniable_charges_once"),
    )
    op.create_index("deniable_charges_run", "deniable_charges", ["run", "part"])
    op.create_table(
        "deniable_budgets",
        sa.Column("id", IDENTITY, primary_key=True, autoincrement=True),
        sa.Column("subject", sa.Text),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("epsilon", sa.Double, nullable=False),
        sa.Column("delta", sa.Double, nullable=False),
        sa.Column("period", sa.Double),
    )
    op.create_index("deniable_budgets_subject", "deniable_budgets", ["subject", "id"])
    op.create_table(
        "deniable_words",
        sa.Column("subject", sa.Text, primary_key=True),
        sa.Column("word", sa.LargeBinary, primary_key=True),
        sa.Column("replacement", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "deniable_keys",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("fingerprint", sa.LargeBinary, nullable=False),
    )


def downgrade() -> None:
    """Nothing is older than the first version."""
