"""A service that responds to the Python package as a test prescribes."""

import json
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from credit_relay_client import Call

PROFILE = "0xBB645D97B0c7D101ca0d73131e521fe89B463BFD"
KEY_MANAGER = "0xABaBaBaBABabABabAbAbABAbABabababaBaBABaB"
EXECUTE, PREPARE, DASHBOARD = "/api/relay/execute", "/api/relay/prepare", "/api/user/dashboardInfo"
BUY, TOP_UP = "/api/payments/purchaseCredits", "/api/payments/topUp"
CALL = Call(KEY_MANAGER, value=1)
Reply = tuple[int, dict[str, Any]]


def problem(status: int, code: str, **members: Any) -> Reply:
    """Return a problem document and its status."""
    fixed = {"type": "", "title": "", "detail": "", "requestId": None}
    return status, {**fixed, "status": status, "code": code, **members}


QUOTE = {"id": "0d9f7a54-5d1e-4f0c-9a35-1c2f6c6f7f0e", "cost": 8, "expiresAt": 1}
BUSY = problem(503, "busy")


class FakeService:
    """Responds to the next requests of a path as a test prescribes, and later ones as a healthy service."""

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[tuple[str, dict[str, Any]]] = []
        # Path, method and idempotency key.
        self.keys: list[tuple[str, str, str | None]] = []
        self.headers: list[dict[str, str]] = []
        self.replies: dict[str, list[Reply]] = defaultdict(list)
        self.retry_after = "0.01"

    def answer(self, path: str, body: dict[str, Any]) -> Reply:
        """Return the status and the response to a request."""
        self.requests.append((path, body))
        return self.replies[path].pop(0) if self.replies[path] else (200, self.usual(path))

    def bodies(self, path: str) -> list[dict[str, Any]]:
        """Return the bodies that a path was sent."""
        return [body for requested, body in self.requests if requested == path]

    def usual(self, path: str) -> dict[str, Any]:
        number = str(len(self.requests))
        domain = self.url.removeprefix("http://")
        message = f"{domain} wants you to sign in with your Ethereum account:\n{PROFILE}\n{number}"
        tokens = {"access": f"access-{number}", "refresh": f"refresh-{number}", "expiresIn": 600}
        nonce = {"nonce": 4 + len(self.bodies(EXECUTE))}
        call = {
            "keyManagerAddress": KEY_MANAGER,
            "chainId": 42,
            "transaction": nonce,
            "refusals": [],
            "quote": QUOTE,
        }
        results: dict[str, dict[str, Any]] = {
            "/api/auth/nonce": {"nonce": number, "message": message},
            "/api/auth/verify": tokens,
            "/api/auth/refresh": tokens,
            "/api/relay/quota": {"quota": 7},
            PREPARE: call,
            EXECUTE: {"transactionHash": "0xabc"},
            "/api/relay/transactions/0xabc?wait=20": {"status": "Success"},
            "/": {"result": "0x" + KEY_MANAGER[2:].rjust(64, "0")},
        }
        return results.get(path, {})


@contextmanager
def served() -> Iterator[FakeService]:
    """The service at an address of its own."""
    fake = FakeService()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", "0"))) or "{}")
            fake.keys.append((self.path, self.command, self.headers["Idempotency-Key"]))
            fake.headers.append({"path": self.path, **dict(self.headers)})
            status, result = fake.answer(self.path, body)
            content = json.dumps(result).encode()
            self.send_response(status)
            if status in {422, 429, 503}:
                self.send_header("Retry-After", fake.retry_after)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def do_GET(self) -> None:
            self.do_POST()

        def do_PUT(self) -> None:
            self.do_POST()

        def log_message(self, *_: Any) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    fake.url = f"http://127.0.0.1:{server.server_port}"
    yield fake
    server.shutdown()
    thread.join()
    server.server_close()
