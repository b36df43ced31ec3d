"""Concurrent callers of one function share its runs."""

import functools
import math
import random
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from gateway.chain.errors import NodeUnavailable
from relay.services.accepting import batching
from relay.services.accepting.batching import Batcher, Seal, WaitLimits, _Ticket


class Work:
    """A run that can be held up, and remembers its batches."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.stayed: list[set[int]] = []
        self.proceed = threading.Event()
        self.begun = threading.Semaphore(0)
        self.fail_on: set[int] = set()
        self.break_on: set[int] = set()

    def __call__(self, items: Sequence[int], seal: Seal) -> list[int | Exception]:
        self.batches.append(list(items))
        self.begun.release()
        assert self.proceed.wait(60)
        self.stayed.append({items[place] for place in seal()})
        if self.break_on & set(items):
            raise KeyError(self.break_on)
        return [ValueError(item) if item in self.fail_on else -item for item in items]


@pytest.fixture
def work() -> Work:
    """Return a run that waits until `proceed` is set."""
    return Work()


def _start(batcher: Batcher[int, int], work: Work, items: Sequence[int]) -> list["Future[int]"]:
    """Bring the first item and, while it runs, the others in order; then let all proceed."""
    threads = ThreadPoolExecutor(len(items))
    futures = [threads.submit(batcher, items[0])]
    assert work.begun.acquire(timeout=60)
    for count, item in enumerate(items[1:], start=1):
        futures.append(threads.submit(batcher, item))
        _until_waiting(batcher, count)
    work.proceed.set()
    threads.shutdown()
    return futures


def _until_waiting(batcher: Batcher[int, int], count: int) -> None:
    for _ in range(60_000):
        if len(batcher._waiting) == count:
            return
        threading.Event().wait(0.001)
    raise AssertionError(f"there were never {count} waiting")


def test_calls_that_arrive_during_a_run_share_the_next_one(work: Work) -> None:
    items = random.sample(range(1, 1000), 6)
    futures = _start(Batcher(work, most=32), work, items)
    assert [future.result() for future in futures] == [-item for item in items]
    assert work.batches == [items[:1], items[1:]]


def test_a_single_caller_does_not_wait(work: Work) -> None:
    work.proceed.set()
    batcher = Batcher(work, most=32)
    assert [batcher(item) for item in (3, 4)] == [-3, -4]
    assert work.batches == [[3], [4]]


def test_no_more_than_most_run_together(work: Work) -> None:
    items = list(range(1, 9))
    futures = _start(Batcher(work, most=3), work, items)
    assert [future.result() for future in futures] == [-item for item in items]
    assert [len(batch) for batch in work.batches] == [1, 3, 3, 1]


def test_an_item_that_is_refused_fails_no_other(work: Work) -> None:
    items = [1, 2, 3, 4]
    work.fail_on = {3}
    futures = _start(Batcher(work, most=32), work, items)
    assert [type(future.exception()) for future in futures] == [
        type(None),
        type(None),
        ValueError,
        type(None),
    ]


def test_after_a_run_that_broke_each_runs_alone_and_the_next_is_not_stuck(work: Work) -> None:
    items = [1, 2, 3, 4]
    work.break_on = {3}
    batcher = Batcher(work, most=32)
    futures = _start(batcher, work, items)
    assert [future.exception() is None for future in futures] == [True, True, False, True]
    assert work.batches[:2] == [[1], [2, 3, 4]]
    assert sorted(work.batches[2:]) == [[2], [3], [4]]
    assert batcher(7) == -7


def test_if_the_leader_is_terminated_the_others_still_get_their_results(work: Work) -> None:
    ends = threading.Event()

    def run(items: Sequence[int], seal: Seal) -> list[int | Exception]:
        if not ends.is_set() and len(items) > 1:
            ends.set()
            raise SystemExit
        return work(items, seal)

    items = [1, 2, 3]
    futures = _start(Batcher(run, most=32), work, items)
    ended = [future for future in futures if isinstance(future.exception(), SystemExit)]
    assert len(ended) == 1
    assert sorted(future.result() for future in futures if future not in ended) in ([-3, -1], [-2, -1])


def test_a_run_after_a_large_one_waits_for_its_participants(work: Work) -> None:
    batcher = Batcher(work, most=32, pause_seconds=60, longest_wait_seconds=60)
    futures = _start(batcher, work, [1, 2, 3, 4, 5])
    assert [future.result() for future in futures] == [-1, -2, -3, -4, -5]
    with ThreadPoolExecutor(4) as threads:
        early = [threads.submit(batcher, item) for item in (6, 7, 8)]
        time.sleep(0.05)
        assert not any(future.done() for future in early)
        assert threads.submit(batcher, 9).result() == -9
        assert [future.result() for future in early] == [-6, -7, -8]
    assert [sorted(batch) for batch in work.batches] == [[1], [2, 3, 4, 5], [6, 7, 8, 9]]


def test_a_run_after_a_small_one_does_not_wait(work: Work) -> None:
    batcher = Batcher(work, most=32, pause_seconds=60, longest_wait_seconds=60)
    futures = _start(batcher, work, [1, 2, 3, 4])
    assert [future.result() for future in futures] == [-1, -2, -3, -4]
    assert [sorted(batch) for batch in work.batches] == [[1], [2, 3, 4]]
    assert batcher._wait_ends_at <= time.monotonic()


@pytest.mark.parametrize(("pause", "longest"), [(60, 0.2), (0.2, 60)])
def test_a_run_after_a_large_one_waits_only_briefly(work: Work, pause: float, longest: float) -> None:
    batcher = Batcher(work, most=32, pause_seconds=pause, longest_wait_seconds=longest)
    _start(batcher, work, [1, 2, 3, 4, 5])
    began = time.monotonic()
    assert batcher(6) == -6
    assert 0.1 < time.monotonic() - began < 30
    # It came alone, so the next one finds no reason to wait.
    assert batcher._wait_ends_at <= time.monotonic()


@pytest.mark.parametrize(
    ("coming", "came"), [([1, 1, 0, 1], [1, 1, 0]), ([0, 1], [0]), ([2, 2, 1], [2, 2]), ([4], [4])]
)
def test_a_run_waits_while_callers_keep_arriving_and_some_are_missing(
    work: Work, monkeypatch: pytest.MonkeyPatch, coming: list[int], came: list[int]
) -> None:
    batcher = Batcher(work, most=32, pause_seconds=5, longest_wait_seconds=60)
    batcher._expected, batcher._wait_ends_at = 5, time.monotonic() + 60
    pauses: list[int] = []

    def wait(seconds: float) -> None:
        assert seconds == 5
        pauses.append(coming[len(pauses)])
        batcher._waiting.extend(_Ticket(0) for _ in range(pauses[-1]))

    monkeypatch.setattr(batcher._arrived, "wait", wait)
    batcher._wait_for_expected()
    assert pauses == came


class TestPatience:
    """Callers do not wait for ever for a run that does not come back."""

    def _impatient(self, work: Work) -> Batcher[int, int]:
        refusal = functools.partial(NodeUnavailable, "No answer.")
        return Batcher(work, most=32, wait_limits=WaitLimits(seconds=0.1, callers=2, refusal=refusal))

    def _seconds_until_refused(self, batcher: Batcher[int, int]) -> float:
        started = time.monotonic()
        with pytest.raises(NodeUnavailable):
            batcher(11)
        return time.monotonic() - started

    def test_after_the_time_limit_only_a_few_callers_wait_and_new_ones_are_refused_at_once(
        self, work: Work
    ) -> None:
        batcher = self._impatient(work)
        threads = ThreadPoolExecutor(12)
        futures = [threads.submit(batcher, item) for item in range(10)]
        while sum(future.done() for future in futures) < 7:
            time.sleep(0.01)
        assert min(self._seconds_until_refused(batcher) for _ in range(5)) < batching.CHECK_SECONDS
        work.proceed.set()
        threads.shutdown()
        refused = [future for future in futures if future.exception()]
        assert len(refused) == 7
        assert {future.result() for future in futures if future not in refused} <= {-n for n in range(10)}
        assert sum(map(len, work.stayed)) == 3
        assert batcher._followers == 0

    def test_callers_of_a_run_may_leave_until_it_is_sealed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        clock: SimpleNamespace = SimpleNamespace(now=0.0, monotonic=lambda: clock.now)
        monkeypatch.setattr(batching, "time", clock)
        alone, decides, ends = threading.Event(), threading.Event(), threading.Event()
        stayed: list[set[int]] = []

        def run(items: Sequence[int], seal: Seal) -> list[int | Exception]:
            assert (alone if len(items) == 1 else decides).wait(60)
            stayed.append({items[place] for place in seal()})
            assert len(items) == 1 or ends.wait(60)
            return [-item for item in items]

        refusal = functools.partial(NodeUnavailable, "No answer.")
        batcher = Batcher(run, most=32, wait_limits=WaitLimits(seconds=0.3, callers=2, refusal=refusal))
        threads = ThreadPoolExecutor(8)
        first = threads.submit(batcher, 1)
        while batcher._began_at == math.inf:
            time.sleep(0.001)
        others = {item: threads.submit(batcher, item) for item in range(2, 7)}
        _until_waiting(batcher, 5)
        alone.set()
        # One of the five leads the others; two of these stay.
        while sum(future.done() for future in others.values()) < 2:
            clock.now += 1
            time.sleep(0.01)
        decides.set()
        while len(stayed) < 2:
            time.sleep(0.001)
        clock.now += 60
        late = threads.submit(batcher, 7)
        time.sleep(0.2)
        assert not late.done()
        ends.set()
        threads.shutdown()
        assert (first.result(), late.result()) == (-1, -7)
        answered = {item for item, future in others.items() if not future.exception()}
        assert stayed == [{1}, answered, {7}]
        assert len(answered) == 3

    def test_an_outage_is_the_result_of_all_callers_and_is_not_retried(self) -> None:
        runs, over = [], threading.Event()

        def away(items: Sequence[int], _: Seal) -> list[int | Exception]:
            runs.append(list(items))
            assert over.wait(60)
            raise NodeUnavailable("No answer.")

        batcher = Batcher(away, most=32)
        with ThreadPoolExecutor(8) as threads:
            futures = [threads.submit(batcher, item) for item in range(8)]
            _until_waiting(batcher, 7)
            over.set()
        assert all(isinstance(future.exception(), NodeUnavailable) for future in futures)
        assert [len(items) for items in runs] == [1, 7]


def test_an_owner_with_many_items_leaves_places_in_each_batch_to_others(work: Work) -> None:
    # The tens of an item are its owner.
    batcher = Batcher(work, most=6, owner_of=lambda item: item // 10, share=2)
    futures = _start(batcher, work, [10, 11, 12, 13, 14, 15, 16, 20, 21, 22, 30])
    assert [future.result() for future in futures] == [
        -item for item in (10, 11, 12, 13, 14, 15, 16, 20, 21, 22, 30)
    ]
    assert work.batches == [[10], [11, 12, 20, 21, 30], [13, 14, 22], [15, 16]]


def test_an_owner_alone_fills_the_batches(work: Work) -> None:
    items = list(range(10, 20))
    futures = _start(Batcher(work, most=6, owner_of=lambda item: item // 10, share=2), work, items)
    assert [future.result() for future in futures] == [-item for item in items]
    assert work.batches == [items[:1], items[1:7], items[7:]]
