"""What every HTTP answer shares: the request id, the size cap of bodies, and rate limits."""

import functools
import json
import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from limits import RateLimitItem, parse
from limits.storage import storage_from_string
from limits.strategies import SlidingWindowCounterRateLimiter
from redis.exceptions import RedisError
from rest_framework.exceptions import ParseError
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from gateway.common.callers import client_network
from gateway.common.errors import RequestTooLarge, ServiceUnavailable, TooManyRequests

if TYPE_CHECKING:
    # REST framework imports this module while it builds APIView, whose defaults name classes of ours.
    from rest_framework.views import APIView

logger = logging.getLogger(__name__)


# Far more than any documented body nests. Deep nesting can exhaust the C stack, which no handler survives.
_MOST_BRACKETS = 256


def request_id() -> str | None:
    """Return the id of the running request, as it stands in the logs; None outside a request."""
    found = structlog.contextvars.get_contextvars().get("request_id")
    return str(found) if found else None


def request_id_header(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware: tell the caller the request id, so that support and logs speak of the same thing."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        response["X-Request-ID"] = request_id() or ""
        return response

    return middleware


class BoundedJSONParser(BaseParser):
    """
    Parse a JSON body of at most `DATA_UPLOAD_MAX_MEMORY_SIZE` bytes.

    REST framework's own parser reads the stream past Django's size cap and lets
    absurd nesting end in a 500; `NaN` and `Infinity` are not JSON. A name that an
    object has twice is refused: whoever looked at the body before us may have
    believed the other one (RFC 8259, 4).

    Raises:
        RequestTooLarge: the body is longer than the cap.
        ParseError: it is not UTF-8 or not JSON.
    """

    media_type = "application/json"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        cap = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        body = stream.read(cap + 1)
        if len(body) > cap:
            raise RequestTooLarge(f"A body may have {cap} bytes.", maximumBytes=cap)
        if body.count(b"[") + body.count(b"{") > _MOST_BRACKETS:
            raise ParseError
        try:
            return json.loads(body.decode(), parse_constant=_refuse_constant, object_pairs_hook=_members)
        except ValueError as error:
            raise ParseError from error


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("an object names a member twice")
    return members


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


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

    Subclasses name the setting that holds the rate (like `600/minute`) and say
    who is counted. With Redis away, `fails_closed` scopes answer 503 and the
    others let the request through: a quota may be read, a sign-in may not be guessed.
    """

    setting: ClassVar[str]
    fails_closed: ClassVar[bool] = False
    _reset_at: float = 0.0

    def identify(self, request: Request, view: "APIView") -> str | None:
        """Return whom to count, or None to let the request pass uncounted."""
        return (
            f"user:{request.user.pk}"
            if request.user and request.user.is_authenticated
            else client_network(request)
        )

    def allow_request(self, request: Request, view: "APIView") -> bool:
        who = self.identify(request, view)
        if who is None:
            return True
        reset_at = _count(self.setting, who, fails_closed=self.fails_closed)
        self._reset_at = reset_at or 0.0
        return reset_at is None

    def wait(self) -> float:
        return max(1.0, self._reset_at - time.time())


def admit(setting: str, who: str) -> None:
    """
    Count a caller who is known only after the body was read; `setting` holds the rate.

    Raises:
        TooManyRequests: the rate is used up.
        ServiceUnavailable: nothing can be counted, and without a token nothing else holds a caller back.
    """
    reset_at = _count(setting, who, fails_closed=True)
    if reset_at is not None:
        wait = max(1, int(reset_at - time.time())) + 1
        raise TooManyRequests(f"Repeat after {wait} seconds.", retry_after=wait)


def _count(setting: str, who: str, *, fails_closed: bool) -> float | None:
    """Return None where the request is within the rate, else the unix second at which the next one may be."""
    rate = _rate(getattr(settings, setting))
    limiter = _limiter(settings.REDIS_URL)
    try:
        if limiter.hit(rate, setting, who):
            return None
        return float(limiter.get_window_stats(rate, setting, who).reset_time)
    except RedisError as error:
        logger.warning("rate limit %s cannot be counted: %s", setting, type(error).__name__)
        if fails_closed:
            raise ServiceUnavailable("Requests cannot be counted right now.", retry_after=5) from error
        return None


class AlwaysJSON(DefaultContentNegotiation):
    """Answer JSON whatever the Accept header says: a refusal of the header would have to be JSON as well."""

    def select_renderer(self, request: Request, renderers: Any, format_suffix: Any = None) -> Any:
        return renderers[0], renderers[0].media_type
