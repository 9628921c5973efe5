"""What must be made anew in a forked child: locks that another thread held, keys, kept draws."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable

_started: list[weakref.WeakMethod[Callable[[], None]]] = []


def in_every_child(start: Callable[[], None]) -> None:
    """Call this bound method in every child that this process forks, while its object lives."""
    _started[:] = [reference for reference in _started if reference() is not None]
    _started.append(weakref.WeakMethod(start))


def _start_all() -> None:
    for reference in _started:
        start = reference()
        if start is not None:
            start()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_all)
