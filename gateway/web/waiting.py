"""
Long polling without a thread for each request: the event loop in front of Django holds the responses back.

A view returns the current state, and may set a `Wait` on its response as `wait`. `Waiters` then holds the response back
until that state has changed, and sends the new state. One thread polls at intervals for all waiting requests of the
process. Servers other than `gateway.web.rsgi` send the response at once.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator, Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.db import InterfaceError, OperationalError, close_old_connections

from gateway.common.errors import ServiceUnavailable, TooManyRequests

logger = logging.getLogger(__name__)

# Takes the states that callers have seen; returns the new response (JSON) for each that has changed.
Changes = Callable[[Set[Any]], Mapping[Any, bytes]]
# The result of a waiting request: a new response, or None to send the old one.
_Change = asyncio.Future[bytes | None]


@dataclass(frozen=True, slots=True)
class Wait:
    """A user's request to wait at most `seconds` until `changes` returns a new response for the state `shown`."""

    user_id: int
    seconds: float
    shown: Hashable
    changes: Changes


@dataclass(frozen=True, slots=True)
class LongPollLimits:
    """The maximum number of waiting requests, per process and per user, and the poll interval in seconds."""

    waiting: int
    of_user: int
    interval: float = 0.5


class Waiters:
    """The waiting requests of one process. Not thread-safe: use it only in the thread of the event loop."""

    def __init__(self, limits: LongPollLimits) -> None:
        self._limits = limits
        self._count = 0
        self._of_user: Counter[int] = Counter()
        self._waiting: dict[Changes, dict[Hashable, set[_Change]]] = {}
        self._poll_task: asyncio.Task[None] | None = None
        self._is_ending = False
        # In a separate thread, so that a database that hangs blocks no other work.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="waiting")

    async def changed(self, wait: Wait, client_gone: Callable[[], Awaitable[None]]) -> bytes | None:
        """
        Return the new response; None at the timeout, when the client disconnects, or when the process shuts down.

        Raises:
            TooManyRequests: the user has too many waiting requests.
            ServiceUnavailable: the process has too many waiting requests.
        """
        with self._registered(wait) as change:
            gone: asyncio.Future[Any] = asyncio.ensure_future(client_gone())
            gone.add_done_callback(lambda _: _settle([change], None))
            timer = asyncio.get_running_loop().call_later(wait.seconds, _settle, [change], None)
            try:
                return await change
            finally:
                timer.cancel()
                gone.cancel()

    def end(self) -> None:
        """Send all responses and hold back no further ones, because the process shuts down."""
        self._is_ending = True
        for waiting in self._waiting.values():
            for changes in waiting.values():
                _settle(changes, None)

    @contextmanager
    def _registered(self, wait: Wait) -> Iterator[_Change]:
        if self._of_user[wait.user_id] >= self._limits.of_user:
            raise TooManyRequests(
                f"You already have {self._limits.of_user} waiting requests. Retry when one has ended.",
                retry_after=1,
            )
        if self._count >= self._limits.waiting:
            raise ServiceUnavailable("Too many requests are waiting. Repeat without waiting.", retry_after=5)
        change: _Change = asyncio.get_running_loop().create_future()
        if self._is_ending:
            change.set_result(None)
        self._count += 1
        self._of_user[wait.user_id] += 1
        waiting = self._waiting.setdefault(wait.changes, {})
        waiting.setdefault(wait.shown, set()).add(change)
        if self._poll_task is None or self._poll_task.done():
            self._poll_task = asyncio.create_task(self._poll())
        try:
            yield change
        finally:
            self._count -= 1
            self._of_user[wait.user_id] -= 1
            if not self._of_user[wait.user_id]:
                del self._of_user[wait.user_id]
            waiting[wait.shown].discard(change)
            if not waiting[wait.shown]:
                del waiting[wait.shown]

    async def _poll(self) -> None:
        """Poll for changes while requests wait."""
        loop = asyncio.get_running_loop()
        while self._count:
            await asyncio.sleep(self._limits.interval)
            shown = {changes: frozenset(waiting) for changes, waiting in self._waiting.items() if waiting}
            for changes, responses in (await loop.run_in_executor(self._thread, _answers, shown)).items():
                for one, response in responses.items():
                    _settle(self._waiting[changes].get(one, ()), response)


def _settle(changes: Iterable[_Change], response: bytes | None) -> None:
    for change in changes:
        if not change.done():
            change.set_result(response)


def _answers(shown: Mapping[Changes, Set[Hashable]]) -> dict[Changes, Mapping[Any, bytes]]:
    """Return the new responses of each source; none while the database is unavailable."""
    try:
        return {changes: changes(every) for changes, every in shown.items()}
    except (OperationalError, InterfaceError) as error:
        logger.warning("cannot respond to waiting requests: %s", type(error).__name__)
        return {}
    finally:
        close_old_connections()
