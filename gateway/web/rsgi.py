"""
The entry point of the web process: an event loop in front, Django's synchronous code in threads behind it.

The loop reads each request completely before it passes it to a thread. Slow clients therefore occupy no thread, and
requests that wait for a node or PostgreSQL do not block the loop. The loop responds to the probes itself; they fail
once the threads, which every caller needs, have stalled. Django's middleware renders the loop's errors like all others.

granian calls `application` through RSGI, its fastest interface. `gateway.wsgi` is the entry point for other servers.
"""

import asyncio
import functools
import gc
import logging
import os
import resource
import signal
import time
from collections.abc import Callable, Iterable
from io import BytesIO
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler
from django.core.wsgi import get_wsgi_application
from django.http import StreamingHttpResponse

from gateway.common import errors
from gateway.common.guards import NoShare, Shares
from gateway.common.logging import log_uncaught
from gateway.web import process
from gateway.web.requests import environ_of, read_body, skip_body
from gateway.web.threads import Headers, HeldResponse, Job, RequestThreads
from gateway.web.waiting import LongPollLimits, Waiters

if TYPE_CHECKING:
    from granian._granian import RSGIHTTPProtocol as HTTPProtocol
    from granian.rsgi import Scope

logger = logging.getLogger(__name__)
_JSON: Headers = [("content-type", "application/json")]
_READY_SECONDS = 1.5
# A process whose threads have all been busy for this long without finishing a request accepts no calls.
_BUSY_SECONDS = 10.0
# Timeouts for sending one chunk of a streamed response, and the whole.
_SEND_SECONDS, _STREAM_SECONDS = 30, 900


