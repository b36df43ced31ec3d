"""Connections to nodes that end in silence, and nodes behind a proxy that wants a password."""

import secrets
import socketserver
import threading
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from gateway.chain.connection import Flows, NodeConnection
from gateway.chain.rpc import Call, HttpFault, NodeFault
from tests.gateway.chain import nodes

BLOCK = Call("eth_blockNumber", [])
# Far more than the second after which a lost connection is noticed, also on a machine that stalls.
_READ_SECONDS = 120


def _connection(url: str, flows: Flows) -> NodeConnection:
    return NodeConnection(url, flows=flows, connect_seconds=60, read_seconds=_READ_SECONDS)


def test_a_request_on_a_lost_connection_is_repeated_on_a_fresh_one() -> None:
    with nodes.running(nodes.result("0x1")) as node:
        connection = _connection(node.url, Flows())
        connection.batch([BLOCK])
        node.forget_connections()

        started = time.monotonic()
        assert connection.batch([BLOCK, BLOCK]) == ["0x1", "0x1"]

        assert time.monotonic() - started < _READ_SECONDS / 2
        assert len(node.connections) == 2
        assert node.methods == ["eth_blockNumber"] * 3


def test_the_first_lost_connection_empties_the_pool_of_its_node() -> None:
    with nodes.running(nodes.result("0x1")) as node:
        flows = Flows()
        connections = [_connection(node.url, flows) for _ in range(secrets.randbelow(4) + 3)]
        for one in connections:
            one.batch([BLOCK])
        node.forget_connections()
        connections[0].batch([BLOCK])
        lost_at = flows.lost_at

        for one in connections[1:]:
            assert one.batch([BLOCK]) == ["0x1"]

        assert flows.lost_at == lost_at > 0
        assert len(node.connections) == 2 * len(connections)


def test_concurrent_requests_on_lost_connections_are_all_repeated() -> None:
    with nodes.running(nodes.result("0x1")) as node:
        flows, results = Flows(), list[object]()
        connections = [_connection(node.url, flows) for _ in range(48)]
        for one in connections:
            one.batch([BLOCK])
        node.forget_connections()
        threads = [
            threading.Thread(target=lambda one=one: results.append(one.batch([BLOCK]))) for one in connections
        ]

        started = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert results == [["0x1"]] * len(connections)
        assert time.monotonic() - started < _READ_SECONDS / 2


def test_user_and_password_of_the_url_are_sent_as_basic_authorization() -> None:
    user, password = secrets.token_hex(4), f"{secrets.token_hex(4)}%2F:"
    with nodes.running(nodes.result("0x1")) as node:
        _connection(node.url.replace("http://", f"http://{user}:{password}@"), Flows()).batch([BLOCK])

        credentials = b64encode(f"{user}:{password.replace('%2F', '/')}".encode()).decode()
        assert node.headers["Authorization"] == f"Basic {credentials}"
        assert "@" not in node.headers["Host"]


def test_a_url_without_user_sends_no_authorization() -> None:
    with nodes.running(nodes.result("0x1")) as node:
        _connection(node.url, Flows()).batch([BLOCK])

        assert "Authorization" not in node.headers


def test_a_refused_password_is_named_by_its_status() -> None:
    with nodes.running(lambda _: (401, b"")) as node, pytest.raises(HttpFault, match="HTTP 401"):
        _connection(node.url, Flows()).batch([BLOCK])


@contextmanager
def raw(reply: bytes, *, ends: bool = False) -> Iterator[str]:
    """Yield the URL of a server that responds to each request with these bytes, and then ends the connection."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while head := b"".join(iter(self.rfile.readline, b"\r\n")):
                self.rfile.read(int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]))
                self.wfile.write(reply)
                if ends:
                    break

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


_BODY = b'[{"id":1,"result":"0x1"}]'
_RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(_BODY), _BODY)


@pytest.mark.parametrize(
    "interim",
    [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n"],
)
def test_interim_responses_come_before_the_response(interim: bytes) -> None:
    with raw(interim * (1 + secrets.randbelow(3)) + _RESPONSE) as url:
        connection = _connection(url, Flows())

        assert [connection.batch([BLOCK]) for _ in range(3)] == [["0x1"]] * 3


def test_interim_responses_without_end_are_a_fault() -> None:
    with (
        raw(b"HTTP/1.1 100 Continue\r\n\r\n" * 100) as url,
        pytest.raises(HttpFault, match="no final response"),
    ):
        _connection(url, Flows()).batch([BLOCK])


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
def test_a_body_without_a_length_ends_with_the_connection(version: bytes) -> None:
    with raw(b"HTTP/%s 200 OK\r\n\r\n%s" % (version, _BODY), ends=True) as url:
        connection = _connection(url, Flows())

        assert [connection.batch([BLOCK]) for _ in range(3)] == [["0x1"]] * 3


def test_a_body_without_a_length_that_is_cut_off_is_no_response() -> None:
    with (
        raw(b"HTTP/1.1 200 OK\r\n\r\n" + _BODY[: secrets.randbelow(len(_BODY))], ends=True) as url,
        pytest.raises(NodeFault, match="cut off"),
    ):
        _connection(url, Flows()).batch([BLOCK])
