"""Rate limits, counted in Redis."""

import functools
import logging
import threading
import time
from typing import Any, ClassVar

from django.conf import settings
from limits import RateLimitItem, parse
from limits.storage import RedisStorage
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
# High rates are counted in packets of a hundredth of the rate, so that not every request needs Redis. A caller with few
# requests leaves part of a packet unused; this is harmless, because such a caller is far below the rate.
_PACKETS_PER_RATE, _LARGEST_PACKET = 100, 20
PACKET_SECONDS = 5.0
_MOST_PACKETS = 10_000


class _Counter:
    """
    The windows in one Redis, which is called once for each packet of hits.

    After a failure Redis is not called for one second; then a single request tries again. Otherwise every request would
    wait for the timeout while Redis hangs.
    """

    def __init__(self, redis_url: str) -> None:
        options: dict[str, Any] = {
            **redis_urls.patience(),
            # Retry only on a connection that a restart of Redis has closed, never after a timeout.
            "retry": Retry(NoBackoff(), 1, supported_errors=(ConnectionError,)),
        }
        pool = redis_urls.Pool.from_url(redis_url, **options)
        self._limiter = SlidingWindowCounterRateLimiter(RedisStorage("redis://", connection_pool=pool))
        self._packets = _Packets()
        self._lock = threading.Lock()
        self._retry_at = 0.0

    def count(
        self, rate: RateLimitItem, setting: str, caller: str, *, in_packets: bool = False
    ) -> float | None:
        """
        Return None if the request is within the rate, else the unix time at which the next request will be.

        With `in_packets`, a request may use a hit that was counted before, even while Redis is unavailable.

        Raises:
            RedisError: Redis is unavailable.
        """
        if in_packets and self._packets.take((setting, caller)):
            return None
        if self._retry_at:
            with self._lock:
                if time.monotonic() < self._retry_at:
                    raise ConnectionError("Redis was unavailable less than a second ago.")
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
    """Hits that are already counted in Redis and can be used locally for a few seconds."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._left: dict[tuple[str, str], tuple[int, float]] = {}

    def take(self, name: tuple[str, str]) -> bool:
        """Use one of the hits, if any is left."""
        with self._lock:
            left, until = self._left.get(name, (0, 0.0))
            if not left or time.monotonic() > until:
                return False
            self._left[name] = (left - 1, until)
            return True

    def put(self, name: tuple[str, str], count: int) -> None:
        """Store `count` hits; if too many callers have some, drop all of them first."""
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

    Subclasses name the setting with the rate (such as `600/minute`) and define the key that is counted. While Redis is
    unavailable, classes with `fails_closed` return 503, and the others let requests pass: unlimited reads of a quota
    are harmless, but unlimited guesses at a sign-in are not.
    """

    setting: ClassVar[str]
    fails_closed: ClassVar[bool] = False
    _reset_at: float = 0.0

    def identify(self, request: Request, view: APIView) -> str | None:
        """Return the key to count, or None to let the request pass uncounted."""
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
    """A rate per network, for paths without a user; requests are refused while Redis is unavailable."""

    fails_closed = True

    def identify(self, request: Request, view: APIView) -> str | None:
        return client_network(request)


def user_rate(setting: str) -> type[RateLimit]:
    """Return a throttle per user with the rate of this setting."""
    return type("UserRate", (RateLimit,), {"setting": setting})


def network_rate(setting: str) -> type[NetworkRate]:
    """Return a throttle per network with the rate of this setting."""
    return type("NetworkRate", (NetworkRate,), {"setting": setting})


def check_rate(setting: str, caller: str) -> None:
    """
    Count a caller who is known only after the body was parsed; `setting` is the name of the rate's setting.

    Raises:
        TooManyRequests: the rate is exceeded.
        ServiceUnavailable: Redis is unavailable; without a token, nothing else limits a caller.
    """
    reset_at = _count(setting, caller, fails_closed=True)
    if reset_at is not None:
        wait = max(1, int(reset_at - time.time())) + 1
        raise TooManyRequests(f"Retry after {wait} seconds.", retry_after=wait)


def _count(setting: str, caller: str, *, fails_closed: bool) -> float | None:
    """Return None if the request is within the rate, else the unix time at which the next request will be."""
    rate = _rate(getattr(settings, setting))
    try:
        return _counter(settings.REDIS_URL).count(rate, setting, caller, in_packets=not fails_closed)
    except RedisError as error:
        logger.warning("rate limit %s cannot be counted: %s", setting, type(error).__name__)
        if fails_closed:
            raise ServiceUnavailable("Requests cannot be counted right now.", retry_after=5) from error
        return None
