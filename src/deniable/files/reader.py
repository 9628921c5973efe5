"""What every format's reader offers: batches of texts, and the way back into the format."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from itertools import chain, compress, repeat
from pathlib import Path
from typing import Any, Self

from deniable.errors import InputError

Position = dict[str, Any]
# One word that doesn't begin with a digit.
_NAME = re.compile(r"[^\W\d][\w.:/-]{0,39}")


@dataclass(frozen=True)
class Batch:
    """Some records: their texts, and what is needed to write them back.

    `texts` holds the cells of the chosen columns, record by record; null, missing and empty cells
    are left out. `cells` is None if every record has exactly one text; otherwise it says for each
    of the `records` records how many it has, which may be none. `subjects` says for each record
    whom it is about, None if no column was named for that. `position` is where to start again
    after this batch. A repr shows no text and no subject.
    """

    texts: list[str] = field(repr=False)
    records: int
    bytes_read: int
    position: Position
    frame: Any = field(repr=False, default=None)
    cells: list[int] | None = None
    subjects: list[str] | None = field(repr=False, default=None)


class Reader(ABC):
    """One input, open.

    `passed` names the other columns, which pass in clear; that of the subject is one of them. With
    jsonl it grows with the keys that are met, as `skipped` grows with the broken records: read both
    after the last batch.
    """

    format: str
    columns: tuple[str, ...] = ()
    subject: str | None = None
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

    def without(self, batch: Batch, dropped: Collection[int]) -> Batch:
        """Return a batch without some of its records, which are counted from 0.

        The others are rendered as they would have been. A record goes with the line end behind it,
        and an empty line, which is no record, stays.
        """
        gone = set(dropped)
        kept = [at not in gone for at in range(batch.records)]
        if kept.count(False) < len(gone):
            raise ValueError(f"a batch of {batch.records} records can't lose one it doesn't have")
        sizes = [1] * batch.records if batch.cells is None else batch.cells
        each = chain.from_iterable(map(repeat, kept, sizes))
        return replace(
            batch,
            texts=list(compress(batch.texts, each)),
            records=sum(kept),
            frame=self._thin(batch.frame, kept),
            cells=uneven(compress(sizes, kept)),
            subjects=None if batch.subjects is None else list(compress(batch.subjects, kept)),
        )

    @abstractmethod
    def _thin(self, frame: Any, kept: Sequence[bool]) -> Any:
        """Return the frame of a batch with the records that are kept."""

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
        return {
            "format": self.format,
            "columns": list(self.columns),
            "subject_column": self.subject,
        }

    def needed(self) -> tuple[str, ...]:
        """Return the columns that the input must have."""
        return self.columns if self.subject is None else (*self.columns, self.subject)

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


def uneven(sizes: Iterable[int]) -> list[int] | None:
    """Return how many texts each record has; None if each has one.

    >>> uneven([1, 1]), uneven([1, 0])
    (None, [1, 0])
    """
    listed = list(sizes)
    return None if listed.count(1) == len(listed) else listed


def no_subject(source: str, place: str, column: str) -> InputError:
    """Say which record isn't about anyone."""
    return InputError(
        f"{source}: {place} has no subject in column {column!r}; give it one, or leave such "
        "records out with --on-error skip"
    )


def named_twice(source: str, column: str) -> InputError:
    """Say that a column's name leaves open which one is meant."""
    return InputError(f"{source}: two columns are called {column!r}; rename one")


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
