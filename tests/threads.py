"""Calls at the same moment, or one that has to wait, each on a database connection of its own."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from typing import TypeVar

from django.db import connections, transaction

from gateway.common.errors import DomainError
from tests.credits.rows import query

T = TypeVar("T")
# Unlike pg_stat_activity, this view is read anew within a transaction.
_WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted"
_PATIENCE_SECONDS = 60


def at_once(calls: Sequence[Callable[[], T]], *, in_transaction: bool = False) -> list[T | DomainError]:
    """
    Start all calls together; return each one's result or refusal in their order. Other errors are raised.

    `in_transaction` for services that join their caller's: each call then runs in one of its own.
    """
    start = threading.Barrier(len(calls))

    def run(call: Callable[[], T]) -> T | DomainError:
        start.wait()
        return _on_its_own(call, in_transaction=in_transaction)

    with ThreadPoolExecutor(len(calls)) as threads:
        return [future.result() for future in [threads.submit(run, call) for call in calls]]


@contextmanager
def waits_for_this_transaction(
    call: Callable[[], T], *, in_transaction: bool = False
) -> Iterator["Future[T | DomainError]"]:
    """Run the block in a transaction, then start `call` elsewhere, see it wait for a lock, and commit."""
    with ThreadPoolExecutor(1) as threads:
        with transaction.atomic():
            waiting: Future[T | DomainError] = Future()
            yield waiting
            started = threads.submit(_on_its_own, call, in_transaction=in_transaction)
            _wait_for_a_blocked_session()
        waiting.set_result(started.result(timeout=_PATIENCE_SECONDS))


@contextmanager
def locked_elsewhere(lock: Callable[[], object]) -> Iterator[None]:
    """Let another session hold the locks that `lock` takes; this one waits a tenth of a second for them, no longer."""
    locked, done = threading.Event(), threading.Event()

    def hold() -> None:
        lock()
        locked.set()
        done.wait(60)

    with ThreadPoolExecutor(1) as threads:
        holding = threads.submit(_on_its_own, hold, in_transaction=True)
        try:
            assert locked.wait(_PATIENCE_SECONDS)
            query("SET lock_timeout = '100ms'")
            yield
        finally:
            query("RESET lock_timeout")
            done.set()
            holding.result(timeout=_PATIENCE_SECONDS)


def _on_its_own(call: Callable[[], T], *, in_transaction: bool) -> T | DomainError:
    try:
        with transaction.atomic(durable=True) if in_transaction else nullcontext():
            return call()
    except DomainError as refusal:
        return refusal
    finally:
        connections.close_all()


def _wait_for_a_blocked_session() -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while query(_WAITING) == [(0,)]:
        if time.monotonic() > deadline:
            raise AssertionError("nothing waits for this transaction")
        time.sleep(0.01)
