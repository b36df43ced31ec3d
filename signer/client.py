"""Client of a signer: HTTP over a unix socket, or over mutual TLS."""

import errno
import http.client
import json
import logging
import os
import socket
import ssl
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from signer.messages import KeyList, Outcome, SigningRequest, read_keys, read_outcomes, write_requests

logger = logging.getLogger(__name__)

# For connections that stay open: no delay, and keep-alive probes often enough for firewalls that forget idle
# connections.
KEPT_OPEN = (
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 15),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4),
)
# A reused connection whose peer acknowledges nothing for this long is lost. It ends with ETIMEDOUT; under TLS it seems
# to be closed.
LOST_SECONDS = 0.9
REUSED = (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(LOST_SECONDS * 1000))


class SignerAway(Exception):
    """The signer did not respond in time or responded incorrectly; the text names the kind of failure."""


@dataclass(frozen=True, slots=True)
class Certificates:
    """The files for mutual TLS: our certificate and key, and the authority that must have signed the peer's."""

    certificate: str
    key: str
    authority: str

    @classmethod
    def in_folder(cls, folder: str) -> "Certificates":
        """Return the files of a folder, named as in a Kubernetes secret for TLS."""
        return cls(*(f"{folder}/{name}" for name in ("tls.crt", "tls.key", "ca.crt")))

    def context(self, *, is_server: bool) -> ssl.SSLContext:
        """Return the TLS settings of one side; both sides verify each other."""
        purpose = ssl.Purpose.CLIENT_AUTH if is_server else ssl.Purpose.SERVER_AUTH
        context = ssl.create_default_context(purpose, cafile=self.authority)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_cert_chain(self.certificate, self.key)
        return context


class CurrentTLS:
    """
    The TLS settings of one side for a new connection. They are read again after a file has changed, as at renewals.

    Files that cannot be read are logged once, and the previous settings stay in use.
    """

    def __init__(self, certificates: Certificates, *, is_server: bool) -> None:
        self._certificates, self._is_server = certificates, is_server
        self._stamp = self._stamp_now()
        self._context = certificates.context(is_server=is_server)

    def __call__(self) -> ssl.SSLContext:
        """Return the settings from the current files."""
        try:
            stamp = self._stamp_now()
            if stamp != self._stamp:
                self._stamp = stamp
                self._context = self._certificates.context(is_server=self._is_server)
                logger.info("the certificates have changed and are read again")
        except OSError as error:  # also ssl.SSLError
            logger.warning("changed certificates cannot be read: %s", error)
        return self._context

    def _stamp_now(self) -> list[tuple[int, int]]:
        files = (self._certificates.certificate, self._certificates.key, self._certificates.authority)
        return [(found.st_mtime_ns, found.st_ino) for found in map(os.stat, files)]


class _TLSConnection(http.client.HTTPSConnection):
    def connect(self) -> None:
        super().connect()
        for option in KEPT_OPEN:
            self.sock.setsockopt(*option)


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, *, timeout: float) -> None:
        super().__init__("signer", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class SignerClient:
    """
    Sends requests to one signer, over a persistent connection per thread.

    A request that fails on an idle connection is retried once: signing the same transaction again gives the same bytes.
    """

    def __init__(self, url: str, *, timeout_seconds: float, certificates: Certificates | None = None) -> None:
        self._parts, self._seconds = urlsplit(url), timeout_seconds
        self._tls = CurrentTLS(certificates, is_server=False) if certificates else None
        self._persistent = threading.local()
        # When a connection was last found lost; the older ones of all threads are then not reused.
        self._lost_at = 0.0

    def keys(self) -> KeyList:
        """
        Return the addresses for which the signer signs.

        Raises:
            SignerAway: the signer did not respond in time, or responded incorrectly.
        """
        try:
            return read_keys(self.request("GET", "/keys"))
        except ValueError as error:
            raise SignerAway(str(error)) from error

    def chains(self) -> list[int]:
        """
        Return the ids of the chains for which the signer signs.

        Raises:
            SignerAway: the signer did not respond in time, responded incorrectly, or is of a version without this page.
        """
        try:
            return [int(chain_id) for chain_id in json.loads(self.request("GET", "/chains"))]
        except (TypeError, ValueError) as error:
            raise SignerAway(str(error)) from error

    def sign(self, requests: Sequence[SigningRequest]) -> list[Outcome]:
        """
        Return the outcome of each request, in one round trip.

        Raises:
            SignerAway: the signer did not respond in time, or responded incorrectly; it may still have signed some.
        """
        try:
            return read_outcomes(self.request("POST", "/sign", write_requests(requests)), len(requests))
        except ValueError as error:
            raise SignerAway(str(error)) from error

    def read(self, path: str) -> str:
        """Return the text of a page: `/health` or `/metrics`."""
        return self.request("GET", path).decode()

    def request(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """
        Return the body of the response.

        Raises:
            SignerAway: the signer did not respond in time, or not with 200.
        """
        connection = self._idle_connection()
        started = time.monotonic()
        try:
            if connection is not None:
                try:
                    return self._exchange(connection, method, path, body)
                except (http.client.RemoteDisconnected, ConnectionError, TimeoutError) as error:
                    if isinstance(error, TimeoutError) and error.errno != errno.ETIMEDOUT:
                        raise
                    if time.monotonic() - started >= LOST_SECONDS:
                        self._lost_at = time.monotonic()
                    connection.close()
            # A new connection uses the current certificates.
            connection = self._persistent.connection = self._connection()
            return self._exchange(connection, method, path, body)
        except (OSError, http.client.HTTPException, ValueError) as error:
            if connection is not None:
                connection.close()
            raise SignerAway(type(error).__name__) from error

    def _idle_connection(self) -> http.client.HTTPConnection | None:
        """Return this thread's open connection, or None."""
        connection: http.client.HTTPConnection | None = getattr(self._persistent, "connection", None)
        if connection is None or connection.sock is None:
            return None
        if self._persistent.used_at <= self._lost_at:
            connection.close()
            return None
        if connection.sock.family != socket.AF_UNIX:
            connection.sock.setsockopt(*REUSED)
        return connection

    def _exchange(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None
    ) -> bytes:
        text = _response(connection, method, path, body)
        self._persistent.used_at = time.monotonic()
        return text

    def _connection(self) -> http.client.HTTPConnection:
        if self._parts.scheme == "unix":
            return _UnixConnection(self._parts.path, timeout=self._seconds)
        return _TLSConnection(
            self._parts.hostname or "",
            self._parts.port,
            timeout=self._seconds,
            context=self._tls() if self._tls else None,
        )


def _response(connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None) -> bytes:
    connection.request(method, path, body)
    response = connection.getresponse()
    text = response.read()
    if response.status != 200:
        raise ValueError(f"HTTP {response.status}")
    return text
