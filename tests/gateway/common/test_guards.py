"""A stalled dependency holds a few threads at most, and its circuit opens after several failures in a row."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from types import SimpleNamespace

import pytest

from gateway.common import guards
from gateway.common.guards import CircuitOpen, Guard, NoShare, Shares


def _fail(guard: Guard, times: int) -> None:
    for _ in range(times):
        with suppress(ConnectionError), guard.place():
            guard.failed()
            raise ConnectionError


def test_a_stalled_dependency_holds_as_many_threads_as_it_has_places_and_other_callers_fail_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    guard, back = Guard(places=2), threading.Event()

    def call() -> bool:
        try:
            with guard.place():
                return back.wait(120)
        except CircuitOpen:
            return False

    with ThreadPoolExecutor(12) as threads:
        calls = [threads.submit(call) for _ in range(10)]
        while sum(one.done() for one in calls) < 8:
            time.sleep(0.01)
        # The oldest call has lasted longer than `wait_seconds`, so a new caller does not wait.
        monkeypatch.setattr(guard._changed, "wait", lambda _: pytest.fail("it waits"))
        assert not call()
        back.set()
        assert sorted(one.result() for one in calls) == [False] * 8 + [True] * 2


def test_every_caller_is_admitted_while_the_dependency_responds() -> None:
    guard = Guard(places=2, wait_seconds=60)

    def call(_: int) -> bool:
        with guard.place():
            time.sleep(0.01)
        return True

    with ThreadPoolExecutor(16) as threads:
        assert all(threads.map(call, range(100)))


def test_after_three_failures_in_a_row_the_circuit_is_open() -> None:
    guard = Guard(places=2)
    _fail(guard, 2)
    guard.responded()
    _fail(guard, 2)
    assert not guard.is_open
    _fail(guard, 1)
    with pytest.raises(CircuitOpen), guard.place():
        pytest.fail("a call was made")


def test_one_trial_call_at_a_time_closes_the_circuit(monkeypatch: pytest.MonkeyPatch) -> None:
    clock: SimpleNamespace = SimpleNamespace(now=0.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(guards, "time", clock)
    guard = Guard(places=2)
    _fail(guard, 3)
    clock.now += guards.OPEN_SECONDS
    with guard.place(), pytest.raises(CircuitOpen), guard.place():
        pytest.fail("a second trial beside the first")
    with guard.place(), guard.place():
        assert not guard.is_open


def test_callers_that_wait_for_a_place_are_refused_when_the_circuit_opens() -> None:
    guard, back = Guard(places=1), threading.Event()

    def hang() -> None:
        with guard.place():
            back.wait(120)

    def call() -> None:
        with guard.place():
            pytest.fail("a call was made")

    with ThreadPoolExecutor(2) as threads:
        hanging = threads.submit(hang)
        while not guard._inside:
            time.sleep(0.01)
        waiting = threads.submit(call)
        for _ in range(3):
            guard.failed()
        with pytest.raises(CircuitOpen):
            waiting.result(60)
        back.set()
        hanging.result()


def test_a_share_is_limited_for_each_and_for_all() -> None:
    shares = Shares(total=3, each=2)
    with ExitStack() as taken:
        for owner in ("one", "one", "two"):
            taken.enter_context(shares.place(owner))
        for owner in ("one", "two", "three"):
            with pytest.raises(NoShare), shares.place(owner):
                pass
    with shares.place("one"), shares.place("one"), pytest.raises(NoShare), shares.place("one"):
        pass
    with shares.place("three"):
        pass
