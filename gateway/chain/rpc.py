"""
JSON-RPC to one node: batches over a kept-alive HTTP/1.1 connection, and the values in their answers.

A relay call waits for one request to the node, and a general HTTP client would need more processor time for it than
all other steps of the call together (`docs/performance.md` compares both). This one supports only what JSON-RPC needs:
POST, a body of known length or in chunks, no redirects.
"""

import json
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from gateway.chain.errors import NodeUnavailable
from gateway.chain.types import Head

RETRY_AFTER_SECONDS = 2

Call = tuple[str, list[Any]]


@dataclass(frozen=True, slots=True)
class RpcError:
    """A node's error response to one call of a batch."""

    code: int
    message: str
    data: Any = None


class NodeFault(Exception):
    """One node failed; the text names the kind of failure and no part of the URL."""


def unreadable() -> NodeUnavailable:
    """Return the error to raise for a malformed answer."""
    return NodeUnavailable("The chain node gave no usable answer.", retry_after=RETRY_AFTER_SECONDS)


def _request_body(calls: Sequence[Call]) -> bytes:
    envelopes = [
        {"jsonrpc": "2.0", "id": place, "method": method, "params": params}
        for place, (method, params) in enumerate(calls)
    ]
    return json.dumps(envelopes, separators=(",", ":")).encode()


def _replies(body: bytes, count: int, accepts: Callable[[RpcError], bool]) -> list[Any]:
    try:
        answers = json.loads(body)
    except ValueError as error:
        raise NodeFault("not JSON") from error
    if not isinstance(answers, list):
        raise NodeFault("response is not a batch")
    by_id = {answer["id"]: answer for answer in answers if isinstance(answer, dict) and "id" in answer}
    if any(place not in by_id for place in range(count)):
        raise NodeFault("responses are missing")
    return [_reply(by_id[place], accepts) for place in range(count)]


def _reply(answer: dict[str, Any], accepts: Callable[[RpcError], bool]) -> Any:
    fields = answer.get("error")
    if fields is None:
        return answer.get("result")
    if not isinstance(fields, dict) or not isinstance(fields.get("code"), int):
        raise NodeFault("error without a code")
    error = RpcError(code=fields["code"], message=str(fields.get("message", "")), data=fields.get("data"))
    if not accepts(error):
        raise NodeFault(f"JSON-RPC error {error.code}")
    return error


_READ_BYTES = 65_536
_MAX_HEAD_BYTES = 65_536
_MAX_BODY_BYTES = 64 * 1024 * 1024


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


class HttpFault(NodeFault):
    """The node could not be reached in time, or its response is not HTTP with status 200."""


class _Closed(HttpFault):
    """The node closed the connection before it sent a response."""


