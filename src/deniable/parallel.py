"""Run the same function over blocks of rows on every core that this process may use."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

T = TypeVar("T")
R = TypeVar("R")


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _libraries() -> ThreadpoolController:
    """Return numpy's own; looking for the libraries again each time takes milliseconds."""
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    """Let matrix products use one core: sums in another order round otherwise."""
    limit: AbstractContextManager[Any] = _libraries().limit(limits=1, user_api="blas")
    return limit


def in_threads(function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """Yield function(item) in order; numpy works outside Python's lock, so threads suffice.

    Only a few results are held at a time, and each thread's matrix products use one core.
    """
    count = cores()
    waiting: deque[Future[R]] = deque()
    with one_blas_thread(), ThreadPoolExecutor(count) as pool:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > 2 * count:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
