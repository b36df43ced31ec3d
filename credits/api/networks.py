"""GET /api/user/adNetworks: under which name each ad network knows the signed-in user."""

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from credits.services import network_users
from gateway.common import errors
from gateway.common.owner import profile_owner
from gateway.common.rates import RateLimit
from gateway.common.schema import problem_responses

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


class ReferencesRate(RateLimit):
    """Readings of the references per user, counted with those of quota and status."""

    setting = "RELAY_READ_RATE"


class AdNetworksView(APIView):
    """What a wallet needs to open an offerwall, a survey or a rewarded video."""

    throttle_classes = (ReferencesRate,)

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
    def get(self, request: Request) -> Response:
        """Answer the enabled networks."""
        known = network_users.references_of(user=profile_owner(request))
        answer = AdNetworksSerializer({"networks": known})
        return Response(answer.data, headers={"Cache-Control": "no-store"})
