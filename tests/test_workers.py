"""Workers: order is kept, errors come back, and one that is killed never makes the rest wait."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from functools import partial
from itertools import count, islice
from operator import pos
from threading import Timer
from typing import Any

import psutil
import pytest

from deniable.workers import WorkerLostError, Workers

# Far more than a pipe holds: writing it takes a while.
LARGE = 20_000_000


def slow_for_even_numbers() -> Callable[[int], int]:
    def work(number: int) -> int:
        time.sleep(0.05 * (number % 2 == 0))
        return 2 * number

    return work


def failing_at(bad: int) -> Callable[[int], int]:
    def work(number: int) -> int:
        if number == bad:
            raise ZeroDivisionError(number)
        return number

    return work


def not_prepared() -> Callable[[int], int]:
    raise LookupError("no space")


def killed_after(delay: float) -> Callable[[int], bytes]:
    """Return work with large results, in a process that is killed soon after its first task."""

    def work(number: int) -> bytes:
        if number == 0:
            Timer(delay, os.kill, (os.getpid(), signal.SIGKILL)).start()
        return b"x" * LARGE

    return work


def name_of_process() -> Callable[[int], int]:
    def work(_: int) -> int:
        time.sleep(0.05)
        return os.getpid()

    return work


def results(workers: int, prepare: Callable[[], Callable[[int], Any]], items: int) -> list[Any]:
    with Workers(workers, prepare) as pool:
        return list(pool.in_order(range(items), pos))


def test_results_come_in_the_order_of_the_items() -> None:
    assert results(2, slow_for_even_numbers, 9) == [(item, 2 * item) for item in range(9)]


def test_every_process_is_used_and_none_is_left() -> None:
    names = {name for _, name in results(2, name_of_process, 12)}
    assert len(names) == 2
    assert not any(psutil.pid_exists(name) for name in names)


@pytest.mark.parametrize("workers", [1, 2])
def test_the_error_of_a_task_comes_back(workers: int) -> None:
    with pytest.raises(ZeroDivisionError, match="3"):
        results(workers, partial(failing_at, 3), 9)


class AwkwardError(Exception):
    """An error that can't be made again from its arguments."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(one + two)


def failing_awkwardly() -> Callable[[int], int]:
    def work(number: int) -> int:
        raise AwkwardError(number, 1)

    return work


def failing_with_what_cannot_be_sent() -> Callable[[int], int]:
    def work(number: int) -> int:
        raise ValueError(lambda: number)

    return work


@pytest.mark.parametrize("prepare", [failing_awkwardly, failing_with_what_cannot_be_sent])
def test_an_error_that_cannot_be_sent_is_named(
    prepare: Callable[[], Callable[[int], int]], capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(RuntimeError, match=r"(AwkwardError|ValueError) in a worker process"):
        results(2, prepare, 3)
    assert capfd.readouterr().err == ""


def test_the_error_of_the_preparation_comes_back() -> None:
    with pytest.raises(LookupError, match="no space"):
        results(2, not_prepared, 3)


@pytest.mark.parametrize("delay", [0, 0.001, 0.003, 0.01, 0.03])
def test_a_worker_killed_at_any_time_is_seen(delay: float) -> None:
    with pytest.raises(WorkerLostError):
        results(2, partial(killed_after, delay), 10_000)


def test_only_a_few_items_are_in_flight() -> None:
    asked = count()
    with Workers(2, slow_for_even_numbers) as pool:
        found = list(islice(pool.in_order(asked, pos), 3))
    assert found == [(0, 0), (1, 2), (2, 4)]
    assert next(asked) <= 6
