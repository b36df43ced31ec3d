"""
One HTTP/1.1 connection to a node, kept alive, which sends batches of calls.

A relay call waits for one request to the node. A general HTTP client would need more CPU time for it than all other
steps of the call together (`docs/performance.md` compares both). This one supports only what JSON-RPC needs: POST,
bodies of known length, in chunks or up to the end of the connection, and no redirects.
"""

import errno
import socket
import ssl
import time
from base64 import b64encode
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from gateway.chain.batches import BatchResponse, request_body
from gateway.chain.rpc import BatchRefused, Call, HttpFault, NodeFault
from signer.client import KEPT_OPEN, LOST_SECONDS, REUSED

_READ_BYTES = 65_536
_MAX_HEAD_BYTES = 65_536
_MOST_INTERIM = 5
# The body is too large, or has too many calls.
_TOO_MANY_STATUSES = frozenset({b"400", b"413"})
Take = Callable[[bytes], None]


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


class _Closed(HttpFault):
    """The node closed the connection before it sent a response."""


class _Lost(HttpFault):
    """The node acknowledges nothing on this connection, as when a firewall has forgotten it."""


class Flows:
    """When a connection to the node was last found lost. The older connections of all threads are then not reused."""

    def __init__(self) -> None:
        self.lost_at = 0.0


