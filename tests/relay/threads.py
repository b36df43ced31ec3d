"""Calls at the same moment, each on a database connection of its own."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import connections

from gateway.common.errors import DomainError

T = TypeVar("T")


def at_once(calls: Sequence[Callable[[], T]]) -> list[T | DomainError]:
    """Start all calls together; return each one's result or refusal in their order. Other errors are raised."""
    start = threading.Barrier(len(calls))

    def run(call: Callable[[], T]) -> T | DomainError:
        start.wait()
        try:
            return call()
        except DomainError as refusal:
            return refusal
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(calls)) as threads:
        return [future.result() for future in [threads.submit(run, call) for call in calls]]
