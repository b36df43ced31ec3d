"""Threads that want the same thing at the same moment do it together."""

import functools
import random
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from gateway.chain.errors import NodeUnavailable
from gateway.common import batching
from gateway.common.batching import Patience, Round, Together


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
    together = Together(work, most=32, batch_wait_seconds=lambda callers: callers / 8)
    futures = _start(together, work, [1, 2, 3])
    assert [future.result() for future in futures] == [-1, -2, -3]
    assert slept == []
    assert (together(4), slept) == (-4, [0.25])
    # It came alone, so the next one finds no reason to wait.
    assert (together(5), slept) == (-5, [0.25])


def test_a_wait_before_a_run_that_breaks_fails_its_leader_alone(work: Work) -> None:
    work.proceed.set()
    waits = iter([KeyError("broken"), None])

    def wait() -> None:
        if (error := next(waits)) is not None:
            raise error

    together = Together(work, most=32, before_run=wait)
    with pytest.raises(KeyError, match="broken"):
        together(3)
    assert together(4) == -4


class TestPatience:
    """Callers do not wait for ever for a run that does not come back."""

    def _impatient(self, work: Work) -> Together[int, int]:
        refusal = functools.partial(NodeUnavailable, "No answer.")
        return Together(work, most=32, patience=Patience(seconds=0.1, callers=2, refusal=refusal))

    def test_after_a_while_only_few_wait_and_whoever_comes_is_refused_at_once(
        self, work: Work, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        together = self._impatient(work)
        threads = ThreadPoolExecutor(12)
        futures = [threads.submit(together, item) for item in range(10)]
        while sum(future.done() for future in futures) < 7:
            time.sleep(0.01)
        with monkeypatch.context() as patch:
            patch.setattr(together, "_await", lambda _: pytest.fail("it waits"))
            with pytest.raises(NodeUnavailable):
                together(11)
        work.proceed.set()
        threads.shutdown()
        refused = [future for future in futures if future.exception()]
        assert len(refused) == 7
        assert {future.result() for future in futures if future not in refused} <= {-n for n in range(10)}
        assert together._followers == 0

    def test_those_whom_a_run_has_taken_along_may_leave_too(self, monkeypatch: pytest.MonkeyPatch) -> None:
        clock: SimpleNamespace = SimpleNamespace(now=0.0, monotonic=lambda: clock.now, sleep=time.sleep)
        monkeypatch.setattr(batching, "time", clock)
        alone, together_now = threading.Event(), threading.Event()

        def run(items: Sequence[int]) -> list[int | Exception]:
            assert (alone if len(items) == 1 else together_now).wait(60)
            return [-item for item in items]

        refusal = functools.partial(NodeUnavailable, "No answer.")
        together = Together(run, most=32, patience=Patience(seconds=0.3, callers=2, refusal=refusal))
        threads = ThreadPoolExecutor(8)
        first = threads.submit(together, 1)
        while not together._is_running:
            time.sleep(0.001)
        others = [threads.submit(together, item) for item in range(2, 7)]
        _until_waiting(together, 5)
        alone.set()
        # One of the five leads the others; two of these stay.
        while sum(future.done() for future in others) < 2:
            clock.now += 1
            time.sleep(0.01)
        together_now.set()
        threads.shutdown()
        assert first.result() == -1
        assert sum(future.exception() is None for future in others) == 3

    def test_an_outage_is_the_outcome_of_all_and_nobody_asks_again(self) -> None:
        runs, over = [], threading.Event()

        def away(items: Sequence[int]) -> list[int | Exception]:
            runs.append(list(items))
            assert over.wait(60)
            raise NodeUnavailable("No answer.")

        together = Together(away, most=32)
        with ThreadPoolExecutor(8) as threads:
            futures = [threads.submit(together, item) for item in range(8)]
            _until_waiting(together, 7)
            over.set()
        assert all(isinstance(future.exception(), NodeUnavailable) for future in futures)
        assert [len(items) for items in runs] == [1, 7]


class TestRound:
    """Callers who took one step together take the next one together."""

    def test_the_second_step_waits_for_those_between_the_steps(self, work: Work) -> None:
        work.proceed.set()
        round_ = Round(seconds=60)
        second = Together(work, most=32, before_run=round_.before_second)
        with round_.caller("slow"), ThreadPoolExecutor(2) as threads:
            round_.took_first(["slow"])
            futures = [threads.submit(self._take_second, round_, second, item) for item in (3, 4)]
            _until_waiting(second, 1)
            assert work.batches == []
            round_.came_to_second("slow")
            assert [future.result() for future in futures] == [-3, -4]
        assert [sorted(batch) for batch in work.batches] == [[3, 4]]

    def test_the_next_first_step_waits_for_those_in_the_second(self, work: Work) -> None:
        work.proceed.set()
        round_ = Round(seconds=60)
        first = Together(work, most=32, before_run=round_.before_first)
        with ThreadPoolExecutor(2) as threads:
            with round_.caller("accepted"):
                round_.came_to_second("accepted")
                futures = [threads.submit(first, item) for item in (3, 4)]
                _until_waiting(first, 1)
                assert work.batches == []
            assert [future.result() for future in futures] == [-3, -4]
        assert [sorted(batch) for batch in work.batches] == [[3, 4]]

    def test_nobody_is_waited_for_who_is_slow_or_has_given_up(self, work: Work) -> None:
        work.proceed.set()
        round_ = Round(seconds=0.05)
        second = Together(work, most=32, before_run=round_.before_second)
        with round_.caller("slow"):
            round_.took_first(["slow", "gone before"])
            assert self._take_second(round_, second, 3) == -3
        round_._seconds = 60
        began = time.monotonic()
        with round_.caller("refused"):
            round_.took_first(["refused"])
        assert self._take_second(round_, second, 4) == -4
        assert time.monotonic() - began < 60

    def _take_second(self, round_: Round, second: Together[int, int], item: int) -> int:
        with round_.caller(item):
            round_.came_to_second(item)
            return second(item)
