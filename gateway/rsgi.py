"""
The entry point of the web process: an event loop in front, Django's synchronous code in threads behind it.

The loop reads a request whole before a thread sees it, and answers the probes itself. So neither slow clients
nor requests that wait for the node or for PostgreSQL can keep it from answering. Refusals of the loop are
answered by Django's middleware, as any other refusal.

granian speaks HTTP and calls `application` by its own interface, RSGI, whose calls are the cheapest it has.
"""

import asyncio
import functools
import gc
import logging
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from io import BytesIO
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import psycopg
from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler
from django.core.wsgi import get_wsgi_application
from django.db import connection
from django.http import StreamingHttpResponse
from django.urls import get_resolver

from gateway.chain.client import node_checks
from gateway.common import durations, errors, sql_functions, tracing
from gateway.common.logging import log_uncaught
from gateway.common.waiting import Limits, Wait, Waiters

if TYPE_CHECKING:
    from granian._granian import RSGIHTTPProtocol as HTTPProtocol
    from granian.rsgi import Scope

logger = logging.getLogger(__name__)
Headers = list[tuple[str, str]]
_JSON: Headers = [("content-type", "application/json")]
_READY_SECONDS = 0.8
# How much of a body that is refused is read, so that the client can read the refusal.
_MAX_SKIPPED_BYTES = 32 * 1024 * 1024
# A client that takes no byte of a long answer for so long is gone.
_SEND_SECONDS = 30


@dataclass(eq=False)
class _Job:
    """A request for Django, and the loop that waits for its answer."""

    environ: dict[str, Any]
    protocol: "HTTPProtocol"
    loop: asyncio.AbstractEventLoop
    answered: asyncio.Future[None] = field(init=False)
    # Set where the answer may be held back.
    held: "_HeldAnswer | None" = None

    def __post_init__(self) -> None:
        self.answered = self.loop.create_future()

    def finish(self, respond: Callable[[], None] | None = None) -> None:
        """Have the loop respond and let the request go; for any thread."""
        self.loop.call_soon_threadsafe(self._finish, respond)

    def _finish(self, respond: Callable[[], None] | None) -> None:
        # The server cancels a request whose client is gone.
        if not self.answered.done():
            if respond is not None:
                respond()
            self.answered.set_result(None)


@dataclass(frozen=True)
class _HeldAnswer:
    """An answer that is sent when it has changed, or as it is."""

    wait: Wait
    status: int
    headers: Headers
    body: bytes


class _Threads:
    """
    Up to so many threads that answer jobs, and jobs that wait for one of them.

    The thread that was busy last is used next, so that as few as possible keep connections of their own.
    """

    def __init__(self, answer: Callable[[_Job], None], *, size: int, max_waiting: int) -> None:
        self._answer, self._size, self._max_waiting = answer, size, max_waiting
        self._lock = threading.Lock()
        self._idle: list[SimpleQueue[_Job]] = []
        self._waiting: deque[_Job] = deque()
        self._started = 0

    def submit(self, job: _Job) -> bool:
        """Hand the job to a thread or let it wait; return False where too many wait already."""
        with self._lock:
            if self._idle:
                self._idle.pop().put(job)
            elif self._started < self._size:
                self._started += 1
                threading.Thread(target=self._work, args=(job,), name="request", daemon=True).start()
            elif len(self._waiting) < self._max_waiting:
                self._waiting.append(job)
            else:
                return False
        return True

    def _work(self, job: _Job | None) -> None:
        inbox: SimpleQueue[_Job] = SimpleQueue()
        while True:
            while job is not None:
                self._answer(job)
                with self._lock:
                    job = self._waiting.popleft() if self._waiting else None
                    if job is None:
                        self._idle.append(inbox)
            job = inbox.get()


