"""GET and POST /api/postbacks/{network}/{token}: what ad networks call when a user has earned something."""

from django.conf import settings
from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.views import APIView

from credits.networks.contract import RawRequest
from credits.services import earnings
from gateway.common import errors
from gateway.common.callers import client_ip
from gateway.common.rates import RateLimit
from gateway.common.request_ids import request_id
from gateway.common.schema import problem_responses

_MOST_BYTES = 16 * 1024
_KEPT_HEADERS = ("content-type", "user-agent", "x-ayetstudios-security-hash")
_LONGEST_HEADER = 300
_DESCRIPTION = """
For ad networks, which sign what they send; there is no access token. The path ends in the network's own token.
Parameters, signature and the text of the answer are the network's; staff find them on the page about ad networks.
A repeat is answered like the first one and credits nobody twice.
"""
_ANSWERS = {
    (200, "text/plain"): OpenApiResponse(OpenApiTypes.STR, description="Handled, now or before."),
    (400, "text/plain"): OpenApiResponse(
        OpenApiTypes.STR, description="Refused for good; some networks are told so by 403."
    ),
    (403, "text/plain"): OpenApiResponse(OpenApiTypes.STR, description="Refused for good."),
    (503, "text/plain"): OpenApiResponse(
        OpenApiTypes.STR, description="Cannot be judged now; send it again."
    ),
    **problem_responses(errors.NotFound, errors.MethodNotAllowed, errors.RequestTooLarge),
}


class PostbackRate(RateLimit):
    """Postbacks per sender. Without a counter they pass: a reward that is not taken may be lost."""

    setting = "POSTBACK_RATE"


class PostbackView(APIView):
    """The raw bytes and the path go to the service; its answer goes back as it is."""

    authentication_classes = ()
    permission_classes = (AllowAny,)
    throttle_classes = (PostbackRate,)

    @extend_schema(
        operation_id="postback",
        tags=["ad networks"],
        summary="Tell of an earning",
        description=_DESCRIPTION,
        auth=[],
        request=None,
        responses=_ANSWERS,
    )
    def get(self, request: Request, network: str, token: str) -> HttpResponse:
        """Answer in the network's own words."""
        return _receive(request, network, token)

    @extend_schema(
        operation_id="postbackByPost",
        tags=["ad networks"],
        summary="Tell of an earning",
        description=_DESCRIPTION,
        auth=[],
        request=None,
        responses=_ANSWERS,
    )
    def post(self, request: Request, network: str, token: str) -> HttpResponse:
        """Answer in the network's own words."""
        return _receive(request, network, token)


def _receive(request: Request, network: str, token: str) -> HttpResponse:
    answer = earnings.receive(
        slug=network,
        request=_raw(request, token),
        now=timezone.now(),
        request_id=request_id() or "",
    )
    return HttpResponse(
        answer.body,
        status=answer.status,
        content_type="text/plain; charset=utf-8",
        headers={"Cache-Control": "no-store"},
    )


def _raw(request: Request, token: str) -> RawRequest:
    query = request.META.get("QUERY_STRING", "").encode("latin-1")
    body = request._request.read(_MOST_BYTES + 1)
    if len(query) > _MOST_BYTES or len(body) > _MOST_BYTES:
        raise errors.RequestTooLarge(f"A postback may have {_MOST_BYTES} bytes.", maximumBytes=_MOST_BYTES)
    return RawRequest(
        method=request.method or "",
        # Some signatures cover the whole address: ours as staff gave it, whatever the Host header claims.
        url=settings.PUBLIC_URL + request.path,
        query=query,
        body=body,
        headers={
            name: request.headers[name][:_LONGEST_HEADER] for name in _KEPT_HEADERS if name in request.headers
        },
        path_token=token,
        sender=client_ip(request),
    )
