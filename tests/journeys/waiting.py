"""Waiting for what other processes bring about."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

T = TypeVar("T")
_PAUSE_SECONDS = 0.1


def until(what: str, condition: Callable[[], T], *, patience: float = 300) -> T:
    """Return the first value of `condition` that counts as true; give up after `patience` seconds."""
    deadline = time.monotonic() + patience
    while not (result := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {patience} s: {what}")
        time.sleep(_PAUSE_SECONDS)
    return result


def in_time(work: Callable[[], T], *, seconds: float, tries: int = 20) -> T:
    """
    Repeat the work until it took less than `seconds`; return what it returned then.

    Work that is slow each time fails. A machine that stalled for a moment does not.
    """
    for _ in range(tries):
        began = time.monotonic()
        result = work()
        if time.monotonic() - began < seconds:
            return result
    raise TimeoutError(f"{tries} times not within {seconds} s")


def at_once(jobs: Sequence[Callable[[], T]]) -> list[T]:
    """Start all jobs at the same moment, each on a thread of its own; return their results in order."""
    start = threading.Barrier(len(jobs))

    def run(job: Callable[[], T]) -> T:
        start.wait()
        return job()

    return side_by_side([partial(run, job) for job in jobs], threads=len(jobs))


def side_by_side(jobs: Sequence[Callable[[], T]], *, threads: int) -> list[T]:
    """Run the jobs on a few threads; return their results in order."""
    with ThreadPoolExecutor(threads) as pool:
        return [future.result() for future in [pool.submit(job) for job in jobs]]
