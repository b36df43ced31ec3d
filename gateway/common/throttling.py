"""Rate limits, counted in Redis."""

import functools
import logging
import time
from typing import ClassVar

from django.conf import settings
from limits import RateLimitItem, parse
from limits.storage import storage_from_string
from limits.strategies import SlidingWindowCounterRateLimiter
from redis.exceptions import RedisError
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle
from rest_framework.views import APIView

from gateway.common.errors import ServiceUnavailable, TooManyRequests
from gateway.common.http import client_network

logger = logging.getLogger(__name__)


@functools.cache
def _limiter(redis_url: str) -> SlidingWindowCounterRateLimiter:
    options = {"socket_timeout": 0.5, "socket_connect_timeout": 0.5}
    return SlidingWindowCounterRateLimiter(storage_from_string(redis_url, **options))


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
    limiter = _limiter(settings.REDIS_URL)
    try:
        if limiter.hit(rate, setting, caller):
            return None
        return float(limiter.get_window_stats(rate, setting, caller).reset_time)
    except RedisError as error:
        logger.warning("rate limit %s cannot be counted: %s", setting, type(error).__name__)
        if fails_closed:
            raise ServiceUnavailable("Requests cannot be counted right now.", retry_after=5) from error
        return None
