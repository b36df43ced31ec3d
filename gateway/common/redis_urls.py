"""
One Redis, or the one that Sentinels name at the moment, for the broker, rate limits, figures and heartbeats.

`redis+sentinel://:password@host:26379,host:26379/service` names Sentinels; the password, if any, is theirs and Redis's.
"""

import functools
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured
from redis import ConnectionPool, Redis
from redis.sentinel import Sentinel, SentinelConnectionPool

SENTINEL = "redis+sentinel"
# How long a request waits for Redis, which it can do without.
PATIENCE_SECONDS = 0.5
# Neither has types.
_Sentinel: Any = Sentinel
_SentinelPool: Any = SentinelConnectionPool


@dataclass(frozen=True)
class Sentinels:
    """Where the Sentinels are, and what they call the service."""

    places: list[tuple[str, int]]
    service: str
    password: str

    @property
    def auth(self) -> dict[str, str]:
        """The options that a client needs to log in."""
        return {"password": self.password} if self.password else {}


def sentinels(url: str) -> Sentinels | None:
    """
    Return what a URL of Sentinels says; None for one of a single Redis.

    Raises:
        ImproperlyConfigured: a Sentinel has no port, or the service no name.
    """
    parts = urlsplit(url)
    if parts.scheme != SENTINEL:
        return None
    pairs = [place.rpartition(":") for place in parts.netloc.rpartition("@")[2].split(",")]
    service = parts.path.strip("/")
    if not service or not all(host and port.isdecimal() for host, _, port in pairs):
        raise ImproperlyConfigured("REDIS_URL must name each Sentinel as host:port, and then /service.")
    return Sentinels([(host, int(port)) for host, _, port in pairs], service, unquote(parts.password or ""))


def patience() -> dict[str, Any]:
    """Return the options of a client that gives up soon."""
    return {"socket_timeout": PATIENCE_SECONDS, "socket_connect_timeout": PATIENCE_SECONDS}


def client(url: str, **options: Any) -> Any:
    """Return a client of the Redis that takes writes now."""
    return Redis(connection_pool=Pool.from_url(url, **options))


@functools.cache
def text_client(url: str) -> Any:
    """Return the process's client for small texts, which gives up soon."""
    return client(url, decode_responses=True, **patience())


class Pool(ConnectionPool):
    """Connections to the Redis that takes writes now, for libraries that make a pool from a URL."""

    @classmethod
    def from_url(cls, url: str, **options: Any) -> Any:
        """Return a pool; one of Sentinels asks them again whenever a connection is lost."""
        place = sentinels(url)
        if place is None:
            return ConnectionPool.from_url(url, **options)
        manager = _Sentinel(place.places, sentinel_kwargs={**_times(options), **place.auth})
        return _SentinelPool(place.service, manager, **place.auth, **options)


def _times(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name.startswith("socket_")}


def broker(url: str) -> tuple[str, dict[str, Any]]:
    """Return the URL as Celery wants it, and its further transport options."""
    place = sentinels(url)
    if place is None:
        return url, {}
    login = f":{quote(place.password, safe='')}@" if place.password else ""
    names = ";".join(f"sentinel://{login}{host}:{port}/0" for host, port in place.places)
    times = {"socket_timeout": 1, "socket_connect_timeout": 0.5}
    return names, {"master_name": place.service, "sentinel_kwargs": {**times, **place.auth}}
