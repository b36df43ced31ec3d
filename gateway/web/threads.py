"""The threads in which Django responds to requests, between the event loop and the handler."""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from gateway.web.waiting import Wait

if TYPE_CHECKING:
    from granian._granian import RSGIHTTPProtocol as HTTPProtocol

Headers = list[tuple[str, str]]


@dataclass(eq=False)
class Job:
    """A request for Django, and the event loop that waits for its response."""

    environ: dict[str, Any]
    protocol: "HTTPProtocol"
    loop: asyncio.AbstractEventLoop
    served: asyncio.Future[None] = field(init=False)
    # Set if the response is held back until it changes.
    held: "HeldResponse | None" = None

    def __post_init__(self) -> None:
        self.served = self.loop.create_future()

    def finish(self, respond: Callable[[], None] | None = None) -> None:
        """Tell the loop to send the response and complete the request. Thread-safe."""
        self.loop.call_soon_threadsafe(self._finish, respond)

    def _finish(self, respond: Callable[[], None] | None) -> None:
        # The server cancels the future when the client disconnects.
        if not self.served.done():
            if respond is not None:
                respond()
            self.served.set_result(None)


@dataclass(frozen=True)
class HeldResponse:
    """A response that is sent once it has changed, or unchanged at the end of its wait."""

    wait: Wait
    status: int
    headers: Headers
    body: bytes


class RequestThreads:
    """
    A bounded pool of threads with a bounded queue.

    The thread that was busy last takes the next job, so that few threads keep a database connection.
    """

    def __init__(self, handle: Callable[[Job], None], *, size: int, max_waiting: int) -> None:
        self._handle, self._size, self._max_waiting = handle, size, max_waiting
        self._lock = threading.Lock()
        self._idle: list[SimpleQueue[Job]] = []
        self._waiting: deque[Job] = deque()
        self._started = 0
        # When a thread last took or finished a request.
        self._moved_at = time.monotonic()

    def stalled_seconds(self) -> float:
        """Return for how long every thread has been busy with the same request; 0 while one is free."""
        with self._lock:
            is_busy = self._started == self._size and not self._idle
            return time.monotonic() - self._moved_at if is_busy else 0.0

    def submit(self, job: Job) -> bool:
        """Hand the job to a thread or queue it; return False if the queue is full."""
        with self._lock:
            if self._idle:
                self._moved_at = time.monotonic()
                self._idle.pop().put(job)
            elif self._started < self._size:
                self._moved_at = time.monotonic()
                self._started += 1
                threading.Thread(target=self._work, args=(job,), name="request", daemon=True).start()
            elif len(self._waiting) < self._max_waiting:
                self._waiting.append(job)
            else:
                return False
        return True

    def _work(self, job: Job | None) -> None:
        inbox: SimpleQueue[Job] = SimpleQueue()
        while True:
            while job is not None:
                self._handle(job)
                with self._lock:
                    self._moved_at = time.monotonic()
                    job = self._waiting.popleft() if self._waiting else None
                    if job is None:
                        self._idle.append(inbox)
            job = inbox.get()
