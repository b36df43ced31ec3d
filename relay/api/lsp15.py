"""
The paths that existing wallets know: LSP-15 under `/api/lsp15/`.

Such wallets carry no token. The signature over the body is the authorisation,
and it is checked as strictly as for the token's owner; credits are those of the
profile, which must have signed in once.
"""

from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from gateway.common.callers import client_network
from gateway.common.http import RateLimit
from gateway.common.owner import ProfileOwner
from relay.api import examples, refusals
from relay.api.serializers import (
    Lsp15ExecuteSerializer,
    QuotaRequestSerializer,
    QuotaSerializer,
    TransactionHashSerializer,
    relay_call,
)
from relay.errors import ProfileNotRegistered
from relay.services import execution, key_managers, quota

_GWEI = 10**9


class WalletRate(RateLimit):
    """Counted by address of the caller's machine: the body's profile is only a claim."""

    setting = "RELAY_EXECUTE_RATE"

    def identify(self, request: Request, view: APIView) -> str | None:
        return f"lsp15:{client_network(request)}"


def registered_owner(address: str) -> ProfileOwner:
    """Return the user of the profile, who must have signed in before."""
    user: Any = get_user_model().objects.filter(profile_address=address, is_active=True).first()
    if user is None:
        raise ProfileNotRegistered(f"{address} has never signed in here.", profile=address)
    owner: ProfileOwner = user
    return owner


class Lsp15ExecuteView(APIView):
    """Relay a signed call for a wallet without a token."""

    authentication_classes = ()
    permission_classes = (AllowAny,)
    throttle_classes = (WalletRate,)

    @extend_schema(
        operation_id="lsp15Execute",
        tags=["LSP-15 wallets"],
        summary="Execute a relay transaction (LSP-15)",
        auth=[],
        request=Lsp15ExecuteSerializer,
        responses={200: TransactionHashSerializer, **refusals.LSP15_EXECUTE},
        examples=examples.LSP15_EXECUTE,
    )
    def post(self, request: Request) -> Response:
        """Answer the hash of the transaction that carries the call."""
        body = Lsp15ExecuteSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        asked = body.validated_data
        user = registered_owner(asked["address"])
        key_manager = key_managers.of_profile(profile=asked["address"])
        call = relay_call(key_manager=key_manager, transaction=asked["transaction"])
        return Response({"transactionHash": execution.execute(user=user, call=call, now=timezone.now())})


class Lsp15QuotaView(APIView):
    """Read the quota in gas, the unit that wallets render."""

    authentication_classes = ()
    permission_classes = (AllowAny,)
    throttle_classes = (WalletRate,)

    @extend_schema(
        operation_id="lsp15Quota",
        tags=["LSP-15 wallets"],
        summary="Read the quota in gas (LSP-15)",
        auth=[],
        request=QuotaRequestSerializer,
        responses={200: QuotaSerializer, **refusals.LSP15_QUOTA},
        examples=examples.LSP15_QUOTA,
    )
    def post(self, request: Request) -> Response:
        """Answer what is left, as gas at 1 gwei."""
        body = QuotaRequestSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        user = registered_owner(body.validated_data["address"])
        found = quota.read_quota(user=user, now=timezone.now(), **body.validated_data)
        return Response(
            {
                "quota": _as_gas(found.available),
                "unit": "gas",
                "totalQuota": _as_gas(found.total),
                "resetDate": found.reset_date,
            }
        )


def _as_gas(credits: int) -> int:
    return credits * settings.CREDIT_WEI // _GWEI
