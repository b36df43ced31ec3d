"""
The API of earnings.

GET /api/user/adNetworks: the signed-in user's reference at each ad network.
GET /api/user/arriving: the signed-in user's earnings that are held.
GET and POST /api/postbacks/{network}/{token}: the URL that ad networks call for an earning.
"""

from typing import Any

from django.conf import settings
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import ViewSet

from earnings.networks import ADAPTERS
from earnings.networks.base import MAX_PATH_TOKEN_LENGTH, RawRequest
from earnings.queries import FEWEST_SAMPLES, HeldBecause, HeldEarning, arriving
from earnings.services import networks, postbacks
from gateway.common import clock, errors
from gateway.common.http import PRIVATE, client_ip
from gateway.common.logging import request_id
from gateway.common.problems import problem_responses
from gateway.web.routers import WITHOUT_HEAD, ApiRouter, not_prefetched
from gateway.web.serializers import rendered
from gateway.web.throttling import user_rate
from users.api.authentication import ProfileRequest

_EXAMPLE = OpenApiExample(
    "adNetworks",
    value={
        "networks": [
            {
                "network": "tapjoy",
                "networkName": "Tapjoy",
                "kind": "OFFERWALL",
                "userReference": "4b3f9d0e6a7c4c0f9a1be2d37c5a8f10",
                "offersUrl": None,
                "holdHours": 24,
                "typicalCredits": 120,
            }
        ]
    },
    response_only=True,
)


_ARRIVING_EXAMPLE = OpenApiExample(
    "Two earnings",
    value={
        "count": 2,
        "credits": 611,
        "earnings": [
            {
                "network": "cpx-research",
                "networkName": "CPX Research",
                "credits": 11,
                "receivedAt": "2026-11-21T10:08:57.759Z",
                "arrivesAt": "2026-11-24T10:08:57.759Z",
                "heldBecause": "network-hold",
            },
            {
                "network": "tapjoy",
                "networkName": "Tapjoy",
                "credits": 600,
                "receivedAt": "2026-11-21T11:30:01.000Z",
                "arrivesAt": None,
                "heldBecause": "review",
            },
        ],
    },
    response_only=True,
)


class AdNetworkSerializer(serializers.Serializer[Any]):
    """An enabled ad network."""

    network = serializers.CharField(help_text="Code of the network.")
    networkName = serializers.CharField(source="title", help_text="Its name.")
    kind = serializers.ChoiceField(
        choices=["PUSH_ADS", "VIDEO_ADS", "OFFERWALL", "SURVEYS"],
        help_text="The credit source of its rewards.",
    )
    userReference = serializers.CharField(
        source="reference", help_text="Pass this to the network's SDK as the user's id."
    )
    offersUrl = serializers.CharField(
        source="offers_url",
        allow_null=True,
        help_text="The network's page of offers with the reference in it; null if only apps show its offers.",
    )
    holdHours = serializers.IntegerField(
        source="hold_hours", help_text="Hours until earnings can be spent; 0 for at once."
    )
    typicalCredits = serializers.IntegerField(
        source="typical_credits",
        allow_null=True,
        help_text=f"The median of its newest earnings of all users; null before there are {FEWEST_SAMPLES}.",
    )


class AdNetworksSerializer(serializers.Serializer[Any]):
    """The enabled ad networks; an object, so that it can grow."""

    networks = AdNetworkSerializer(many=True)


class HeldEarningSerializer(serializers.Serializer[Any]):
    """An earning that is held: its credits cannot be spent yet."""

    network = serializers.CharField(help_text="Name of the network, as in `adNetworks`.")
    networkName = serializers.SerializerMethodField(help_text="Name of the network to show to users.")
    credits = serializers.IntegerField(
        help_text="The held credits, less those that the network has taken back."
    )
    receivedAt = serializers.DateTimeField(source="received_at")
    arrivesAt = serializers.DateTimeField(
        source="arrives_at",
        allow_null=True,
        help_text="When it is credited, unless the network takes it back before; null for `review` and "
        "`network-paused`.",
    )
    heldBecause = serializers.ChoiceField(
        source="because",
        choices=[reason.value for reason in HeldBecause],
        help_text="`network-hold`: all earnings of the network are held at first. `earlier-reversals`: networks have "
        "taken back half of the user's earnings. `review`: it exceeds a cap, and the operator decides. "
        "`network-paused`: the operator has paused the network.",
    )

    def get_networkName(self, earning: HeldEarning) -> str:  # noqa: N802 (the name on the wire)
        adapter = ADAPTERS.get(earning.network)
        return adapter.title if adapter else earning.network


class ArrivingSerializer(serializers.Serializer[Any]):
    """The earnings that are held."""

    count = serializers.IntegerField(source="number", help_text="How many are held; the list ends after 100.")
    credits = serializers.IntegerField(
        help_text="The credits of all held earnings, also of those not listed."
    )
    earnings = HeldEarningSerializer(source="first", many=True, help_text="The first to arrive come first.")


