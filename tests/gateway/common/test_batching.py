"""Threads that want the same thing at the same moment do it together."""

import random
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from gateway.common.batching import Together


class Work:
    """A run that can be held up, and remembers its batches."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.proceed = threading.Event()
        self.begun = threading.Semaphore(0)
        self.fail_on: set[int] = set()
        self.break_on: set[int] = set()

    def __call__(self, items: Sequence[int]) -> list[int | Exception]:
        self.batches.append(list(items))
        self.begun.release()
        assert self.proceed.wait(60)
        if self.break_on & set(items):
            raise KeyError(self.break_on)
        return [ValueError(item) if item in self.fail_on else -item for item in items]


@pytest.fixture
def work() -> Work:
    """Return a run that waits until it is told to proceed."""
    return Work()


def _start(together: Together[int, int], work: Work, items: Sequence[int]) -> list["Future[int]"]:
    """Bring the first item and, while it runs, the others in order; then let all proceed."""
    threads = ThreadPoolExecutor(len(items))
    futures = [threads.submit(together, items[0])]
    assert work.begun.acquire(timeout=60)
    for count, item in enumerate(items[1:], start=1):
        futures.append(threads.submit(together, item))
        _until_waiting(together, count)
    work.proceed.set()
    threads.shutdown()
    return futures


def _until_waiting(together: Together[int, int], count: int) -> None:
    for _ in range(60_000):
        if len(together._waiting) == count:
            return
        threading.Event().wait(0.001)
    raise AssertionError(f"there were never {count} waiting")


def test_what_arrives_during_a_run_shares_the_next_one(work: Work) -> None:
    items = random.sample(range(1, 1000), 6)
    futures = _start(Together(work, most=32), work, items)
    assert [future.result() for future in futures] == [-item for item in items]
    assert work.batches == [items[:1], items[1:]]


def test_a_caller_alone_waits_for_nobody(work: Work) -> None:
    work.proceed.set()
    together = Together(work, most=32)
    assert [together(item) for item in (3, 4)] == [-3, -4]
    assert work.batches == [[3], [4]]


def test_no_more_than_most_run_together(work: Work) -> None:
    items = list(range(1, 9))
    futures = _start(Together(work, most=3), work, items)
    assert [future.result() for future in futures] == [-item for item in items]
    assert [len(batch) for batch in work.batches] == [1, 3, 3, 1]


def test_two_of_one_key_never_run_together_and_keep_their_order(work: Work) -> None:
    items = [1, 12, 22, 32, 13]
    futures = _start(Together(work, most=32, key=lambda item: item % 10), work, items)
    assert [future.result() for future in futures] == [-item for item in items]
    assert work.batches == [[1], [12, 13], [22], [32]]


def test_an_item_that_is_refused_fails_no_other(work: Work) -> None:
    items = [1, 2, 3, 4]
    work.fail_on = {3}
    futures = _start(Together(work, most=32), work, items)
    assert [type(future.exception()) for future in futures] == [
        type(None),
        type(None),
        ValueError,
        type(None),
    ]


def test_after_a_run_that_broke_each_runs_alone_and_the_next_is_not_stuck(work: Work) -> None:
    items = [1, 2, 3, 4]
    work.break_on = {3}
    together = Together(work, most=32)
    futures = _start(together, work, items)
    assert [future.exception() is None for future in futures] == [True, True, False, True]
    assert work.batches[:2] == [[1], [2, 3, 4]]
    assert sorted(work.batches[2:]) == [[2], [3], [4]]
    assert together(7) == -7


def test_where_the_leader_is_ended_the_others_still_get_their_results(work: Work) -> None:
    ends = threading.Event()

    def run(items: Sequence[int]) -> list[int | Exception]:
        if not ends.is_set() and len(items) > 1:
            ends.set()
            raise SystemExit
        return work(items)

    items = [1, 2, 3]
    futures = _start(Together(run, most=32), work, items)
    ended = [future for future in futures if isinstance(future.exception(), SystemExit)]
    assert len(ended) == 1
    assert sorted(future.result() for future in futures if future not in ended) in ([-3, -1], [-2, -1])


def test_a_run_after_a_shared_one_waits_a_moment_for_more(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr("gateway.common.batching.time.sleep", slept.append)
    together = Together(work, most=32, gather_seconds=0.25)
    futures = _start(together, work, [1, 2, 3])
    assert [future.result() for future in futures] == [-1, -2, -3]
    assert slept == []
    assert (together(4), slept) == (-4, [0.25])
    # It came alone, so the next one finds no reason to wait.
    assert (together(5), slept) == (-5, [0.25])
