"""The Python example repeats a request after 503, with a new nonce or timestamp where one is good for one attempt."""

import importlib.util
import json
import secrets
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from eth_account import Account

from tests.docs.pages import DOCS


class BusyService:
    """Answers each path 503 once and then as the service does; a nonce is good for one attempt."""

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.used: set[str] = set()
        self.wait_seconds = 0

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Return the status and the body for a request."""
        first = path not in {seen for seen, _ in self.requests}
        self.requests.append((path, body))
        if path == "/api/auth/verify" and body["nonce"] in self.used:
            return 401, {"code": "nonce-used", "detail": "A nonce is good for one attempt."}
        self.used.add(body.get("nonce", ""))
        if first:
            return 503, {"code": "chain-unavailable", "detail": "No node answers."}
        nonce = secrets.token_hex(8)
        return 200, {"nonce": nonce, "message": f"Sign {nonce}", "access": "token", "quota": 7}

    def bodies(self, path: str) -> list[dict[str, Any]]:
        """Return the bodies that a path was sent."""
        return [body for requested, body in self.requests if requested == path]


@pytest.fixture
def busy() -> Iterator[BusyService]:
    """The service at an address of its own."""
    service = BusyService()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, answer = service.answer(self.path, body)
            self.send_response(status)
            self.send_header("Retry-After", str(service.wait_seconds))
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, *_: Any) -> None:
            """Log nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    service.url = f"http://127.0.0.1:{server.server_port}"
    yield service
    server.shutdown()
    thread.join()
    server.server_close()


def _client(busy: BusyService) -> Any:
    spec = importlib.util.spec_from_file_location("retrying_example", DOCS / "examples/python/relay.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    owner = Account.create()
    profile = {"profile_address": owner.address, "controller_private_key": owner.key.hex()}
    return module.Client({"base_url": busy.url, "rpc_url": "", "profiles": [profile]})


def test_the_python_example_signs_a_new_nonce_after_503(busy: BusyService) -> None:
    client = _client(busy)

    client.sign_in()

    first, second = busy.bodies("/api/auth/verify")
    assert first["nonce"] != second["nonce"]
    assert client.headers == {"Authorization": "Bearer token"}


def test_the_python_example_gives_up_after_a_few_attempts(
    busy: BusyService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(busy, "answer", lambda path, body: (503, {"code": "busy", "detail": "Not now."}))

    with pytest.raises(RuntimeError, match="busy: Not now"):
        _client(busy).quota()


def test_the_python_example_signs_a_new_time_for_the_quota_after_503(busy: BusyService) -> None:
    busy.wait_seconds = 1

    assert _client(busy).quota() == 7

    first, second = busy.bodies("/api/relay/quota")
    assert first["timestamp"] < second["timestamp"]
    assert first["signature"] != second["signature"]
