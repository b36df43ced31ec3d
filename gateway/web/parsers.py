"""How the API parses and renders: bounded JSON bodies, JSON responses, and the methods of OPTIONS."""

import json
from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from django.conf import settings
from rest_framework.metadata import BaseMetadata
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.request import Request

from gateway.common.errors import InvalidRequest, RequestTooLarge
from gateway.common.fields import SAFE_INTEGER_MAX

if TYPE_CHECKING:
    # REST framework imports this module while it builds APIView, whose defaults name classes of this module.
    from rest_framework.views import APIView


# Far more than in any documented body. Deep nesting could exhaust the C stack and crash the process.
_MAX_BRACKETS = 256
# The length to which an error's detail cuts a member's name.
_MAX_SHOWN = 64


class BoundedJSONParser(BaseParser):
    """
    Parse a JSON body of at most `DATA_UPLOAD_MAX_MEMORY_SIZE` bytes.

    REST framework's own parser ignores Django's size cap, returns 500 to deep nesting, and accepts `NaN` and
    `Infinity`. A duplicate name in an object is refused, because a proxy may have used the other value (RFC 8259, 4).
    `2550.0` is the same number as `2550` (RFC 8259, 6), so fields for whole numbers accept it. Half of a surrogate pair
    is refused (RFC 8259, 8.2).

    Raises:
        RequestTooLarge: the body is longer than the cap.
        InvalidRequest: the body is not UTF-8 or not JSON, or contains one of the above; the detail names it.
    """

    media_type = "application/json"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        cap = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        # The server does not read a body whose Content-Length is larger.
        is_longer = int(parser_context["request"].META.get("CONTENT_LENGTH") or 0) > cap
        body = b"" if is_longer else stream.read(cap + 1)
        if is_longer or len(body) > cap:
            raise RequestTooLarge(f"A body can have at most {cap} bytes.", maximumBytes=cap)
        if body.count(b"[") + body.count(b"{") > _MAX_BRACKETS:
            raise InvalidRequest(f"The body has more than {_MAX_BRACKETS} objects and arrays.")
        try:
            parsed = json.loads(
                body.decode(),
                parse_int=_whole,
                parse_float=_number,
                parse_constant=_refuse_constant,
                object_pairs_hook=_members,
            )
        except ValueError as error:
            raise InvalidRequest("The body is not valid JSON.") from error
        if b"\\u" in body:
            _require_unicode(parsed)
        return parsed


def _require_unicode(parsed: Any) -> None:
    """Refuse half of a surrogate pair, which JSON can escape, and which neither UTF-8 nor PostgreSQL can hold."""
    try:
        json.dumps(parsed, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise InvalidRequest("A text in the body has half of a surrogate pair.") from error


def expect_json_or_nothing(request: Request) -> None:
    """
    Refuse a body that is not JSON, for views that ignore the body: every POST accepts only JSON.

    Raises:
        InvalidRequest, UnsupportedMediaType, RequestTooLarge: the body is neither JSON nor empty.
    """
    _ = request.data


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        [(twice, _)] = Counter(name for name, _ in pairs).most_common(1)
        raise InvalidRequest(f"An object has two members named {_shown(twice)}.")
    return members


def _whole(digits: str) -> int:
    try:
        return int(digits)
    except ValueError as error:
        raise InvalidRequest("A number in the body has too many digits.") from error


def _number(text: str) -> int | float:
    """Return a number written with a fraction or exponent; an `int` if it is a whole number that a double can hold."""
    number = float(text)
    if not -SAFE_INTEGER_MAX <= number <= SAFE_INTEGER_MAX or not number.is_integer():
        return number
    # A double drops small fractions of large numbers.
    return int(number) if Decimal(text) == int(number) else number


def _refuse_constant(name: str) -> None:
    raise InvalidRequest(f"{name} is not JSON.")


def _shown(name: str) -> str:
    return json.dumps(name[:_MAX_SHOWN])


class AlwaysJSON(DefaultContentNegotiation):
    """Always render JSON and ignore the Accept header; an error about the header would be JSON as well."""

    def select_renderer(self, request: Request, renderers: Any, format_suffix: Any = None) -> Any:
        return renderers[0], renderers[0].media_type


class MethodsOnly(BaseMetadata):
    """Respond to OPTIONS with the methods of a path only; `/api/openapi.json` describes the API."""

    def determine_metadata(self, request: Request, view: "APIView") -> dict[str, Any]:
        return {"methods": view.allowed_methods}
