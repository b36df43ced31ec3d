"""
Requests that wait for a change, without a thread: the event loop in front of Django keeps them.

A view answers what there is now, and may leave a `Wait` on its response as `wait`. Then `Waiters` holds the answer back
until what it shows has changed, and sends the new one instead. For all who wait in a process it asks at intervals, in
one thread of its own. Any other server than ours sends the answer at once.
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

# What was shown, and the answers (JSON) that show what of it has changed.
Changes = Callable[[Set[Any]], Mapping[Any, bytes]]
# What becomes of a request that waits: another answer, or None where it is to get the one that there was.
_Change = asyncio.Future[bytes | None]


@dataclass(frozen=True, slots=True)
class Wait:
    """Who waits, at most for how long, and for a change of what: `changes` is asked about `shown`."""

    user_id: int
    seconds: float
    shown: Hashable
    changes: Changes


@dataclass(frozen=True, slots=True)
class Limits:
    """How many may wait in a process, in all and of one user, and the seconds between two looks."""

    waiting: int
    of_user: int
    interval: float = 0.5


class Waiters:
    """The requests that wait in one process. For the thread of its event loop."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._count = 0
        self._of_user: Counter[int] = Counter()
        self._waiting: dict[Changes, dict[Hashable, set[_Change]]] = {}
        self._look_task: asyncio.Task[None] | None = None
        self._is_ending = False
        # A database that hangs must not take a thread from anybody else.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="waiting")

    async def changed(self, wait: Wait, client_gone: Callable[[], Awaitable[None]]) -> bytes | None:
        """
        Return the answer once it has changed; None where the time is up, the client gone, or the process ends.

        Raises:
            TooManyRequests, ServiceUnavailable: too many of the user's requests wait already, or of all users'.
        """
        with self._place(wait) as change:
            gone: asyncio.Future[Any] = asyncio.ensure_future(client_gone())
            gone.add_done_callback(lambda _: _settle([change], None))
            timer = asyncio.get_running_loop().call_later(wait.seconds, _settle, [change], None)
            try:
                return await change
            finally:
                timer.cancel()
                gone.cancel()

    def end(self) -> None:
        """Let everybody go with what there is, from now on: the process ends."""
        self._is_ending = True
        for waiting in self._waiting.values():
            for changes in waiting.values():
                _settle(changes, None)

    @contextmanager
    def _place(self, wait: Wait) -> Iterator[_Change]:
        if self._of_user[wait.user_id] >= self._limits.of_user:
            raise TooManyRequests(
                f"{self._limits.of_user} requests of yours wait already. Repeat when one is answered.",
                retry_after=1,
            )
        if self._count >= self._limits.waiting:
            raise ServiceUnavailable("Too many requests wait already. Ask without waiting.", retry_after=5)
        change: _Change = asyncio.get_running_loop().create_future()
        if self._is_ending:
            change.set_result(None)
        self._count += 1
        self._of_user[wait.user_id] += 1
        waiting = self._waiting.setdefault(wait.changes, {})
        waiting.setdefault(wait.shown, set()).add(change)
        if self._look_task is None or self._look_task.done():
            self._look_task = asyncio.create_task(self._look())
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

    async def _look(self) -> None:
        """Ask for changes while anybody waits."""
        loop = asyncio.get_running_loop()
        while self._count:
            await asyncio.sleep(self._limits.interval)
            shown = {changes: frozenset(waiting) for changes, waiting in self._waiting.items() if waiting}
            for changes, answers in (await loop.run_in_executor(self._thread, _ask, shown)).items():
                for one, answer in answers.items():
                    _settle(self._waiting[changes].get(one, ()), answer)


def _settle(changes: Iterable[_Change], answer: bytes | None) -> None:
    for change in changes:
        if not change.done():
            change.set_result(answer)


def _ask(shown: Mapping[Changes, Set[Hashable]]) -> dict[Changes, Mapping[Any, bytes]]:
    """Ask each source about all that is shown of it. While the database is away, nothing changes."""
    try:
        return {changes: changes(every) for changes, every in shown.items()}
    except (OperationalError, InterfaceError) as error:
        logger.warning("waiting requests cannot be answered: %s", type(error).__name__)
        return {}
    finally:
        close_old_connections()
