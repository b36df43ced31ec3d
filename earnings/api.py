"""
The API of earnings.

GET /api/user/adNetworks: by which reference each ad network knows the signed-in user.
GET and POST /api/postbacks/{network}/{token}: what ad networks call when a user has earned something.
"""

from typing import Any

from django.conf import settings
from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import ViewSet

from earnings.networks.base import MAX_PATH_TOKEN_LENGTH, RawRequest
from earnings.services import networks, postbacks
from gateway.common import errors
from gateway.common.http import PRIVATE, client_ip
from gateway.common.logging import request_id
from gateway.common.problems import problem_responses
from gateway.web.routers import ApiRouter
from gateway.web.serializers import rendered
from gateway.web.throttling import user_rate
from users.api.authentication import ProfileRequest

_EXAMPLE = OpenApiExample(
    "adNetworks",
    value={
        "networks": [
            {"network": "tapjoy", "kind": "OFFERWALL", "userReference": "4b3f9d0e6a7c4c0f9a1be2d37c5a8f10"}
        ]
    },
    response_only=True,
)


class AdNetworkSerializer(serializers.Serializer[Any]):
    """An ad network that rewards users here."""

    network = serializers.CharField(help_text="Name of the network.")
    kind = serializers.ChoiceField(
        choices=["PUSH_ADS", "VIDEO_ADS", "OFFERWALL", "SURVEYS"],
        help_text="The credit source of its rewards.",
    )
    userReference = serializers.CharField(
        source="reference", help_text="Give the network's SDK this as the user's id, and nothing else."
    )


class AdNetworksSerializer(serializers.Serializer[Any]):
    """The enabled ad networks; an object, so that it can grow."""

    networks = AdNetworkSerializer(many=True)


class AdNetworkViewSet(ViewSet):
    """What a wallet needs to open an offerwall, a survey or a rewarded video."""

    # Counted with readings of quota and status.
    throttle_classes = (user_rate("RELAY_READ_RATE"),)

    @extend_schema(
        operation_id="adNetworks",
        tags=["user"],
        summary="List the ad networks and the user's name at each",
        description=(
            "A reference is opaque, differs from network to network and never changes. "
            "Earnings that a network reports for it are the user's."
        ),
        responses={200: AdNetworksSerializer, **problem_responses(errors.NotAuthenticated)},
        examples=[_EXAMPLE],
    )
    @action(detail=False, methods=["get"], url_path="adNetworks")
    def ad_networks(self, request: ProfileRequest) -> Response:
        references = networks.references_of(user=request.user)
        answer = rendered(AdNetworksSerializer, {"networks": references})
        return Response(answer, headers=PRIVATE)


_MAX_BYTES = 16 * 1024
_KEPT_HEADERS = ("content-type", "user-agent", "x-ayetstudios-security-hash", "signature")
_MAX_HEADER_LENGTH = 300
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


_DOCUMENTATION: dict[str, Any] = {
    "tags": ["ad networks"],
    "summary": "Tell of an earning",
    "description": _DESCRIPTION,
    "auth": [],
    "request": None,
    "responses": _ANSWERS,
}
_PATH = rf"(?P<network>[a-z0-9-]{{1,40}})/(?P<token>[A-Za-z0-9._-]{{1,{MAX_PATH_TOKEN_LENGTH}}})"


class PostbackViewSet(ViewSet):
    """The raw bytes and the path go to the service; its answer goes back as it is."""

    authentication_classes = ()
    permission_classes = (AllowAny,)
    # Per sender. Without a counter they pass: a reward that is not taken may be lost.
    throttle_classes = (user_rate("POSTBACK_RATE"),)

    @extend_schema(operation_id="postback", **_DOCUMENTATION)
    @action(detail=False, methods=["get"], url_path=_PATH)
    def receive(self, request: Request, network: str, token: str) -> HttpResponse:
        return _receive(request, network, token)

    @extend_schema(operation_id="postbackByPost", **_DOCUMENTATION)
    @receive.mapping.post
    def receive_by_post(self, request: Request, network: str, token: str) -> HttpResponse:
        return _receive(request, network, token)


def _receive(request: Request, network: str, token: str) -> HttpResponse:
    answer = postbacks.receive(
        slug=network,
        request=_raw(request, token),
        now=timezone.now(),
        request_id=request_id() or "",
    )
    return HttpResponse(
        answer.body,
        status=answer.status,
        content_type="text/plain; charset=utf-8",
        headers=PRIVATE,
    )


def _raw(request: Request, token: str) -> RawRequest:
    query = request.META.get("QUERY_STRING", "").encode("latin-1")
    body = request._request.read(_MAX_BYTES + 1)
    if len(query) > _MAX_BYTES or len(body) > _MAX_BYTES:
        raise errors.RequestTooLarge(f"A postback may have {_MAX_BYTES} bytes.", maximumBytes=_MAX_BYTES)
    return RawRequest(
        method=request.method or "",
        # Some signatures cover the whole address: ours as staff gave it, whatever the Host header claims.
        url=settings.PUBLIC_URL + request.path,
        query=query,
        body=body,
        headers={
            name: request.headers[name][:_MAX_HEADER_LENGTH]
            for name in _KEPT_HEADERS
            if name in request.headers
        },
        path_token=token,
        sender=client_ip(request),
    )


router = ApiRouter()
router.register("api/postbacks", PostbackViewSet, basename="postbacks")
router.register("api/user", AdNetworkViewSet, basename="ad-networks")
urlpatterns = router.urls
