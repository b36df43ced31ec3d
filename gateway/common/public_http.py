"""
Requests to addresses that others chose, such as the endpoint of a wallet app.

They must reach nothing that this machine alone can reach: databases, other services, the cloud's metadata. So a host's
name is resolved once, each of its addresses must be public, and the connection goes to the address that was looked
at: a name that means another one a moment later gains nothing. No redirect is followed, no proxy is asked, and neither
time nor length of an answer is up to who answers.
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

# Everything that is routed publicly. What wraps an IPv4 address, which may be a private one, lies outside or is named.
_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")
_WRAPPING = (ipaddress.ip_network("2002::/16"), ipaddress.ip_network("2001::/32"))
_PORTS = {"https": 443, "http": 80}
_LONGEST_URL = 2000
# Between the end of reading and the end of the connection.
_LAST_SECONDS = 1.0


class AddressRefused(Exception):
    """The address may not be asked; the text says why."""


class NoAnswer(Exception):
    """Nothing that is HTTP came in time; the text says what happened."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The status of an answer, and the beginning of its body."""

    status: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Exceptions:
    """What is allowed beyond https and public addresses, for development."""

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
    Refuse an address that could never be asked, without resolving its name.

    Raises:
        AddressRefused: it is malformed, not https, has a password in it, or names an address that is not public.
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
    answer_bytes: int = 1024,
) -> Answer:
    """
    Post the body and return the answer, of which at most `answer_bytes` are read.

    Raises:
        AddressRefused: the address is malformed, or one of those that its name has is not public.
        NoAnswer: the name is unknown, nobody answers within so many seconds, or what comes is not HTTP.
    """
    return _ask("POST", url, body, headers, seconds, allowed, answer_bytes)


def get(url: str, *, seconds: float, allowed: Exceptions, answer_bytes: int) -> Answer:
    """Read what lies at the address, in the same way."""
    return _ask("GET", url, None, {}, seconds, allowed, answer_bytes)


def _ask(
    method: str,
    url: str,
    body: bytes | None,
    headers: Mapping[str, str],
    seconds: float,
    allowed: Exceptions,
    answer_bytes: int,
) -> Answer:
    target = _target_of(url, allowed)
    ends_at = time.monotonic() + seconds
    address = _resolved(target, allowed, ends_at)
    try:
        with _connected(target, address, ends_at) as connection:
            connection.request(method, target.path, body=body, headers={**headers, "Connection": "close"})
            response = connection.getresponse()
            return Answer(response.status, _beginning(response, answer_bytes))
    except (OSError, HTTPException) as error:
        if time.monotonic() >= ends_at:
            raise NoAnswer(f"No answer within {seconds} seconds.") from error
        raise NoAnswer(f"{type(error).__name__}: {error}"[:200]) from error


def _beginning(response: HTTPResponse, length: int) -> bytes:
    """Return what has come of the body when time is up; the status counts, whatever follows it."""
    try:
        return response.read(length)
    except (OSError, HTTPException):
        return b""


def is_public(text: str) -> bool:
    """Return whether packets to this IP address leave for the public internet."""
    address = ipaddress.ip_address(text)
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped:
            return is_public(str(address.ipv4_mapped))
        if address not in _GLOBAL_UNICAST or any(address in network for network in _WRAPPING):
            return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def _target_of(url: str, allowed: Exceptions) -> _Target:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise AddressRefused("This is no URL.") from error
    if parts.scheme != "https" and not (parts.scheme == "http" and allowed.http):
        raise AddressRefused("Only https is allowed.")
    if (
        not parts.hostname
        or not url.isascii()
        or not url.isprintable()
        or " " in url
        or len(url) > _LONGEST_URL
    ):
        raise AddressRefused("This is no URL.")
    if "@" in parts.netloc or parts.fragment:
        raise AddressRefused("Leave user, password and fragment out of the URL.")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return _Target(parts.scheme == "https", parts.hostname, port or _PORTS[parts.scheme], path)


def _resolved(target: _Target, allowed: Exceptions, ends_at: float) -> str:
    looked_up: Future[list[str]] = Future()
    # In a thread that nobody waits for at the end of the process: a lookup cannot be interrupted.
    threading.Thread(target=_look_up, args=(target, looked_up), daemon=True).start()
    try:
        addresses = looked_up.result(_left(ends_at))
    except (OSError, UnicodeError) as error:
        raise NoAnswer(f"The name {target.host} cannot be resolved.") from error
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
    """Return the seconds until then; a socket takes none for a wish not to wait at all."""
    return max(0.001, ends_at - time.monotonic())


def _require_public(address: str, allowed: Exceptions) -> None:
    # A zone (fe80::1%eth0) only ever follows an address of this link.
    if "%" not in address:
        if is_public(address):
            return
        if allowed.loopback and ipaddress.ip_address(address).is_loopback:
            return
    raise AddressRefused(f"{address} is no public address.")


@contextmanager
def _connected(target: _Target, address: str, ends_at: float) -> Iterator[HTTPConnection]:
    """Yield a connection to the address, which ends at that moment, whatever comes in drops until then."""
    raw = socket.create_connection((address, target.port), timeout=_left(ends_at))
    # A second handle of the same connection: encryption takes the first one over.
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
    End reading after so many seconds, and writing a moment later.

    Ending both at once lets the kernel reset the connection when more comes, and what was received is lost with it.
    """
    timers = [
        threading.Timer(seconds, _end, [handle, socket.SHUT_RD]),
        threading.Timer(seconds + _LAST_SECONDS, _end, [handle, socket.SHUT_RDWR]),
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
