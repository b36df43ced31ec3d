"""Requests to URLs that users chose: which are refused, and that only a checked address is connected to."""

import socket
import threading
import time
from typing import Any

import pytest

from gateway.common.public_http import AddressRefused, Exceptions, NoResponse, is_public, post, require_usable

_NONE, _LOCAL = Exceptions(), Exceptions(http=True, loopback=True)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.8.9.1",
        "10.1.2.3",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",  # noqa: S104
        "192.0.2.1",
        "198.18.0.1",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::7f00:1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b::a00:1",
        "2002:7f00:1::",
        "2001:0:7f00:1::",
        "fe80::1",
        "fc00::1",
        "fd12::1",
        "ff02::1",
        "2001:db8::1",
        "100::1",
    ],
)
def test_an_address_that_is_not_public_is_recognised(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["1.1.1.1", "93.184.216.34", "::ffff:1.1.1.1", "2606:4700::1111"])
def test_a_public_address_is_recognised(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "url",
    [
        "http://wallet.example/",
        "ftp://wallet.example/",
        "file:///etc/passwd",
        "https://",
        "https://user@wallet.example/",
        "https://wallet.example/#part",
        "https://wallet.example:port/",
        "https://wallet.example/a b",
        "https://wall\u00e9t.example/",
        "https://127.0.0.1/",
        "https://[::1]:8443/",
        "https://wallet.example/" + "a" * 2000,
    ],
    ids=lambda url: url[:40],
)
def test_a_url_that_must_not_be_requested_is_refused(url: str) -> None:
    with pytest.raises(AddressRefused):
        require_usable(url, allowed=_NONE)


def test_a_name_is_resolved_once_and_each_address_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    connected: list[Any] = []
    results = [["1.1.1.1"], ["1.1.1.1", "10.0.0.1"]]

    def resolve(host: str, port: int, **_: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (text, port)) for text in results.pop(0)]

    def connect(address: Any, timeout: float) -> socket.socket:
        connected.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setattr(socket, "create_connection", connect)
    with pytest.raises(NoResponse, match="ConnectionRefusedError"):
        post("https://wallet.example/", body=b"", headers={}, seconds=1, allowed=_NONE)
    with pytest.raises(AddressRefused, match=r"10\.0\.0\.1 is not a public address"):
        post("https://wallet.example/", body=b"", headers={}, seconds=1, allowed=_NONE)
    assert connected == [("1.1.1.1", 443)]


def test_a_slow_lookup_is_a_failed_resolution(monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()

    def resolve(*_: Any, **__: Any) -> list[Any]:
        go_on.wait(60)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    began = time.monotonic()
    with pytest.raises(NoResponse, match=r"wallet\.example cannot be resolved"):
        post("https://wallet.example/", body=b"", headers={}, seconds=0.2, allowed=_NONE)
    assert time.monotonic() - began < 30
    go_on.set()


def test_a_response_that_arrives_byte_by_byte_is_cut_off() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_drip, args=(server, b"HTTP/1.1 "), daemon=True).start()
        began = time.monotonic()
        with pytest.raises(NoResponse, match=r"No response within 3 seconds"):
            post(_url(server), body=b"{}", headers={}, seconds=3, allowed=_LOCAL)
        assert time.monotonic() - began < 30


def test_a_status_is_returned_even_if_the_body_arrives_byte_by_byte() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        head = b"HTTP/1.1 201 Created\r\nX-Slow: "
        threading.Thread(target=_drip, args=(server, head), daemon=True).start()
        assert post(_url(server), body=b"{}", headers={}, seconds=5, allowed=_LOCAL).status == 201


def test_only_the_beginning_of_a_long_response_is_read() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + b"a" * 20
        threading.Thread(target=_drip, args=(server, head), daemon=True).start()
        response = post(_url(server), body=b"{}", headers={}, seconds=60, allowed=_LOCAL, response_bytes=10)
    assert (response.status, response.body) == (200, b"a" * 10)


def _url(server: socket.socket) -> str:
    return f"http://127.0.0.1:{server.getsockname()[1]}/"


def _drip(server: socket.socket, begun: bytes) -> None:
    """Respond to one connection with so much, and then a byte at a time."""
    connection, _ = server.accept()
    with connection:
        connection.sendall(begun)
        while True:
            time.sleep(0.05)
            try:
                connection.sendall(b"a")
            except OSError:
                return
