"""Rate limits, counted in Redis."""

import functools
import logging
import threading
import time
from typing import Any, ClassVar

from django.conf import settings
from limits import RateLimitItem, parse
from limits.storage import storage_from_string
from limits.strategies import SlidingWindowCounterRateLimiter
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError, RedisError
from redis.retry import Retry
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle
from rest_framework.views import APIView

from gateway.common import redis_urls
from gateway.common.errors import ServiceUnavailable, TooManyRequests
from gateway.common.http import client_network

logger = logging.getLogger(__name__)
_OUTAGE_SECONDS = 1.0
# Of a rate of some hundreds, hits are counted in packets of a hundredth of it, so that not every request asks Redis. A
# caller whose requests are rare leaves some of a packet unused, which matters to nobody: the rate is far away.
_PACKETS_PER_RATE, _LARGEST_PACKET = 100, 20
PACKET_SECONDS = 5.0
_MOST_PACKETS = 10_000


class _Counter:
    """
    The windows in one Redis, which is asked once for each packet of hits.

    After a failure nobody asks again for a second, and then one request tries for all: while Redis
    hangs, requests must not wait for it one after the other.
    """

    def __init__(self, redis_url: str) -> None:
        options: dict[str, Any] = {
            **redis_urls.patience(),
            # For connections that a restart of Redis has closed. What timed out once would time out again.
            "retry": Retry(NoBackoff(), 1, supported_errors=(ConnectionError,)),
        }
        place = redis_urls.sentinels(redis_url)
        if place:
            # A replica knows hits a moment late.
            options |= {"use_replicas": False, **place.auth}
        self._limiter = SlidingWindowCounterRateLimiter(storage_from_string(redis_url, **options))
        self._packets = _Packets()
        self._lock = threading.Lock()
        self._retry_at = 0.0

    def count(
        self, rate: RateLimitItem, setting: str, caller: str, *, in_packets: bool = False
    ) -> float | None:
        """
        Return None if the request is within the rate, else the unix second from which the next one is.

        With `in_packets` a request may use a hit that was counted before, also while Redis is away.

        Raises:
            RedisError: Redis is away.
        """
        if in_packets and self._packets.take((setting, caller)):
            return None
        if self._retry_at:
            with self._lock:
                if time.monotonic() < self._retry_at:
                    raise ConnectionError("Redis was away a moment ago.")
                self._retry_at = time.monotonic() + _OUTAGE_SECONDS
        try:
            reset_at = self._hit(rate, setting, caller, in_packets=in_packets)
        except RedisError:
            self._retry_at = time.monotonic() + _OUTAGE_SECONDS
            raise
        self._retry_at = 0.0
        return reset_at

    def _hit(self, rate: RateLimitItem, setting: str, caller: str, *, in_packets: bool) -> float | None:
        size = min(rate.amount // _PACKETS_PER_RATE, _LARGEST_PACKET) if in_packets else 1
        if size > 1 and self._limiter.hit(rate, setting, caller, cost=size):
            self._packets.put((setting, caller), size - 1)
            return None
        if self._limiter.hit(rate, setting, caller):
            return None
        return float(self._limiter.get_window_stats(rate, setting, caller).reset_time)


class _Packets:
    """Hits that are counted in Redis already, and may be used within a few seconds without asking again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._left: dict[tuple[str, str], tuple[int, float]] = {}

    def take(self, name: tuple[str, str]) -> bool:
        """Use one of the hits, if there is any."""
        with self._lock:
            left, until = self._left.get(name, (0, 0.0))
            if not left or time.monotonic() > until:
                return False
            self._left[name] = (left - 1, until)
            return True

    def put(self, name: tuple[str, str], count: int) -> None:
        """Keep so many hits, and let go of everybody's where too many callers have some."""
        with self._lock:
            if len(self._left) >= _MOST_PACKETS:
                self._left.clear()
            self._left[name] = (count, time.monotonic() + PACKET_SECONDS)


@functools.cache
def _counter(redis_url: str) -> _Counter:
    return _Counter(redis_url)


@functools.cache
def _rate(text: str) -> RateLimitItem:
    return parse(text)


class RateLimit(BaseThrottle):
    """
    A sliding window per caller, counted atomically in Redis.

    Subclasses name the setting that holds the rate (like `600/minute`) and decide who is
    counted. While Redis is away, classes with `fails_closed` answer 503 and the others
    let the request pass: reading a quota is harmless, guessing at a sign-in is not.
    """

    setting: ClassVar[str]
    fails_closed: ClassVar[bool] = False
    _reset_at: float = 0.0

    def identify(self, request: Request, view: APIView) -> str | None:
        """Return whom to count, or None to let the request pass uncounted."""
        return (
            f"user:{request.user.pk}"
            if request.user and request.user.is_authenticated
            else client_network(request)
        )

    def allow_request(self, request: Request, view: APIView) -> bool:
        caller = self.identify(request, view)
        if caller is None:
            return True
        reset_at = _count(self.setting, caller, fails_closed=self.fails_closed)
        self._reset_at = reset_at or 0.0
        return reset_at is None

    def wait(self) -> float:
        return max(1.0, self._reset_at - time.time())


class NetworkRate(RateLimit):
    """A rate per network, for paths without a user; requests that cannot be counted are refused."""

    fails_closed = True

    def identify(self, request: Request, view: APIView) -> str | None:
        return client_network(request)


def user_rate(setting: str) -> type[RateLimit]:
    """Return the throttle of the rate that this setting holds, per user."""
    return type("UserRate", (RateLimit,), {"setting": setting})


def network_rate(setting: str) -> type[NetworkRate]:
    """Return the throttle of the rate that this setting holds, per network."""
    return type("NetworkRate", (NetworkRate,), {"setting": setting})


def check_rate(setting: str, caller: str) -> None:
    """
    Count a caller who is known only after the body was read; `setting` holds the rate.

    Raises:
        TooManyRequests: the rate is used up.
        ServiceUnavailable: requests cannot be counted, and without a token nothing else limits a caller.
    """
    reset_at = _count(setting, caller, fails_closed=True)
    if reset_at is not None:
        wait = max(1, int(reset_at - time.time())) + 1
        raise TooManyRequests(f"Repeat after {wait} seconds.", retry_after=wait)


def _count(setting: str, caller: str, *, fails_closed: bool) -> float | None:
    """Return None if the request is within the rate, else the unix second from which the next one is."""
    rate = _rate(getattr(settings, setting))
    try:
        return _counter(settings.REDIS_URL).count(rate, setting, caller, in_packets=not fails_closed)
    except RedisError as error:
        logger.warning("rate limit %s cannot be counted: %s", setting, type(error).__name__)
        if fails_closed:
            raise ServiceUnavailable("Requests cannot be counted right now.", retry_after=5) from error
        return None
