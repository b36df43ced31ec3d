"""A call that has to wait for this transaction."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from django.db import connections, transaction

from gateway.common.errors import DomainError
from tests.credits.threads import _wait_for_a_blocked_session

T = TypeVar("T")


@contextmanager
def waits_for_this_transaction(call: Callable[[], T]) -> Iterator["Future[T | DomainError]"]:
    """Run the block in a transaction, start `call` elsewhere without one, see it wait for a lock, and commit."""
    with ThreadPoolExecutor(1) as threads:
        with transaction.atomic():
            waiting: Future[T | DomainError] = Future()
            yield waiting
            started = threads.submit(_on_a_connection_of_its_own, call)
            _wait_for_a_blocked_session()
        waiting.set_result(started.result(timeout=60))


def _on_a_connection_of_its_own(call: Callable[[], T]) -> T | DomainError:
    try:
        return call()
    except DomainError as refusal:
        return refusal
    finally:
        connections.close_all()
