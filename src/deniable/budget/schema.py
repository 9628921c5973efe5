"""The tables of a ledger. Charges and budgets are only ever added; words can be forgotten."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)

METADATA = MetaData()
# SQLite counts by itself only in a column of its own integer type.
_IDENTITY = BigInteger().with_variant(Integer, "sqlite")

# What one subject was charged for in one batch of a run. `number` counts the subject's charges:
# two writers can't add the same one. The release is what one draw costs, and `total_` columns hold
# the sums after the charge, so that what is spent is read off the last row.
CHARGES = Table(
    "deniable_charges",
    METADATA,
    Column("id", _IDENTITY, primary_key=True, autoincrement=True),
    Column("subject", Text, nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("at", Double, nullable=False),
    Column("run", Text, nullable=False),
    Column("part", BigInteger, nullable=False),
    Column("mechanism", Text, nullable=False),
    Column("relation", Text, nullable=False),
    Column("records", BigInteger, nullable=False),
    Column("draws", BigInteger, nullable=False),
    Column("epsilon", Double, nullable=False),
    Column("delta", Double, nullable=False),
    Column("rho", Double, nullable=False),
    Column("total_records", BigInteger, nullable=False),
    Column("total_draws", BigInteger, nullable=False),
    Column("total_epsilon", Double, nullable=False),
    Column("total_rho", Double, nullable=False),
    Column("total_epsilon_beside", Double, nullable=False),
    Column("total_delta_beside", Double, nullable=False),
    UniqueConstraint("subject", "number", name="deniable_charges_once"),
    Index("deniable_charges_run", "run", "part"),
)

# What subjects may spend; no subject means all without a budget of their own. The last row counts.
BUDGETS = Table(
    "deniable_budgets",
    METADATA,
    Column("id", _IDENTITY, primary_key=True, autoincrement=True),
    Column("subject", Text),
    Column("at", Double, nullable=False),
    Column("epsilon", Double, nullable=False),
    Column("delta", Double, nullable=False),
    Column("period", Double),
    Index("deniable_budgets_subject", "subject", "id"),
)

# The replacements of a subject's words: `word` is a keyed hash, `replacement` is encrypted.
WORDS = Table(
    "deniable_words",
    METADATA,
    Column("subject", Text, primary_key=True),
    Column("word", LargeBinary, primary_key=True),
    Column("replacement", LargeBinary, nullable=False),
)

# By what the key of the words is recognised.
KEYS = Table(
    "deniable_keys",
    METADATA,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("fingerprint", LargeBinary, nullable=False),
)