class AdNetworkViewSet(ViewSet):
    """The data that a wallet needs to open an offerwall, a survey or a rewarded video."""

    # Shares the rate limit of quota and status reads.
    throttle_classes = (user_rate("RELAY_READ_RATE"),)

    @extend_schema(
        operation_id="adNetworks",
        tags=["user"],
        summary="List the ad networks with the user's references",
        description=(
            "A reference is opaque, permanent, and different for each network. "
            "Earnings that a network reports for it are credited to the user."
        ),
        responses={200: AdNetworksSerializer, **problem_responses(errors.NotAuthenticated)},
        examples=[_EXAMPLE],
    )
    @action(detail=False, methods=["get"], url_path="adNetworks")
    def ad_networks(self, request: ProfileRequest) -> Response:
        references = networks.references_of(user=request.user)
        body = rendered(AdNetworksSerializer, {"networks": references})
        return Response(body, headers=PRIVATE)

    @extend_schema(
        operation_id="arriving",
        tags=["user"],
        summary="List earnings that are held",
        description=(
            "Earnings that ad networks have reported and that are not in the balance yet, the first to arrive first. "
            "Credited ones are at `/api/user/earnings`."
        ),
        responses={200: ArrivingSerializer, **problem_responses(errors.NotAuthenticated)},
        examples=[_ARRIVING_EXAMPLE],
    )
    @action(detail=False)
    def arriving(self, request: ProfileRequest) -> Response:
        body = rendered(ArrivingSerializer, arriving(user_id=request.user.pk))
        return Response(body, headers=PRIVATE)


_MAX_BYTES = 16 * 1024
_KEPT_HEADERS = ("content-type", "user-agent", "x-ayetstudios-security-hash", "signature")
_MAX_HEADER_LENGTH = 300
_DESCRIPTION = """
For ad networks, which sign their requests; there is no access token. The path ends in the network's own token.
Parameters, signature and response text are defined by the network; see the page about ad networks. A repeat gets the
same response and is credited once.
"""
_ANSWERS = {
    (200, "text/plain"): OpenApiResponse(
        OpenApiTypes.STR, description="Handled, by this or an earlier request."
    ),
    (400, "text/plain"): OpenApiResponse(
        OpenApiTypes.STR, description="Refused permanently; some networks expect 403."
    ),
    (403, "text/plain"): OpenApiResponse(OpenApiTypes.STR, description="Refused permanently."),
    (503, "text/plain"): OpenApiResponse(
        OpenApiTypes.STR, description="The postback cannot be verified now. Send it again."
    ),
    **problem_responses(errors.NotFound, errors.MethodNotAllowed, errors.RequestTooLarge),
}


_DOCUMENTATION: dict[str, Any] = {
    "tags": ["ad networks"],
    "summary": "Report an earning",
    "description": _DESCRIPTION,
    "auth": [],
    "request": None,
    "responses": _ANSWERS,
}
_PATH = rf"(?P<network>[a-z0-9-]{{1,40}})/(?P<token>[A-Za-z0-9._-]{{1,{MAX_PATH_TOKEN_LENGTH}}})"


class PostbackViewSet(ViewSet):
    """Pass raw bytes and path to the service, and return its response unchanged."""

    authentication_classes = ()
    permission_classes = (AllowAny,)
    # Per sender. Postbacks pass while Redis is unavailable, because a refused reward may be lost.
    throttle_classes = (user_rate("POSTBACK_RATE"),)

    @extend_schema(operation_id="postback", **_DOCUMENTATION)
    @action(detail=False, methods=["get"], url_path=_PATH, http_method_names=WITHOUT_HEAD)
    @not_prefetched
    def receive(self, request: Request, network: str, token: str) -> HttpResponse:
        return _receive(request, network, token)

    @extend_schema(operation_id="postbackByPost", **_DOCUMENTATION)
    @receive.mapping.post
    def receive_by_post(self, request: Request, network: str, token: str) -> HttpResponse:
        return _receive(request, network, token)


def _receive(request: Request, network: str, token: str) -> HttpResponse:
    response = postbacks.receive(
        slug=network,
        request=_raw(request, token),
        now=clock.now(),
        request_id=request_id() or "",
    )
    return HttpResponse(
        response.body,
        status=response.status,
        content_type="text/plain; charset=utf-8",
        headers=PRIVATE,
    )


def _raw(request: Request, token: str) -> RawRequest:
    query = request.META.get("QUERY_STRING", "").encode("latin-1")
    body = request._request.read(_MAX_BYTES + 1)
    if len(query) > _MAX_BYTES or len(body) > _MAX_BYTES:
        raise errors.RequestTooLarge(f"A postback has at most {_MAX_BYTES} bytes.", maximumBytes=_MAX_BYTES)
    return RawRequest(
        method=request.method or "",
        # Some signatures cover the whole URL: our public URL, independent of the Host header.
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
