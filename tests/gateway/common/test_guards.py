"""A part that stands still keeps a few threads and no more, and is left alone once it has failed several times."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import SimpleNamespace

import pytest

from gateway.common import guards
from gateway.common.guards import Guard, NotLetThrough


def _fail(guard: Guard, times: int) -> None:
    for _ in range(times):
        with suppress(ConnectionError), guard.place():
            guard.failed()
            raise ConnectionError


def test_so_many_wait_for_a_part_that_stands_still_and_the_others_are_answered_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    guard, back = Guard(places=2), threading.Event()

    def call() -> bool:
        try:
            with guard.place():
                return back.wait(120)
        except NotLetThrough:
            return False

    with ThreadPoolExecutor(12) as threads:
        calls = [threads.submit(call) for _ in range(10)]
        while sum(one.done() for one in calls) < 8:
            time.sleep(0.01)
        # The others have lost their patience; whoever comes now does not wait.
        monkeypatch.setattr(guard._changed, "wait", lambda _: pytest.fail("it waits"))
        assert not call()
        back.set()
        assert sorted(one.result() for one in calls) == [False] * 8 + [True] * 2


def test_while_it_answers_whoever_comes_gets_a_place_soon() -> None:
    guard = Guard(places=2, patience_seconds=60)

    def call(_: int) -> bool:
        with guard.place():
            time.sleep(0.01)
        return True

    with ThreadPoolExecutor(16) as threads:
        assert all(threads.map(call, range(100)))


def test_after_three_failures_in_a_row_it_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    guard = Guard(places=2)
    _fail(guard, 2)
    guard.answered()
    _fail(guard, 2)
    assert not guard.is_tripped
    _fail(guard, 1)
    with pytest.raises(NotLetThrough), guard.place():
        pytest.fail("let through")


def test_one_trial_at_a_time_finds_that_it_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    clock: SimpleNamespace = SimpleNamespace(now=0.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(guards, "time", clock)
    guard = Guard(places=2)
    _fail(guard, 3)
    clock.now += guards._REST_SECONDS
    with guard.place(), pytest.raises(NotLetThrough), guard.place():
        pytest.fail("a second trial beside the first")
    with guard.place(), guard.place():
        assert not guard.is_tripped


def test_those_who_wait_for_a_place_are_let_go_when_it_fails() -> None:
    guard, back = Guard(places=1), threading.Event()

    def hang() -> None:
        with guard.place():
            back.wait(120)

    def call() -> None:
        with guard.place():
            pytest.fail("let through")

    with ThreadPoolExecutor(2) as threads:
        hanging = threads.submit(hang)
        while not guard._inside:
            time.sleep(0.01)
        waiting = threads.submit(call)
        for _ in range(3):
            guard.failed()
        with pytest.raises(NotLetThrough):
            waiting.result(60)
        back.set()
        hanging.result()
