"""
Clients of a single Redis, or of the current primary that Sentinels name.

`redis+sentinel://:password@host:26379,host:26379/service` names Sentinels; the optional password is for them and Redis.
"""

import functools
import socket
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured
from redis import ConnectionPool, Redis
from redis.exceptions import ReadOnlyError
from redis.sentinel import Sentinel, SentinelConnectionPool

SENTINEL = "redis+sentinel"
# The timeout of calls to Redis in requests that can continue without it.
PATIENCE_SECONDS = 0.5
# A connection that was idle for longer is replaced: a firewall may have forgotten it without a reset.
IDLE_SECONDS = 5.0
# For connections that wait for messages. One whose packets are not acknowledged ends after a second.
KEPT_OPEN = {
    "socket_keepalive": True,
    "socket_keepalive_options": {
        socket.TCP_KEEPIDLE: 60,
        socket.TCP_KEEPINTVL: 15,
        socket.TCP_KEEPCNT: 4,
        socket.TCP_USER_TIMEOUT: 1_000,
    },
}
# The parameters of a URL that Celery and the driver both honour.
_TLS_PARAMETERS = {"ssl_cert_reqs", "ssl_ca_certs", "ssl_certfile", "ssl_keyfile", "ssl_check_hostname"}
# These libraries have no types.
_Sentinel: Any = Sentinel


@dataclass(frozen=True)
class Sentinels:
    """The Sentinels' addresses, and the name of their service."""

    places: list[tuple[str, int]]
    service: str
    password: str

    @property
    def auth(self) -> dict[str, str]:
        """The options that a client needs to log in."""
        return {"password": self.password} if self.password else {}


def sentinels(url: str) -> Sentinels | None:
    """
    Parse a URL of Sentinels; return None for a single Redis.

    Raises:
        ImproperlyConfigured: a Sentinel has no port, the service has no name, or a part of the URL would be ignored.
    """
    parts = urlsplit(url)
    unused = set(parse_qs(parts.query, keep_blank_values=True))
    if parts.scheme != SENTINEL:
        unused -= _TLS_PARAMETERS if parts.scheme == "rediss" else set()
        if unused:
            raise ImproperlyConfigured(f"REDIS_URL must not have the parameter {min(unused)}.")
        return None
    if unused or parts.username:
        raise ImproperlyConfigured("REDIS_URL must have neither parameters nor a user with Sentinels.")
    pairs = [place.rpartition(":") for place in parts.netloc.rpartition("@")[2].split(",")]
    service = parts.path.strip("/")
    if not service or not all(host and port.isdecimal() for host, _, port in pairs):
        raise ImproperlyConfigured("REDIS_URL must name each Sentinel as host:port, and then /service.")
    return Sentinels([(host, int(port)) for host, _, port in pairs], service, unquote(parts.password or ""))


def patience() -> dict[str, Any]:
    """Return the options of a client with a short timeout that reconnects after its Redis was demoted."""
    return {
        "socket_timeout": PATIENCE_SECONDS,
        "socket_connect_timeout": PATIENCE_SECONDS,
        "retry_on_error": [ReadOnlyError],
    }


def client(url: str, **options: Any) -> Any:
    """Return a client of the primary Redis."""
    return Redis(connection_pool=Pool.from_url(url, **options))


@functools.cache
def text_client(url: str) -> Any:
    """Return the process's client, with a short timeout and text values."""
    return client(url, decode_responses=True, **patience())


class _Replacing:
    """A mixin of connection pools that replaces connections which were idle."""

    def get_connection(self, *arguments: Any, **options: Any) -> Any:
        """Return a connection that was used a moment ago, or a new one."""
        pool: Any = super()
        connection = pool.get_connection(*arguments, **options)
        if time.monotonic() - getattr(connection, "released_at", time.monotonic()) > IDLE_SECONDS:
            connection.disconnect()
            try:
                connection.connect()
            except BaseException:
                self.release(connection)
                raise
        return connection

    def release(self, connection: Any) -> None:
        """Return a connection to the pool, with the time from which it is idle."""
        connection.released_at = time.monotonic()
        pool: Any = super()
        pool.release(connection)


class _ReplacingSentinelPool(_Replacing, SentinelConnectionPool):
    pass


_SentinelPool: Any = _ReplacingSentinelPool


class Pool(_Replacing, ConnectionPool):
    """A connection pool to the primary Redis, for libraries that create a pool from a URL."""

    @classmethod
    def from_url(cls, url: str, **options: Any) -> Any:
        """Return a pool; with Sentinels, it asks them for the primary at each new connection."""
        place = sentinels(url)
        if place is None:
            return super().from_url(url, **options)
        manager = _Sentinel(place.places, sentinel_kwargs={**_times(options), **place.auth})
        return _SentinelPool(place.service, manager, **place.auth, **options)


def _times(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name.startswith("socket_")}


def broker(url: str) -> tuple[str, dict[str, Any]]:
    """Return the URL and the transport options for Celery."""
    place = sentinels(url)
    if place is None:
        return url, {}
    login = f":{quote(place.password, safe='')}@" if place.password else ""
    names = ";".join(f"sentinel://{login}{host}:{port}/0" for host, port in place.places)
    times = {"socket_timeout": 1, "socket_connect_timeout": 0.5}
    return names, {"master_name": place.service, "sentinel_kwargs": {**times, **place.auth}}
