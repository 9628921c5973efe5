"""Progress on stderr for long work: shown when a command asks for it and a person is watching."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

from tqdm import tqdm

T = TypeVar("T")


class _Switch:
    on = False


def show(on: bool = True) -> None:
    """Let long computations draw a bar; libraries stay silent unless a command calls this."""
    _Switch.on = on


def watched() -> bool:
    """Whether a bar would be seen."""
    return _Switch.on and sys.stderr.isatty()


def track(items: Iterable[T], what: str, total: int | None = None) -> Iterator[T]:
    """Yield the items, with a bar that says what is being done and how long it will take."""
    if not watched():
        yield from items
        return
    yield from tqdm(items, desc=what, total=total, leave=False, file=sys.stderr)
