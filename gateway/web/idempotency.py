"""The header `Idempotency-Key`."""

import re

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from gateway.common.errors import InvalidRequest

_KEY = re.compile(r"[!-~]{1,128}")
_FORM = "1 to 128 visible ASCII characters"


def key_header(meaning: str, *, required: bool = False) -> OpenApiParameter:
    """Return the OpenAPI parameter of the header; `meaning` follows the description of its form."""
    return OpenApiParameter(
        "Idempotency-Key",
        {"type": "string", "pattern": f"^{_KEY.pattern}$"},
        OpenApiParameter.HEADER,
        description=f"{_FORM}, {meaning}",
        required=required,
    )


def key_of(request: Request, *, required: bool = False) -> str:
    """
    Return the request's key; empty if it has none.

    Raises:
        InvalidRequest: the key is malformed, or missing although required.
    """
    key = request.headers.get("Idempotency-Key")
    if key is None and not required:
        return ""
    # The HTTP server passes non-ASCII bytes as an empty value, which is refused too.
    if key is None or not _KEY.fullmatch(key):
        fault = {"pointer": "", "code": "invalid", "detail": f"Send the header with {_FORM}."}
        raise InvalidRequest("Correct the header Idempotency-Key.", errors=[fault])
    return key
