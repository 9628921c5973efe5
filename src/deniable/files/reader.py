"""What every format's reader offers: batches of texts, and the way back into the format."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Self

from deniable.errors import InputError

Position = dict[str, Any]
# One word that doesn't begin with a digit.
_NAME = re.compile(r"[^\W\d][\w.:/-]{0,39}")


@dataclass(frozen=True)
class Batch:
    """Some records: their texts, and what is needed to write them back.

    `texts` holds the cells of the chosen columns, record by record; null and missing cells are
    left out. `cells` says how many each record has, None that each has one. `position` is where
    to start again after this batch. A repr shows no text.
    """

    texts: list[str] = field(repr=False)
    records: int
    bytes_read: int
    position: Position
    frame: Any = field(repr=False, default=None)
    cells: list[int] | None = None


class Reader(ABC):
    """One input, open.

    `passed` names the other columns, which pass in clear. With jsonl it grows with the keys that
    are met, as `skipped` grows with the broken records: read both after the last batch.
    """

    format: str
    columns: tuple[str, ...] = ()
    passed: tuple[str, ...] = ()
    total_bytes: int | None = None
    skipped: int = 0
    source: str
    start: Position | None = None

    @abstractmethod
    def batches(self, characters: int = 4_000_000) -> Iterator[Batch]:
        """Yield the records in order, about `characters` characters at a time."""

    @abstractmethod
    def head(self) -> bytes:
        """Return what stands before the first record: a byte order mark, a header."""

    @abstractmethod
    def render(self, batch: Batch, texts: Sequence[str]) -> bytes:
        """Return the records of a batch with `texts` in the place of its texts."""

    def finish(self, part: Path, final: Path) -> bool:
        """Turn the rendered bytes in `part` into the file `final`, if the format needs it."""
        del part, final
        return False

    @abstractmethod
    def close(self) -> None:
        """Close the input."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def settings(self) -> Position:
        """Return the choices that a position depends on."""
        return {"format": self.format, "columns": list(self.columns)}

    def check_start(self, start: Position | None) -> None:
        """Refuse a position that was made with other choices."""
        for name, value in self.settings().items():
            if start is not None and start.get(name) != value:
                option = "--" + name.replace("_", "-").removesuffix("s")
                raise InputError(
                    f"{self.source}: this run and the broken one differ in {option}; repeat the "
                    "options of the broken run, or start anew without --resume"
                )
        self.start = start


def check_texts(batch: Batch, texts: Sequence[str]) -> None:
    """Refuse a batch that comes back with more or fewer texts than it left with."""
    if len(texts) != len(batch.texts):
        raise ValueError(f"{len(batch.texts)} texts were read and {len(texts)} came back")


def missing_column(source: str, column: str, names: Sequence[str]) -> InputError:
    """Say which column isn't there, and which are."""
    if not names:
        return InputError(f"{source}: no column {column!r}, and no header that names columns")
    near = get_close_matches(column, names, n=1, cutoff=0.6) if shown_names(names) else []
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return InputError(f"{source}: no column {column!r}{shown_names(names)}{hint}")


def shown_names(names: Sequence[str]) -> str:
    """List the columns that there are, in brackets; only count them if they are hardly names.

    >>> shown_names(["id", "note"]), shown_names(["id", "Alice has a cold"])
    (' (there are: id, note)', ' (the first record has 2 columns)')
    """
    if not names:
        return ""
    # The first line of a file without a header is a record, and a record is never shown.
    if not all(_NAME.fullmatch(name) for name in names):
        return f" (the first record has {len(names):,} column{'s' if len(names) > 1 else ''})"
    return f" (there are: {', '.join(names[:20])}{', ...' if len(names) > 20 else ''})"
