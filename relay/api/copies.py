"""POST /api/relay/copyProfile: deploy the signed-in profile on another chain, at the same addresses."""

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import ViewSet

from credits.errors import InsufficientCredits
from gateway.chain.config import on_chain
from gateway.chain.errors import ChainUnknown, UnrecoverableSignature
from gateway.chain.lsp23 import MOST_DATA_BYTES, PostDeploymentRefused
from gateway.chain.signatures import MOST_BYTES
from gateway.common import clock
from gateway.common.errors import NotAuthenticated
from gateway.common.logging import request_id
from gateway.common.problems import BODY_ERRORS, problem_responses
from gateway.web.serializers import AddressField, BodySerializer, HexField, StrictIntegerField
from gateway.web.throttling import user_rate
from relay import errors
from relay.api.profiles import ControllerSerializer
from relay.models import RelayStatus
from relay.services import copying
from relay.services.accepting.calls import Caller
from relay.services.accepting.deployments import controllers_body
from relay.services.copying import FirstDeployment
from users.api.authentication import SessionReadLate, VerifiedTokenAuthentication
from users.errors import UntrustedCode

_TOKEN: Any = [{"accessToken": []}]


class FirstDeploymentSerializer(BodySerializer):
    """The salt and the data with which the profile was deployed first."""

    salt = HexField(min_bytes=32, max_bytes=32)
    postDeploymentCallData = HexField(min_bytes=1, max_bytes=MOST_DATA_BYTES)


class CopyRequestSerializer(BodySerializer):
    chainId = StrictIntegerField(min_value=1, help_text="The chain that gets the copy; not the home chain.")
    firstDeployment = FirstDeploymentSerializer(
        required=False,
        allow_null=True,
        help_text="Needed only after 422 `first-deployment-unknown`.",
    )
    removalSignature = HexField(
        min_bytes=64,
        max_bytes=MOST_BYTES,
        required=False,
        help_text="Needed only after 409 `copy-needs-removal`.",
    )


class CopySerializer(serializers.Serializer[Any]):
    """A profile on another chain."""

    universalProfileAddress = AddressField()
    keyManagerAddress = AddressField()
    chainId = serializers.IntegerField()
    status = serializers.ChoiceField(
        choices=RelayStatus.choices, help_text="`ExecutedExternally`: the copy existed already."
    )
    transactionHash = serializers.CharField(
        allow_null=True, help_text="For `transactionStatus`. Null if the copy existed already."
    )
    controllers = ControllerSerializer(many=True, help_text="Everybody who can act for the copy at first.")


class CopyViewSet(SessionReadLate, ViewSet):
    authentication_classes = (VerifiedTokenAuthentication,)

    @extend_schema(
        operation_id="copyProfile",
        tags=["relay"],
        summary="Copy the profile to another chain",
        description="Deploys the signed-in profile on another chain, at the same addresses, for the user's credits. A "
        "copy begins with the controllers of the first deployment. If the home chain has taken permissions from one of "
        "them, the copy takes them in the same transaction, for which another controller signs. Anybody can deploy a "
        "copy with the same data; it then belongs to the same controllers.",
        auth=_TOKEN,
        request=CopyRequestSerializer,
        responses={
            200: CopySerializer,
            **problem_responses(
                *BODY_ERRORS,
                NotAuthenticated,
                InsufficientCredits,
                ChainUnknown,
                PostDeploymentRefused,
                UntrustedCode,
                UnrecoverableSignature,
                errors.CopyAtHome,
                errors.CopyNeedsRemoval,
                errors.CopyTaken,
                errors.CopyUnsafe,
                errors.FirstDeploymentUnknown,
                errors.CreationOff,
                errors.DeploymentRefused,
                errors.GasLimitExceeded,
                errors.PaidCreditsNeeded,
                errors.RelayPaused,
                errors.ChainTakesNoCalls,
                errors.ChainPriceOutdated,
                errors.RelayersBusy,
                errors.RelayersEmpty,
                errors.RelayShareUsed,
            ),
        },
        examples=[OpenApiExample("To Base", value={"chainId": 8453}, request_only=True)],
    )
    @action(
        detail=False,
        methods=["post"],
        url_path="copyProfile",
        throttle_classes=[user_rate("RELAY_PREPARE_RATE")],
    )
    def copy_profile(self, request: Request) -> Response:
        """Return the copy's addresses and controllers, and the hash of the transaction that deploys it."""
        holder: Any = request.user
        body, first = CopyRequestSerializer.read(request.data), None
        if sent := body.get("firstDeployment"):
            first = FirstDeployment(sent["salt"], sent["postDeploymentCallData"])
        with on_chain(body["chainId"]):
            made = copying.copy(
                caller=Caller(holder.pk, holder.profile_address, holder.session_id),
                first=first,
                removal_signature=body.get("removalSignature", b""),
                now=clock.now(),
                request_id=request_id() or "",
            )
        relayed = made.relayed
        return Response(
            {
                "universalProfileAddress": made.addresses.profile,
                "keyManagerAddress": made.addresses.key_manager,
                "chainId": body["chainId"],
                "status": relayed.status if relayed else RelayStatus.EXECUTED_EXTERNALLY,
                "transactionHash": relayed.transaction_hash if relayed else None,
                "controllers": controllers_body(made.controllers),
            }
        )
