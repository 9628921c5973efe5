"""Processes that sanitize batches, each at the end of a pipe of its own.

A shared queue (as process pools have) can be left locked or half-written by a worker that is
killed, and then the rest wait for ever. A pipe that one worker alone holds ends with that worker.
Every process keys its own generator from the operating system.
"""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import ForkingPickler
from queue import SimpleQueue
from threading import Thread
from types import TracebackType
from typing import Any, Generic, TypeVar

Item = TypeVar("Item")
Given = TypeVar("Given")
Made = TypeVar("Made")
SPAWN = get_context("spawn")


class WorkerLostError(RuntimeError):
    """A worker process was killed; what is written so far is kept, as after any break."""


class Workers(Generic[Given, Made]):
    """`count` processes; each calls `prepare()` once, and what that returns for every task.

    A context manager: at its end the processes are gone.
    """

    def __init__(self, count: int, prepare: Callable[[], Callable[[Given], Made]]) -> None:
        self._count = count
        self._idle: SimpleQueue[Connection[Any, Any]] = SimpleQueue()
        self._threads = ThreadPoolExecutor(count)
        self._pipes = [SPAWN.Pipe() for _ in range(count)]
        self._processes = [
            SPAWN.Process(target=_serve, args=(theirs, prepare), daemon=True)
            for _, theirs in self._pipes
        ]

    def __enter__(self) -> Workers[Given, Made]:
        with _interrupts_held():
            for process, (ours, theirs) in zip(self._processes, self._pipes, strict=True):
                process.start()
                # The worker's end must be open in the worker alone, or its death goes unseen.
                theirs.close()
                self._idle.put(ours)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        for process in self._processes:
            if process.pid is not None:
                process.terminate()
                process.join()
        # A thread that waits for a worker is let go by the worker's end.
        self._threads.shutdown(wait=True, cancel_futures=True)
        for ours, _ in self._pipes:
            ours.close()

    def in_order(
        self, items: Iterable[Item], task: Callable[[Item], Given]
    ) -> Iterator[tuple[Item, Made]]:
        """Yield each item with what a worker made of its task; few are in flight at a time."""
        waiting: deque[tuple[Item, Future[Made]]] = deque()
        for item in items:
            waiting.append((item, self._threads.submit(self._exchange, task(item))))
            if len(waiting) > self._count:
                yield _first(waiting)
        while waiting:
            yield _first(waiting)

    def _exchange(self, task: Given) -> Made:
        pipe = self._idle.get()
        try:
            pipe.send(task)
            made, problem = pipe.recv()
        except (EOFError, OSError):
            raise WorkerLostError from None
        finally:
            self._idle.put(pipe)
        if problem is not None:
            raise problem
        found: Made = made
        return found


def _first(waiting: deque[tuple[Item, Future[Made]]]) -> tuple[Item, Made]:
    item, future = waiting.popleft()
    return item, future.result()


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C back while workers start: they inherit that, and the parent decides."""
    held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)


def _serve(pipe: Connection[Any, Any], prepare: Callable[[], Callable[[Any], Any]]) -> None:
    """Answer each task, or with the error that it made, until the other end closes."""
    Thread(target=_end_with_parent, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
    with suppress(EOFError, OSError):
        answer = _prepared(prepare)
        while True:
            pipe.send(answer(pipe.recv()))


def _prepared(
    prepare: Callable[[], Callable[[Any], Any]],
) -> Callable[[Any], tuple[Any, Exception | None]]:
    """Return a function that never raises: what went wrong is its second result."""
    try:
        work = prepare()
    except Exception as error:
        problem = error
        return lambda _: (None, problem)

    def answer(task: Any) -> tuple[Any, Exception | None]:
        try:
            return work(task), None
        except Exception as error:
            return None, _portable(error)

    return answer


def _portable(error: Exception) -> Exception:
    """Return the error if it survives the way to the parent, else one that names its kind."""
    try:
        ForkingPickler.loads(ForkingPickler.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__} in a worker process")
    return error


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
