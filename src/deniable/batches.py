"""Batches: texts gathered, records of several texts, and what is left when some are refused."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

import numpy as np

from deniable.errors import ParameterError
from deniable.sampling import Ids

# Texts are gathered until a batch has this many characters (or the iterable ends).
BATCH_CHARACTERS = 1_000_000
BATCH_TEXTS = 10_000


def ends_of_records(ends: Ids, cells: Sequence[int] | None) -> Ids:
    """Return where records end, from where texts end and how many each record has."""
    if cells is None:
        return ends
    found: Ids = np.concatenate([[0], ends])[np.cumsum(cells, dtype=np.int64)]
    return found


def without(
    texts: Sequence[str], cells: Sequence[int] | None, dropped: Collection[int]
) -> tuple[list[str], list[int] | None]:
    """Return the texts and the cells of the other records."""
    sizes = [1] * len(texts) if cells is None else list(cells)
    kept = [text for text, i in zip(texts, _owners(sizes), strict=True) if i not in dropped]
    return kept, None if cells is None else [n for i, n in enumerate(sizes) if i not in dropped]


def _owners(sizes: Sequence[int]) -> Iterator[int]:
    """Yield the record of each text."""
    return (record for record, size in enumerate(sizes) for _ in range(size))


def checked(text: str) -> str:
    """Return a text, or refuse what is none."""
    if not isinstance(text, str):
        raise ParameterError(f"a text must be a string, got {type(text).__name__}")
    return text


def batches(texts: Iterable[str]) -> Iterator[list[str]]:
    """Gather texts into batches."""
    if isinstance(texts, str):
        raise ParameterError("sanitize_many needs an iterable of texts; one text: sanitize")
    batch: list[str] = []
    size = 0
    for text in texts:
        batch.append(text)
        size += len(checked(text))
        if size >= BATCH_CHARACTERS or len(batch) >= BATCH_TEXTS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