class NodeConnection:
    """A connection to one node, opened by the first request. For one thread; times are in seconds."""

    def __init__(self, url: str, *, connect_seconds: float, read_seconds: float) -> None:
        parts = urlsplit(url)
        self._is_tls = parts.scheme == "https"
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if self._is_tls else 80)
        self._connect_seconds, self._read_seconds = connect_seconds, read_seconds
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._head = (
            f"POST {target} HTTP/1.1\r\nHost: {parts.netloc.rpartition('@')[2]}\r\n"
            "Content-Type: application/json\r\nAccept: application/json\r\nContent-Length: "
        ).encode()
        self._socket: socket.socket | None = None
        # Bytes received after the end of the last response.
        self._rest = b""
        self._deadline = 0.0

    def batch(self, calls: Sequence[Call], accepts: Callable[[RpcError], bool]) -> list[Any]:
        """
        Return the result of each call, or the error that `accepts` lets pass, in order.

        Raises:
            HttpFault: the node timed out or responded with another status than 200; the connection is closed.
            NodeFault: the response does not match the batch, or has another error.
        """
        return _replies(self._post(_request_body(calls)), len(calls), accepts)

    def _post(self, body: bytes) -> bytes:
        """Send a body and return the response's. Reconnects once if the node has closed the connection."""
        was_open = self._socket is not None
        try:
            return self._exchange(body)
        except _Closed:
            if not was_open:
                raise
            return self._exchange(body)

    def close(self) -> None:
        """Close the connection; the next request opens a new one."""
        connection, self._socket, self._rest = self._socket, None, b""
        if connection is not None:
            connection.close()

    def _exchange(self, body: bytes) -> bytes:
        try:
            connection = self._socket or self._open()
            self._deadline = time.monotonic() + self._read_seconds
            connection.settimeout(self._read_seconds)
            try:
                connection.sendall(self._head + b"%d\r\n\r\n" % len(body) + body)
            except (BrokenPipeError, ConnectionResetError) as error:
                raise _Closed("closed") from error
            return self._answer()
        except OSError as error:
            self.close()
            raise HttpFault(type(error).__name__) from error
        except (ValueError, HttpFault) as error:
            self.close()
            raise error if isinstance(error, HttpFault) else HttpFault("malformed response") from error

    def _open(self) -> socket.socket:
        connection = socket.create_connection((self._host, self._port), self._connect_seconds)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = (
            _tls().wrap_socket(connection, server_hostname=self._host) if self._is_tls else connection
        )
        return self._socket

    def _answer(self) -> bytes:
        head = self._until(b"\r\n\r\n", _MAX_HEAD_BYTES)
        status, *lines = head.split(b"\r\n")
        if not status.startswith(b"HTTP/1."):
            raise HttpFault("not HTTP")
        headers = {
            name.strip().lower(): value.strip() for name, _, value in (line.partition(b":") for line in lines)
        }
        if headers.get(b"transfer-encoding", b"").lower() == b"chunked":
            body = self._chunks()
        elif b"content-length" in headers:
            body = self._exactly(int(headers[b"content-length"]))
        else:
            raise HttpFault("response without a length")
        if headers.get(b"connection", b"").lower() == b"close" or status.startswith(b"HTTP/1.0"):
            self.close()
        if status.split()[1:2] != [b"200"]:
            raise HttpFault(f"HTTP {status[9:12].decode('ascii', 'replace')}")
        return body

    def _chunks(self) -> bytes:
        """Read a body in chunks (RFC 9112, 7.1); extensions and trailers are skipped."""
        body = bytearray()
        while size := int(self._until(b"\r\n", _MAX_HEAD_BYTES).partition(b";")[0], 16):
            body += self._exactly(size)
            self._until(b"\r\n", _MAX_HEAD_BYTES)
            if len(body) > _MAX_BODY_BYTES:
                raise HttpFault("response too large")
        while self._until(b"\r\n", _MAX_HEAD_BYTES):
            pass
        return bytes(body)

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

    def _exactly(self, count: int) -> bytes:
        if not 0 <= count <= _MAX_BODY_BYTES:
            raise HttpFault("response too large")
        pieces, missing = [self._rest], count - len(self._rest)
        while missing > 0:
            piece = self._receive(is_first=False)
            pieces.append(piece)
            missing -= len(piece)
        whole = b"".join(pieces)
        self._rest = whole[count:]
        return whole[:count]

    def _receive(self, *, is_first: bool) -> bytes:
        connection = self._socket
        left = self._deadline - time.monotonic()
        if connection is None or left <= 0:
            raise HttpFault("TimeoutError")
        connection.settimeout(left)
        try:
            received = connection.recv(_READ_BYTES)
        except ConnectionResetError as error:
            raise _Closed("closed") from error
        if not received:
            raise _Closed("closed") if is_first else HttpFault("closed within a response")
        return received


def quantity(reply: Any) -> int:
    """
    Return the number in a response (a QUANTITY of JSON-RPC).

    Raises:
        NodeUnavailable: the response is something else. So do the functions below.
    """
    if not isinstance(reply, str):
        raise unreadable()
    try:
        return int(reply, 16)
    except ValueError as error:
        raise unreadable() from error


def quantities(values: Iterable[Any]) -> list[int]:
    """Return the number in each response."""
    return [quantity(value) for value in values]


def octets(reply: Any) -> bytes:
    """Return the bytes in a response (DATA of JSON-RPC)."""
    if not isinstance(reply, str):
        raise unreadable()
    try:
        return bytes.fromhex(reply.removeprefix("0x"))
    except ValueError as error:
        raise unreadable() from error


def member(reply: Any, name: str) -> Any:
    """Return a member of the object in a response."""
    if not isinstance(reply, dict) or name not in reply:
        raise unreadable()
    return reply[name]


def head_of(block: Any) -> Head:
    """Return the block in a response."""
    return Head(
        number=quantity(member(block, "number")),
        timestamp=quantity(member(block, "timestamp")),
        base_fee_wei=quantity(member(block, "baseFeePerGas")),
        block_hash=str(member(block, "hash")).lower(),
    )
