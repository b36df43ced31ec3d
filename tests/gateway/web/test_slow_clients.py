"""Slow clients and a node that hangs, all at once, delay no other request."""

import json
import os
import socket
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
import urllib3
from django.db import connection

from devstack.ports import free_port
from devstack.processes import Web
from devstack.services.stack import Services
from gateway.chain.signatures import personal_sign_digest
from tests.fakes.profiles import Controller, random_address

pytestmark = pytest.mark.django_db(transaction=True)

_TRICKLING, _SLOW_HEADS, _IDLE, _SIGNING_IN = 64, 300, 1_000, 48
_SECONDS = 8


@pytest.fixture
def web(services: Services, tmp_path: Path) -> Iterator[Web]:
    """One web process of the test's database, whose node accepts connections and never responds."""
    place = connection.settings_dict
    with ExitStack() as parts:
        node = parts.enter_context(closing(socket.create_server(("127.0.0.1", 0), backlog=512)))
        environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "tests.gateway.web.patient_settings",
            "DATABASE_URL": f"postgresql://{place['USER']}@/{place['NAME']}?host={place['HOST']}",
            "REDIS_URL": services.redis_url,
            "CHAIN_RPC_URLS": f"http://127.0.0.1:{node.getsockname()[1]}",
            "LOG_LEVEL": "ERROR",
            "AUTH_RATE": "100000/minute",
        }
        yield parts.enter_context(Web(tmp_path, environment, port=free_port(), processes=1).running())


class Crowd:
    """Clients that mean no good, or are just far away."""

    def __init__(self, web: Web) -> None:
        self._address = ("127.0.0.1", int(web.url.rpartition(":")[2]))
        self._sockets: list[socket.socket] = []
        self._over = threading.Event()

    def connect(self, count: int, text: str = "") -> list[socket.socket]:
        """Open connections and send so much on each."""
        opened = [socket.create_connection(self._address, timeout=300) for _ in range(count)]
        for one in opened:
            one.sendall(text.encode())
        self._sockets += opened
        return opened

    def trickle(self, connections: list[socket.socket]) -> None:
        """Send a byte on each now and then, until the crowd leaves."""
        while not self._over.wait(0.5):
            for one in connections:
                try:
                    one.sendall(b"x")
                except OSError:
                    continue  # it was refused by now

    def leave(self) -> None:
        """Close all connections."""
        self._over.set()
        for one in self._sockets:
            one.close()


def _usual(ask: Callable[[], int], until: float) -> tuple[float, set[int]]:
    """Ask again and again; return how long it usually took, which is more than half of the times, and the responses."""
    durations, statuses = [], set()
    while time.monotonic() < until:
        began = time.monotonic()
        statuses.add(ask())
        durations.append(time.monotonic() - began)
        time.sleep(0.1)
    return statistics.median(durations), statuses


def test_health_and_sign_in_respond_quickly(web: Web) -> None:
    http = urllib3.PoolManager(maxsize=64, retries=False, timeout=300)

    def post(path: str, **content: str) -> urllib3.BaseHTTPResponse:
        body = json.dumps(content)
        return http.request(
            "POST", f"{web.url}/api/auth/{path}", body=body, headers={"Content-Type": "application/json"}
        )

    def sign_in_in_vain() -> int:
        """Get as far as the node, which must check the signature."""
        controller = Controller()
        challenge = post("nonce", address=random_address()).json()
        signature = controller.sign(personal_sign_digest(challenge["message"].encode()))
        time.sleep(0.5)
        return post("verify", nonce=challenge["nonce"], signature="0x" + signature.hex()).status

    def ask_nonce() -> int:
        return post("nonce", address=random_address()).status

    def ask_health() -> int:
        return http.request("GET", f"{web.url}/healthz").status

    assert ask_nonce() == 200
    # A second on a machine that has time; where others keep it busy, longer. Without limits it would be five each time.
    limit = 3.0
    crowd = Crowd(web)
    try:
        crowd.connect(_IDLE)
        crowd.connect(_SLOW_HEADS, "POST /api/auth/nonce HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
        head = "POST /api/auth/nonce HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        trickling = crowd.connect(_TRICKLING, head + "Content-Length: 200\r\n\r\n")
        until = time.monotonic() + _SECONDS
        with ThreadPoolExecutor(_SIGNING_IN + 3) as threads:
            threads.submit(crowd.trickle, trickling)
            signing_in = [threads.submit(_usual, sign_in_in_vain, until) for _ in range(_SIGNING_IN)]
            health = threads.submit(_usual, ask_health, until)
            nonce = threads.submit(_usual, ask_nonce, until)
            results = [one.result() for one in signing_in]
            crowd.leave()
    finally:
        crowd.leave()
    assert {status for _, statuses in results for status in statuses} == {503}
    assert health.result()[1] == nonce.result()[1] == {200}
    assert health.result()[0] < limit
    assert nonce.result()[0] < limit
