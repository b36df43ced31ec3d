"""The server of a wallet app, on this machine: it keeps what it is sent, and responds as the test has scripted."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from standardwebhooks import Webhook


@dataclass(frozen=True)
class Request:
    """What was posted, byte by byte."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def event_id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def content(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self.body)
        return content

    def verified(self, secret: str) -> dict[str, Any]:
        """Return the content as the standard's own library accepts it with that secret."""
        content: dict[str, Any] = Webhook(secret).verify(self.body, self.headers)
        return content


@dataclass
class Receiver:
    """
    Sends `answers` one after the other, then 204, and once 500 to a body with the text `refuses_once`.

    `before_response` may hold up a response. The requests are in the order in which they came.
    """

    url: str
    answers: list[int | str] = field(default_factory=list)
    before_response: Callable[[Request], object] = lambda _: None
    refuses_once: str = ""
    requests: list[Request] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, request: Request) -> int | str:
        """Keep the request, and return the response: a status, or where to redirect to."""
        with self.lock:
            self.requests.append(request)
            if self.refuses_once and self.refuses_once.encode() in request.body:
                self.refuses_once = ""
                return 500
            result = self.answers.pop(0) if self.answers else 204
        self.before_response(request)
        return result


@contextmanager
def running() -> Iterator[Receiver]:
    """Yield a receiver that listens on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            result = receiver.take(Request(self.path, headers, body))
            self.send_response(307 if isinstance(result, str) else result)
            if isinstance(result, str):
                self.send_header("Location", result)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver = Receiver(f"http://127.0.0.1:{server.server_port}/hooks")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
