"""
A sponsor's server on this machine, which responds as a test has scripted: well, late, with too much, or with lies.
"""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from standardwebhooks import Webhook

Answers = Callable[[BaseHTTPRequestHandler], None]


@dataclass
class VerifierServer:
    """Where it listens, what it was asked, and how it responds."""

    url: str
    answer: Answers
    questions: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    # Set at the end, so that a response that stalls ends with the test.
    ended: threading.Event = field(default_factory=threading.Event)

    def verified(self, secret: str) -> dict[str, Any]:
        """Return the newest question, as the standard's own library accepts it."""
        headers, body = self.questions[-1]
        content: dict[str, Any] = Webhook(secret).verify(body, headers)
        return content

    def stall(self, _: BaseHTTPRequestHandler) -> None:
        """Send nothing until the end."""
        self.ended.wait(60)


def says(body: Any, status: int = 200, **headers: str) -> Answers:
    """Return a callable that sends this body, which is JSON unless it is bytes."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(content)

    return answer


@contextmanager
def running() -> Iterator[VerifierServer]:
    """Yield a server on a free port that pays for everything at first."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            verifier.questions.append(({name.lower(): value for name, value in self.headers.items()}, body))
            verifier.answer(self)

        def log_message(self, format: str, *args: Any) -> None:
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    verifier = VerifierServer(f"http://127.0.0.1:{server.server_port}/verify", says({"pay": True}))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield verifier
    finally:
        verifier.ended.set()
        server.shutdown()
        server.server_close()
        thread.join()