class Application:
    """The RSGI application: granian calls it once at the start of each web process, and for each request."""

    def __init__(self) -> None:
        self._handler: WSGIHandler = get_wsgi_application()
        self._threads = RequestThreads(
            self._handle, size=settings.WEB_THREADS, max_waiting=settings.WEB_MAX_WAITING_REQUESTS
        )
        # A streamed response takes a thread until its client has read it.
        self._streams = Shares(total=settings.WEB_THREADS // 4, each=1)
        self._readiness_check: asyncio.Future[process.Faults] | None = None
        self._faults: process.Faults = {}
        self._requests = 0
        self._waiters = Waiters(
            LongPollLimits(settings.WEB_MAX_LONG_POLLS, settings.WEB_MAX_LONG_POLLS_PER_USER)
        )

    def __rsgi_init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the process, and exempt all loaded objects from garbage collection."""
        _raise_file_limit()
        process.start()
        gc.collect()
        gc.freeze()
        # Scheduled, because the server sets its own handlers before the loop runs.
        loop.call_soon(self._watch_signals, loop)

    def _watch_signals(self, loop: asyncio.AbstractEventLoop) -> None:
        """
        Respond to waiting requests at the signal to shut down, because the server waits for all requests.

        A file descriptor tells the loop about signals, so the server's own handlers stay in place.
        """
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(self._waiters.end))

    async def __rsgi__(self, scope: "Scope", protocol: "HTTPProtocol") -> None:
        """Respond to one request, and log its errors, which the server would print."""
        try:
            await self._route(scope, protocol)
        except Exception:
            logger.exception("a request failed without a response")
            protocol.response_empty(500, [])

    async def _route(self, scope: "Scope", protocol: "HTTPProtocol") -> None:
        if scope.path == "/healthz":
            has_stalled = self._threads.stalled_seconds() > settings.WEB_STALLED_SECONDS
            status, body = process.liveness(has_stalled=has_stalled)
            protocol.response_bytes(status, _JSON, body)
        elif scope.path == "/readyz":
            await self._ready(protocol)
        elif self._requests >= settings.WEB_MAX_REQUESTS:
            job = Job(environ_of(scope), protocol, asyncio.get_running_loop())
            self._refuse(job, "in progress")
            await job.served
        else:
            self._requests += 1
            try:
                await self._serve(scope, protocol)
            finally:
                self._requests -= 1

    async def _serve(self, scope: "Scope", protocol: "HTTPProtocol") -> None:
        environ = environ_of(scope)
        length = int(environ.get("CONTENT_LENGTH", "0"))
        is_read = 0 < length <= settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        job = await self._read(environ, protocol, length) if is_read else self._start(environ, protocol)
        if job is None:
            return
        await job.served
        if job.held is not None:
            await self._hold_back(job, job.held)
        # Django has refused a body that is too long or has no Content-Length, so the loop must still skip it.
        if not is_read and (length or "HTTP_TRANSFER_ENCODING" in environ):
            await skip_body(protocol)

    async def _read(self, environ: dict[str, Any], protocol: "HTTPProtocol", length: int) -> Job | None:
        """
        Read the body and start the job; return None if the client disconnects before the end of the body.

        At the timeout, the error is sent. The loop then continues to read for the same time, so that the client can
        receive the error before the connection closes.
        """
        seconds = settings.WEB_BODY_SECONDS
        late: list[Job] = []

        def refuse() -> None:
            environ[errors.REFUSAL] = errors.RequestTimeout(
                f"The body did not arrive within {seconds} seconds."
            )
            late.append(self._start(environ, protocol))

        timer = asyncio.get_running_loop().call_later(seconds, refuse)
        try:
            async with asyncio.timeout(2 * seconds):
                body = await read_body(protocol, length)
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

    async def _hold_back(self, job: Job, held: HeldResponse) -> None:
        """Send the response once it has changed, or at its timeout."""
        try:
            body = await self._waiters.changed(held.wait, job.protocol.client_disconnect)
        except errors.DomainError as refusal:
            await self._start({**job.environ, errors.REFUSAL: refusal}, job.protocol).served
            return
        body = held.body if body is None else body
        headers = [header for header in held.headers if header[0].lower() != "content-length"]
        job.protocol.response_bytes(held.status, [*headers, ("Content-Length", str(len(body)))], body)

    def _start(self, environ: dict[str, Any], protocol: "HTTPProtocol") -> Job:
        """Pass the request to a thread, or refuse it if the queue is full."""
        job = Job(environ, protocol, asyncio.get_running_loop())
        if not self._threads.submit(job):
            self._refuse(job, "waiting")
        return job

    def _refuse(self, job: Job, state: str) -> None:
        """Return 503: no thread is free for the request, and rendering the error needs no query."""
        job.environ[errors.REFUSAL] = errors.ServiceUnavailable(
            f"Too many requests are {state}.", retry_after=1
        )
        self._handle(job)

    def _handle(self, job: Job) -> None:
        """Let Django handle the request. Runs in a thread."""
        try:
            status, headers, response = self._call(job.environ)
            try:
                if isinstance(response, StreamingHttpResponse):
                    with self._streams.place(getattr(response, "reader", response)):
                        self._stream(job, status, headers, response)
                    job.finish()
                else:
                    body, wait = b"".join(response), getattr(response, "wait", None)
                    if wait is not None:
                        job.held = HeldResponse(wait, status, headers, body)
                        job.finish()
                    else:
                        job.finish(functools.partial(job.protocol.response_bytes, status, headers, body))
            finally:
                response.close()
        except NoShare:
            self._refuse(job, "streamed")
        except Exception:
            # Django handles exceptions of views itself. This one came from sending the response.
            logger.exception("a request failed without a response")
            job.finish()

    def _call(self, environ: dict[str, Any]) -> tuple[int, Headers, Any]:
        started: list[tuple[int, Headers]] = []

        def start_response(status: str, headers: Headers, *_: Any) -> Callable[[bytes], object]:
            started.append((int(status[:3]), headers))
            return BytesIO().write  # WSGI requires it; Django does not use it

        response = self._handler(environ, start_response)
        [(status, headers)] = started
        return status, headers, response

    def _stream(self, job: Job, status: int, headers: Headers, chunks: Iterable[bytes]) -> None:
        """Send a response chunk by chunk, as fast as the client reads it, but not for ever."""
        ends_at = time.monotonic() + _STREAM_SECONDS

        async def begin() -> Any:
            return job.protocol.response_stream(status, headers)

        transport = asyncio.run_coroutine_threadsafe(begin(), job.loop).result(_SEND_SECONDS)

        async def send(chunk: bytes) -> None:
            await transport.send_bytes(chunk)

        for chunk in chunks:
            if time.monotonic() > ends_at:
                raise TimeoutError(f"the client has not read the response within {_STREAM_SECONDS} seconds")
            asyncio.run_coroutine_threadsafe(send(chunk), job.loop).result(_SEND_SECONDS)

    async def _ready(self, protocol: "HTTPProtocol") -> None:
        """Return 200 if calls can be accepted and are settled, else 503 with the missing parts."""
        if self._readiness_check is None or self._readiness_check.done():
            self._readiness_check = asyncio.ensure_future(asyncio.to_thread(process.faults))
        try:
            async with asyncio.timeout(_READY_SECONDS):
                # At most one check runs; further probes wait for its result.
                self._faults = await asyncio.shield(self._readiness_check)
        except TimeoutError:
            self._faults = process.late_faults(self._faults)
        busy = {process.THREADS: "all are busy, and have finished no request for ten seconds"}
        has_stalled = self._threads.stalled_seconds() > _BUSY_SECONDS
        status, body = process.readiness(self._faults | (busy if has_stalled else {}))
        protocol.response_bytes(status, _JSON, body)


def _raise_file_limit() -> None:
    """Raise the limit of open files to the system's maximum; many systems start processes with a limit of 1,024."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gateway.settings")
log_uncaught()
try:
    application = Application()
except Exception as error:
    # Exit with a log line; otherwise the server would print the traceback and start another process.
    logger.critical("the service cannot start", exc_info=True)
    raise SystemExit(1) from error
