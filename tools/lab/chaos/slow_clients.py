"""Slow clients (slowloris): bodies and heads sent byte by byte, and idle connections."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

_BYTE_EVERY_SECONDS = 0.5
_HEAD = b"POST /api/relay/execute HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
_BODY = _HEAD + b"content-length: 1000\r\n\r\n"


def _nothing() -> Iterator[bytes]:
    yield from ()


def _body() -> Iterator[bytes]:
    """Announce a body of 1,000 bytes, then send one byte at a time."""
    yield _BODY
    while True:
        yield b" "


def _head() -> Iterator[bytes]:
    """Begin a head that never ends."""
    yield _HEAD
    while True:
        yield b"x-more: 1\r\n"


KINDS: dict[str, tuple[int, Callable[[], Iterator[bytes]]]] = {
    "64 trickling bodies": (64, _body),
    "300 slow headers": (300, _head),
    "1000 idle connections": (1000, _nothing),
}


@contextmanager
def slow_clients(port: int, number: int, pieces: Callable[[], Iterator[bytes]]) -> Iterator[None]:
    """Keep this many connections busy during the block; replace those that the server closes."""
    stop = threading.Event()
    thread = threading.Thread(target=_keep_busy, args=(port, number, pieces, stop), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _keep_busy(port: int, number: int, pieces: Callable[[], Iterator[bytes]], stop: threading.Event) -> None:
    clients: list[_Client] = []
    while not stop.is_set():
        clients = [client for client in clients if client.goes_on()]
        with suppress(OSError):
            clients += [_Client(port, pieces()) for _ in range(number - len(clients))]
        stop.wait(_BYTE_EVERY_SECONDS)
    for client in clients:
        client.close()


class _Client:
    """One connection, and the pieces it sends."""

    def __init__(self, port: int, pieces: Iterator[bytes]) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=5)
        self._socket.setblocking(False)
        self._pieces = pieces

    def goes_on(self) -> bool:
        """Send the next piece; if the server has closed the connection, close it and return False."""
        try:
            self._socket.send(next(self._pieces, b""))
            is_open = not self._has_ended()
        except OSError:
            is_open = False
        if not is_open:
            self.close()
        return is_open

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def _has_ended(self) -> bool:
        with suppress(BlockingIOError):
            return bool(not self._socket.recv(65_536, socket.MSG_PEEK))
        return False