class NodeConnection:
    """A connection to one node, opened by the first request. For one thread; times are in seconds."""

    def __init__(self, url: str, *, flows: Flows, connect_seconds: float, read_seconds: float) -> None:
        parts = urlsplit(url)
        self._is_tls = parts.scheme == "https"
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if self._is_tls else 80)
        self._connect_seconds, self._read_seconds = connect_seconds, read_seconds
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._head = (
            f"POST {target} HTTP/1.1\r\nHost: {parts.netloc.rpartition('@')[2]}\r\n{_authorization(parts)}"
            "Content-Type: application/json\r\nAccept: application/json\r\nContent-Length: "
        ).encode()
        self._socket: socket.socket | None = None
        # Bytes received after the end of the last response.
        self._rest = b""
        self._deadline = 0.0
        self._flows, self._used_at = flows, 0.0

    def batch(self, calls: Sequence[Call]) -> list[Any]:
        """
        Return each call's value, or the `NodeFault` in its place, in order.

        Raises:
            HttpFault: the node did not respond completely in time, or with a status other than 200.
            BatchRefused: the node did not respond to all calls; a smaller batch may succeed.
            TooLarge, MalformedResponse: the response is too large, or is not a response to this batch.
        """
        try:
            return self._post(request_body(calls), lambda: BatchResponse(calls))
        except _Closed as fault:
            if len(calls) == 1:
                raise
            raise BatchRefused(fault.reason) from fault

    def close(self) -> None:
        """Close the connection; the next request opens a new one."""
        connection, self._socket, self._rest = self._socket, None, b""
        if connection is not None:
            connection.close()

    def _post(self, body: bytes, response: Callable[[], BatchResponse]) -> list[Any]:
        """Send a body and return the values of the response. Reconnects once if an idle connection has ended."""
        if self._used_at <= self._flows.lost_at:
            self.close()
        was_open, started = self._socket is not None, time.monotonic()
        try:
            return self._exchange(body, response())
        except (_Closed, _Lost):
            if not was_open:
                raise
            if time.monotonic() - started >= LOST_SECONDS:
                self._flows.lost_at = time.monotonic()
            return self._exchange(body, response())

    def _exchange(self, body: bytes, response: BatchResponse) -> list[Any]:
        try:
            self._send(body)
            self._receive_response(response.take)
        except Exception as error:
            # The rest of this response must not be read as the next one.
            self.close()
            if isinstance(error, NodeFault):
                raise
            raise HttpFault(
                type(error).__name__ if isinstance(error, OSError) else "malformed response"
            ) from error
        self._used_at = time.monotonic()
        return response.values()

    def _send(self, body: bytes) -> None:
        if (connection := self._socket) is not None:
            # Not for a new connection: a busy node may accept it late.
            connection.setsockopt(*REUSED)
        else:
            connection = self._open()
        self._deadline = time.monotonic() + self._read_seconds
        connection.settimeout(self._read_seconds)
        try:
            connection.sendall(self._head + b"%d\r\n\r\n" % len(body) + body)
        except OSError as error:
            raise _ended(error) from error

    def _open(self) -> socket.socket:
        connection = socket.create_connection((self._host, self._port), self._connect_seconds)
        for option in KEPT_OPEN:
            connection.setsockopt(*option)
        self._socket = (
            _tls().wrap_socket(connection, server_hostname=self._host) if self._is_tls else connection
        )
        return self._socket

    def _receive_response(self, take: Take) -> None:
        """Receive the response and pass on its body, if the status is 200."""
        status, headers = self._final_head()
        _refuse_other(status.split()[1:2])
        if headers.get(b"transfer-encoding", b"").lower() == b"chunked":
            self._chunks(take)
        elif b"content-length" in headers:
            self._exactly(int(headers[b"content-length"]), take)
        else:
            self._rest_of_connection(take)
        if headers.get(b"connection", b"").lower() == b"close" or status.startswith(b"HTTP/1.0"):
            self.close()

    def _final_head(self) -> tuple[bytes, dict[bytes, bytes]]:
        """
        Return status line and headers of the final response.

        Interim responses (1xx), which a proxy may send unasked, come before it (RFC 9110, 15.2).
        """
        for _ in range(_MOST_INTERIM + 1):
            status, *lines = self._until(b"\r\n\r\n", _MAX_HEAD_BYTES).split(b"\r\n")
            if not status.startswith(b"HTTP/1."):
                raise HttpFault("not HTTP")
            if not b"".join(status.split()[1:2]).startswith(b"1"):
                pairs = (line.partition(b":") for line in lines)
                return status, {name.strip().lower(): value.strip() for name, _, value in pairs}
        raise HttpFault("no final response")

    def _rest_of_connection(self, take: Take) -> None:
        """Receive a body that ends with the connection (RFC 9112, 6.3); `take` stops one that is too large."""
        piece, self._rest = self._rest, b""
        with suppress(_Closed):
            while True:
                take(piece)
                piece = self._receive(is_first=True)
        self.close()

    def _chunks(self, take: Take) -> None:
        """Receive a body in chunks (RFC 9112, 7.1); extensions and trailers are skipped."""
        while size := int(self._until(b"\r\n", _MAX_HEAD_BYTES).partition(b";")[0], 16):
            self._exactly(size, take)
            self._until(b"\r\n", _MAX_HEAD_BYTES)
        while self._until(b"\r\n", _MAX_HEAD_BYTES):
            pass

    def _until(self, end: bytes, most: int) -> bytes:
        """Return the bytes before `end`, and skip `end`."""
        buffer, searched = self._rest, 0
        while (at := buffer.find(end, searched)) < 0:
            if len(buffer) > most:
                raise HttpFault("response head too large")
            searched = max(0, len(buffer) - len(end))
            buffer += self._receive(is_first=not buffer and end == b"\r\n\r\n")
        self._rest = buffer[at + len(end) :]
        return buffer[:at]

    def _exactly(self, count: int, take: Take) -> None:
        """Receive this many bytes and pass them on piece by piece; `take` may stop this with an exception."""
        if count < 0:
            raise HttpFault("malformed response")
        piece, self._rest = self._rest[:count], self._rest[count:]
        while True:
            take(piece)
            count -= len(piece)
            if not count:
                return
            received = self._receive(is_first=False)
            piece, self._rest = received[:count], received[count:]

    def _receive(self, *, is_first: bool) -> bytes:
        connection = self._socket
        left = self._deadline - time.monotonic()
        if connection is None or left <= 0:
            raise HttpFault("TimeoutError")
        connection.settimeout(left)
        try:
            received = connection.recv(_READ_BYTES)
        except OSError as error:
            raise _ended(error) from error
        if not received:
            raise _Closed("closed") if is_first else HttpFault("closed within a response")
        return received


def _ended(error: OSError) -> Exception:
    """Return the fault of a connection that has ended or is lost, or any other error unchanged."""
    if error.errno == errno.ETIMEDOUT:
        return _Lost("connection lost")
    return _Closed("closed") if isinstance(error, BrokenPipeError | ConnectionResetError) else error


def _authorization(parts: SplitResult) -> str:
    """Return the header for the URL's user and password (RFC 7617), or nothing."""
    if parts.username is None:
        return ""
    credentials = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return f"Authorization: Basic {b64encode(credentials.encode()).decode()}\r\n"


def _refuse_other(status: list[bytes]) -> None:
    """
    Raise unless the status is 200.

    Raises:
        BatchRefused: the node reports that the request is too large.
        HttpFault: any other status.
    """
    if status == [b"200"]:
        return
    code = b"".join(status)[:3]
    reason = f"HTTP {code.decode('ascii', 'replace')}"
    raise BatchRefused(reason) if code in _TOO_MANY_STATUSES else HttpFault(reason)
