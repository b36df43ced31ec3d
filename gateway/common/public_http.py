"""
Requests to URLs that users chose, such as the webhook endpoint of a wallet app.

Such a request must not reach internal services: databases, other hosts, the cloud's metadata (SSRF). The host name is
resolved once, every address that it resolves to must be public, and the connection goes to the address that was
checked, which defeats DNS rebinding. Redirects are not followed and proxies are not used. Response time and size
are bounded: the deadline covers the whole exchange, even a response that arrives byte by byte.
"""

import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from http.client import HTTPConnection, HTTPException, HTTPResponse
from urllib.parse import urlsplit

# All publicly routed IPv6 addresses. Addresses that embed an IPv4 address, which may be private, are outside this
# network or listed here: 6to4 and Teredo.
_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")
_EMBEDDING_IPV4 = (ipaddress.ip_network("2002::/16"), ipaddress.ip_network("2001::/32"))
_PORTS = {"https": 443, "http": 80}
_MAX_URL_LENGTH = 2000
# Time between the deadline for reading and the end of the connection.
_CLOSE_SECONDS = 1.0


class AddressRefused(Exception):
    """The service must not request this URL; the message gives the reason."""


class NoResponse(Exception):
    """No HTTP response arrived in time; the message gives the error."""


@dataclass(frozen=True, slots=True)
class Response:
    """The status of a response, and the beginning of its body."""

    status: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Exceptions:
    """Addresses that are allowed in development besides https URLs of public addresses."""

    http: bool = False
    loopback: bool = False


@dataclass(frozen=True, slots=True)
class _Target:
    is_https: bool
    host: str
    port: int
    path: str


def require_usable(url: str, *, allowed: Exceptions) -> None:
    """
    Check a URL without resolving its host name.

    Raises:
        AddressRefused: the URL is malformed, not https, contains credentials, or its host is a non-public address.
    """
    target = _target_of(url, allowed)
    with suppress(ValueError):
        _require_public(str(ipaddress.ip_address(target.host)), allowed)


def post(
    url: str,
    *,
    body: bytes,
    headers: Mapping[str, str],
    seconds: float,
    allowed: Exceptions,
    response_bytes: int = 1024,
) -> Response:
    """
    Post the body and return the response, of whose body at most `response_bytes` are read.

    Raises:
        AddressRefused: the URL is malformed, or its host name resolves to a non-public address.
        NoResponse: the host name cannot be resolved, or no HTTP response arrives within `seconds`.
    """
    return _ask("POST", url, body, headers, seconds, allowed, response_bytes)


def get(url: str, *, seconds: float, allowed: Exceptions, response_bytes: int) -> Response:
    """Request the URL; bounded and checked like `post`."""
    return _ask("GET", url, None, {}, seconds, allowed, response_bytes)


def _ask(
    method: str,
    url: str,
    body: bytes | None,
    headers: Mapping[str, str],
    seconds: float,
    allowed: Exceptions,
    response_bytes: int,
) -> Response:
    target = _target_of(url, allowed)
    ends_at = time.monotonic() + seconds
    address = _resolved(target, allowed, ends_at)
    try:
        with _connected(target, address, ends_at) as connection:
            connection.request(method, target.path, body=body, headers={**headers, "Connection": "close"})
            response = connection.getresponse()
            return Response(response.status, _beginning(response, response_bytes))
    except (OSError, HTTPException) as error:
        if time.monotonic() >= ends_at:
            raise NoResponse(f"No response within {seconds} seconds.") from error
        raise NoResponse(f"{type(error).__name__}: {error}"[:200]) from error


def _beginning(response: HTTPResponse, length: int) -> bytes:
    """Return the beginning of the body, or nothing if it does not arrive in time: the status is valid either way."""
    try:
        return response.read(length)
    except (OSError, HTTPException):
        return b""


def is_public(text: str) -> bool:
    """Return whether this IP address is on the public internet."""
    address = ipaddress.ip_address(text)
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped:
            return is_public(str(address.ipv4_mapped))
        if address not in _GLOBAL_UNICAST or any(address in network for network in _EMBEDDING_IPV4):
            return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def _target_of(url: str, allowed: Exceptions) -> _Target:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise AddressRefused("This is not a valid URL.") from error
    if parts.scheme != "https" and not (parts.scheme == "http" and allowed.http):
        raise AddressRefused("Only https is allowed.")
    if (
        not parts.hostname
        or not url.isascii()
        or not url.isprintable()
        or " " in url
        or len(url) > _MAX_URL_LENGTH
    ):
        raise AddressRefused("This is not a valid URL.")
    if "@" in parts.netloc or parts.fragment:
        raise AddressRefused("Leave user, password and fragment out of the URL.")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return _Target(parts.scheme == "https", parts.hostname, port or _PORTS[parts.scheme], path)


def _resolved(target: _Target, allowed: Exceptions, ends_at: float) -> str:
    looked_up: Future[list[str]] = Future()
    # In a daemon thread, because a lookup cannot be interrupted and must not delay the end of the process.
    threading.Thread(target=_look_up, args=(target, looked_up), daemon=True).start()
    try:
        addresses = looked_up.result(_left(ends_at))
    except (OSError, UnicodeError) as error:
        raise NoResponse(f"The name {target.host} cannot be resolved.") from error
    for address in addresses:
        _require_public(address, allowed)
    return addresses[0]


def _look_up(target: _Target, looked_up: "Future[list[str]]") -> None:
    try:
        infos = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
        looked_up.set_result([str(info[4][0]) for info in infos])
    except (OSError, UnicodeError) as error:
        looked_up.set_exception(error)


def _left(ends_at: float) -> float:
    """Return the seconds left, but more than zero, because a socket with a timeout of zero is non-blocking."""
    return max(0.001, ends_at - time.monotonic())


def _require_public(address: str, allowed: Exceptions) -> None:
    # Only link-local addresses have a zone (fe80::1%eth0).
    if "%" not in address:
        if is_public(address):
            return
        if allowed.loopback and ipaddress.ip_address(address).is_loopback:
            return
    raise AddressRefused(f"{address} is not a public address.")


@contextmanager
def _connected(target: _Target, address: str, ends_at: float) -> Iterator[HTTPConnection]:
    """Yield a connection to the address; it ends at the deadline even if the server sends a byte now and then."""
    raw = socket.create_connection((address, target.port), timeout=_left(ends_at))
    # A second handle of the same connection, because TLS takes over the first.
    handle = raw.dup()
    deadlines = _end_after(_left(ends_at), handle)
    connection = HTTPConnection(target.host, target.port)
    try:
        connection.sock = _trust().wrap_socket(raw, server_hostname=target.host) if target.is_https else raw
        yield connection
    finally:
        for deadline in deadlines:
            deadline.cancel()
        connection.close()
        raw.close()
        handle.close()


def _end_after(seconds: float, handle: socket.socket) -> list[threading.Timer]:
    """
    End reading after `seconds`, and writing a second later.

    If both ended at once, the kernel would reset the connection on further data and drop what it has received.
    """
    timers = [
        threading.Timer(seconds, _end, [handle, socket.SHUT_RD]),
        threading.Timer(seconds + _CLOSE_SECONDS, _end, [handle, socket.SHUT_RDWR]),
    ]
    for timer in timers:
        timer.start()
    return timers


def _end(handle: socket.socket, direction: int) -> None:
    with suppress(OSError):
        handle.shutdown(direction)


@cache
def _trust() -> ssl.SSLContext:
    return ssl.create_default_context()
