"""The same call many times at the same moment, each on a database connection of its own."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import connections

from gateway.common.errors import DomainError

T = TypeVar("T")


def at_once(call: Callable[[], T], times: int) -> list[T | DomainError]:
    """Start all calls together and return each one's result or refusal; other errors are raised here."""
    start = threading.Barrier(times)

    def run() -> T | DomainError:
        start.wait()
        try:
            return call()
        except DomainError as refusal:
            return refusal
        finally:
            connections.close_all()

    with ThreadPoolExecutor(times) as threads:
        return [future.result() for future in [threads.submit(run) for _ in range(times)]]
