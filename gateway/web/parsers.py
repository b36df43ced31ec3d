"""How the API reads and answers: bounded JSON bodies, JSON answers, and the methods of OPTIONS."""

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from django.conf import settings
from rest_framework.metadata import BaseMetadata
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.request import Request

from gateway.common.errors import InvalidRequest, RequestTooLarge

if TYPE_CHECKING:
    # REST framework imports this module while it builds APIView, whose defaults name classes of ours.
    from rest_framework.views import APIView


# Far more than any documented body has. Deep nesting can exhaust the C stack, which no handler survives.
_MAX_BRACKETS = 256
# Of a name that the caller chose, in a detail.
_MAX_SHOWN = 64


class BoundedJSONParser(BaseParser):
    """
    Parse a JSON body of at most `DATA_UPLOAD_MAX_MEMORY_SIZE` bytes.

    REST framework's own parser ignores Django's size cap, and absurd nesting makes it
    answer 500; `NaN` and `Infinity` are not JSON. An object that has a name twice is
    refused: a proxy that read the body before us may have taken the other value (RFC 8259, 4).

    Raises:
        RequestTooLarge: the body is longer than the cap.
        InvalidRequest: it is not UTF-8 or not JSON, or one of the exceptions above; the detail says which.
    """

    media_type = "application/json"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        cap = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        # The server does not read a body that says it is longer.
        is_longer = int(parser_context["request"].META.get("CONTENT_LENGTH") or 0) > cap
        body = b"" if is_longer else stream.read(cap + 1)
        if is_longer or len(body) > cap:
            raise RequestTooLarge(f"A body may have {cap} bytes.", maximumBytes=cap)
        if body.count(b"[") + body.count(b"{") > _MAX_BRACKETS:
            raise InvalidRequest(f"The body has more than {_MAX_BRACKETS} objects and lists.")
        try:
            return json.loads(
                body.decode(), parse_int=_whole, parse_constant=_refuse_constant, object_pairs_hook=_members
            )
        except ValueError as error:
            raise InvalidRequest("The body is not valid JSON.") from error


def expect_json_or_nothing(request: Request) -> None:
    """
    Refuse a body that is not JSON, where nothing is read of it: every POST takes JSON alone.

    Raises:
        InvalidRequest, UnsupportedMediaType, RequestTooLarge: the body is neither JSON nor empty.
    """
    _ = request.data


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        [(twice, _)] = Counter(name for name, _ in pairs).most_common(1)
        raise InvalidRequest(f"An object has the member {_shown(twice)} twice.")
    return members


def _whole(digits: str) -> int:
    try:
        return int(digits)
    except ValueError as error:
        raise InvalidRequest("A number of the body has thousands of digits.") from error


def _refuse_constant(name: str) -> None:
    raise InvalidRequest(f"{name} is not JSON.")


def _shown(name: str) -> str:
    return json.dumps(name[:_MAX_SHOWN])


class AlwaysJSON(DefaultContentNegotiation):
    """Answer JSON whatever the Accept header says: refusing the header would take a JSON answer as well."""

    def select_renderer(self, request: Request, renderers: Any, format_suffix: Any = None) -> Any:
        return renderers[0], renderers[0].media_type


class MethodsOnly(BaseMetadata):
    """Names the methods of a path, and nothing from inside: the API is described at `/api/openapi.json`."""

    def determine_metadata(self, request: Request, view: "APIView") -> dict[str, Any]:
        return {"methods": view.allowed_methods}
