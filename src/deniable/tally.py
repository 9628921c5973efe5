"""Tally: how much of what was seen in a text, as numbers; what certificates are made from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

OS_ENTROPY = "os-entropy"


@dataclass
class Tally:
    """Counts over any number of records; two tallies add up.

    `charged` is the number of tokens drawn from the mechanism, `largest` the most of them in one
    record, `exposed` the tokens that the mechanism itself may let through, `randomness` what all
    of them were drawn with, and `seen` the counts by kind that the policy's leaks are told from.
    """

    records: int = 0
    tokens: int = 0
    charged: int = 0
    largest: int = 0
    exposed: int = 0
    skipped: int = 0
    refused: int = 0
    randomness: str = ""
    seen: Counter[str] = field(default_factory=Counter)
    repeated: int = 0
    different: set[int] | None = field(default=None, repr=False)

    def add(self, other: Tally) -> None:
        """Add another tally to this one."""
        self.records += other.records
        self.tokens += other.tokens
        self.charged += other.charged
        self.largest = max(self.largest, other.largest)
        self.exposed += other.exposed
        self.skipped += other.skipped
        self.refused += other.refused
        # One seeded part makes the whole seeded.
        if not self.randomness or other.randomness not in ("", OS_ENTROPY):
            self.randomness = other.randomness
        self.seen.update(other.seen)
        self.repeated += other.repeated
        if other.different is not None:
            self.different = (self.different or set()) | other.different
            self.charged = len(self.different)

    def to_dict(self) -> dict[str, Any]:
        """Return the tally as plain data, for a journal: never which words there were."""
        return {**self.__dict__, "seen": dict(self.seen), "different": None}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Tally:
        """Rebuild a tally from plain data."""
        return cls(**{**data, "seen": Counter(data["seen"])})