class Application:
    """What granian calls: once at the start of each web process, and then for each request."""

    def __init__(self) -> None:
        self._handler: WSGIHandler = get_wsgi_application()
        self._threads = _Threads(
            self._answer, size=settings.WEB_THREADS, max_waiting=settings.WEB_MAX_WAITING_REQUESTS
        )
        self._database_check: asyncio.Future[None] | None = None
        self._waiters = Waiters(Limits(settings.WEB_MAX_LONG_POLLS, settings.WEB_MAX_LONG_POLLS_PER_USER))

    def __rsgi_init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Import what the first request would import, and keep the garbage collector from looking at it again."""
        _ = get_resolver().url_patterns
        sql_functions.log_differing()
        node_checks().start()
        durations.reporter().start()
        tracing.start()
        gc.collect()
        gc.freeze()
        # Once the loop runs, the server has set its own handlers.
        loop.call_soon(self._watch_signals, loop)

    def _watch_signals(self, loop: asyncio.AbstractEventLoop) -> None:
        """
        Let waiting requests go as soon as the process is to end: the server waits for all requests first.

        The loop hears of signals by a file descriptor and calls the server's handlers; this one is called besides.
        """
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(self._waiters.end))

    async def __rsgi__(self, scope: "Scope", protocol: "HTTPProtocol") -> None:
        """Answer one request. What goes wrong is logged here: the server would print it."""
        try:
            await self._route(scope, protocol)
        except Exception:
            logger.exception("a request was not answered")
            protocol.response_empty(500, [])

    async def _route(self, scope: "Scope", protocol: "HTTPProtocol") -> None:
        if scope.path == "/healthz":
            protocol.response_bytes(200, _JSON, b'{"status": "ok"}')
        elif scope.path == "/readyz":
            await self._ready(protocol)
        else:
            await self._serve(scope, protocol)

    async def _serve(self, scope: "Scope", protocol: "HTTPProtocol") -> None:
        environ = environ_of(scope)
        length = int(environ.get("CONTENT_LENGTH", "0"))
        is_read = 0 < length <= settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        job = await self._read(environ, protocol, length) if is_read else self._start(environ, protocol)
        if job is None:
            return
        await job.answered
        if job.held is not None:
            await self._hold_back(job, job.held)
        # A body that is too long, or of unknown length, is refused by that.
        if not is_read and (length or "HTTP_TRANSFER_ENCODING" in environ):
            await _skip_body(protocol)

    async def _read(self, environ: dict[str, Any], protocol: "HTTPProtocol", length: int) -> _Job | None:
        """
        Read the body and start the job; None where the client leaves before it has sent all.

        Where it takes too long, the refusal is sent first; then the client may send on for as long again,
        so that it comes to read the refusal.
        """
        seconds = settings.WEB_BODY_SECONDS
        late: list[_Job] = []

        def refuse() -> None:
            environ[errors.REFUSAL] = errors.RequestTimeout(
                f"The body did not arrive within {seconds} seconds."
            )
            late.append(self._start(environ, protocol))

        timer = asyncio.get_running_loop().call_later(seconds, refuse)
        try:
            async with asyncio.timeout(2 * seconds):
                body = await _body(protocol, length)
        except TimeoutError:
            return late[0]
        finally:
            timer.cancel()
        if late:
            return late[0]
        if len(body) < length:
            protocol.response_empty(400, [])
            return None
        environ["wsgi.input"] = BytesIO(body)
        return self._start(environ, protocol)

    async def _hold_back(self, job: _Job, held: _HeldAnswer) -> None:
        """Send the answer when it has changed, or its time is over."""
        try:
            body = await self._waiters.changed(held.wait, job.protocol.client_disconnect)
        except errors.DomainError as refusal:
            await self._start({**job.environ, errors.REFUSAL: refusal}, job.protocol).answered
            return
        body = held.body if body is None else body
        headers = [header for header in held.headers if header[0].lower() != "content-length"]
        job.protocol.response_bytes(held.status, [*headers, ("Content-Length", str(len(body)))], body)

    def _start(self, environ: dict[str, Any], protocol: "HTTPProtocol") -> _Job:
        """Have a thread answer the request, or refuse it where too many wait."""
        job = _Job(environ, protocol, asyncio.get_running_loop())
        if not self._threads.submit(job):
            environ[errors.REFUSAL] = errors.ServiceUnavailable(
                "Too many requests are waiting.", retry_after=1
            )
            # No thread is free, and a refusal is quick and reads no record.
            self._answer(job)
        return job

    def _answer(self, job: _Job) -> None:
        """Have Django answer the request; in a thread."""
        try:
            status, headers, response = self._call(job.environ)
            try:
                if isinstance(response, StreamingHttpResponse):
                    self._stream(job, status, headers, response)
                    job.finish()
                else:
                    body, wait = b"".join(response), getattr(response, "wait", None)
                    if wait is not None:
                        job.held = _HeldAnswer(wait, status, headers, body)
                        job.finish()
                    else:
                        job.finish(functools.partial(job.protocol.response_bytes, status, headers, body))
            finally:
                response.close()
        except Exception:
            # Django answers exceptions of its own code itself; here, the answer could not be sent.
            logger.exception("a request was not answered")
            job.finish()

    def _call(self, environ: dict[str, Any]) -> tuple[int, Headers, Any]:
        started: list[tuple[int, Headers]] = []

        def start_response(status: str, headers: Headers, *_: Any) -> Callable[[bytes], object]:
            started.append((int(status[:3]), headers))
            return BytesIO().write  # which WSGI asks for and Django does not use

        response = self._handler(environ, start_response)
        [(status, headers)] = started
        return status, headers, response

    def _stream(self, job: _Job, status: int, headers: Headers, chunks: Iterable[bytes]) -> None:
        """Send an answer piece by piece, as fast as the client takes it."""

        async def begin() -> Any:
            return job.protocol.response_stream(status, headers)

        transport = asyncio.run_coroutine_threadsafe(begin(), job.loop).result(_SEND_SECONDS)

        async def send(chunk: bytes) -> None:
            await transport.send_bytes(chunk)

        for chunk in chunks:
            asyncio.run_coroutine_threadsafe(send(chunk), job.loop).result(_SEND_SECONDS)

    async def _ready(self, protocol: "HTTPProtocol") -> None:
        """Answer 200 when PostgreSQL answers, else 503. Endpoints that need Redis or the node answer for themselves."""
        if self._database_check is None or self._database_check.done():
            self._database_check = asyncio.ensure_future(asyncio.to_thread(_ask_database))
        try:
            async with asyncio.timeout(_READY_SECONDS):
                # While a question has no answer yet, no other one is asked.
                await asyncio.shield(self._database_check)
        except (psycopg.Error, TimeoutError):
            body = b'{"status": "unavailable", "missing": "database"}'
            protocol.response_bytes(503, _JSON, body)
        else:
            protocol.response_bytes(200, _JSON, b'{"status": "ok"}')


async def _body(protocol: "HTTPProtocol", length: int) -> bytes:
    """Read the body; less than its length where the client has left."""
    chunks, missing = [], length
    async for chunk in protocol:
        chunks.append(chunk)
        missing -= len(chunk)
        if missing <= 0:
            break
    return b"".join(chunks)


async def _skip_body(protocol: "HTTPProtocol") -> None:
    """
    Read the rest of a body that was refused, after the answer.

    A connection that is closed while the client still sends is reset, and many clients then drop the answer.
    """
    left = _MAX_SKIPPED_BYTES
    try:
        async with asyncio.timeout(settings.WEB_BODY_SECONDS):
            async for chunk in protocol:
                left -= len(chunk)
                if left < 0:
                    return
    except TimeoutError:
        return


def _ask_database() -> None:
    """Ask by a connection of its own: those of the pool may all be in use."""
    parameters = {**connection.get_connection_params(), "connect_timeout": 1}
    with psycopg.connect(**parameters) as own:
        own.execute("SELECT 1")


def environ_of(scope: "Scope") -> dict[str, Any]:
    """
    Return the request as Django's handler takes it, without its body.

    A header with an underscore is left out, because it would pass for the one with a hyphen: a proxy
    that sets X-Forwarded-For lets X_Forwarded_For through.
    """
    client, _, _ = scope.client.rpartition(":")
    server, _, port = scope.server.rpartition(":")
    environ: dict[str, Any] = {
        "REQUEST_METHOD": scope.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": scope.path.encode().decode("latin-1"),
        "QUERY_STRING": scope.query_string.encode().decode("latin-1"),
        "REMOTE_ADDR": client.strip("[]"),
        "SERVER_NAME": server,
        "SERVER_PORT": port,
        "SERVER_PROTOCOL": f"HTTP/{scope.http_version}",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope.scheme,
        "wsgi.input": BytesIO(),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
    for name, value in scope.headers.items():
        key = _key_of(name)
        if key is not None and key not in environ:
            environ[key] = value
        elif key is not None and key != "CONTENT_LENGTH":
            environ[key] += (";" if key == "HTTP_COOKIE" else ",") + value
    return environ


@functools.lru_cache(maxsize=256)
def _key_of(name: str) -> str | None:
    if "_" in name:
        return None
    key = name.upper().replace("-", "_")
    return key if key in {"CONTENT_TYPE", "CONTENT_LENGTH"} else f"HTTP_{key}"


os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gateway.settings")
log_uncaught()
try:
    application = Application()
except Exception as error:
    # The server would print the traceback and go on to the next process.
    logger.critical("the service cannot start", exc_info=True)
    raise SystemExit(1) from error
