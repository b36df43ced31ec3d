"""
The paths of LSP-15 under `/api/lsp15/`, as existing wallets call them.

These wallets send no token. The signature in the body authorises the request, and
the service checks it as strictly as for signed-in callers. The profile pays with its
own credits, so it must have signed in once.
"""

from functools import partial

from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import ViewSet

from gateway.chain.config import chain_in, on_chain
from gateway.common import clock
from gateway.common.http import client_network
from gateway.web.throttling import NetworkRate, check_rate
from relay.api import schema
from relay.api.serializers import (
    Lsp15ExecuteSerializer,
    Lsp15QuotaSerializer,
    QuotaRequestSerializer,
    TransactionHashSerializer,
    relay_call,
    sponsor_choice,
)
from relay.queries.prices import current_price
from relay.services.accepting import lsp15, quota, submission

# The id of a chain as a part of a path; what is no id gets the response of an unknown chain.
CHAIN_IN_PATH = "(?P<chain_id>[^/]+)"


class Lsp15Rate(NetworkRate):
    """Requests per client network, counted before the body is parsed: the profile that it names is not verified yet."""

    setting = "LSP15_RATE"


def _admit(profile: str, network: str, signer: str | None) -> None:
    """
    Count a known signer of the profile by itself, and an unknown one together with all others of its network.

    Third parties can therefore use up neither a known signer's rate limit nor, from another network, a new signer's.
    """
    if signer is None:
        check_rate("LSP15_NEW_SIGNER_RATE", f"{profile}:{network}")
    else:
        check_rate("LSP15_SIGNER_RATE", f"{profile}:{signer}")


def _admitting(profile: str, request: Request) -> lsp15.Admit:
    return partial(_admit, profile, client_network(request))


class _WithoutToken(ViewSet):
    authentication_classes = ()
    permission_classes = (AllowAny,)
    throttle_classes = (Lsp15Rate,)


class Lsp15ViewSet(_WithoutToken):
    """Relay calls and quota for wallets without a token, on the home chain."""

    @extend_schema(
        operation_id="lsp15Execute",
        tags=["LSP-15 wallets"],
        summary="Execute a relay transaction (LSP-15)",
        auth=[],
        request=Lsp15ExecuteSerializer,
        responses={200: TransactionHashSerializer, **schema.LSP15_EXECUTE},
        examples=schema.LSP15_EXECUTE_EXAMPLES,
    )
    @action(detail=False, methods=["post"])
    def execute(self, request: Request) -> Response:
        """Return the hash of the transaction that executes the call."""
        return _execute(request)

    @extend_schema(
        operation_id="lsp15Quota",
        tags=["LSP-15 wallets"],
        summary="Read the quota in gas (LSP-15)",
        auth=[],
        request=QuotaRequestSerializer,
        responses={200: Lsp15QuotaSerializer, **schema.LSP15_QUOTA},
        examples=schema.LSP15_QUOTA_EXAMPLES,
    )
    @action(detail=False, methods=["post"])
    def quota(self, request: Request) -> Response:
        """Return the available credits as gas at 1 gwei; without a paid period, there is neither a total nor an end."""
        return _quota(request)


class Lsp15OnChainViewSet(_WithoutToken):
    """The same paths for one chain. Wallets register a relayer for each chain, with one base URL."""

    @extend_schema(
        operation_id="lsp15ExecuteOnChain",
        tags=["LSP-15 wallets"],
        summary="Execute a relay transaction on a chain (LSP-15)",
        description=schema.LSP15_CHAIN_DESCRIPTION,
        auth=[],
        parameters=[schema.CHAIN_IN_PATH],
        request=Lsp15ExecuteSerializer,
        responses={200: TransactionHashSerializer, **schema.LSP15_CHAIN_EXECUTE},
        examples=schema.LSP15_EXECUTE_EXAMPLES,
    )
    @action(detail=False, methods=["post"])
    def execute(self, request: Request, chain_id: str) -> Response:
        """Return the hash of the transaction that executes the call on this chain."""
        with on_chain(chain_in(chain_id)):
            return _execute(request)

    @extend_schema(
        operation_id="lsp15QuotaOnChain",
        tags=["LSP-15 wallets"],
        summary="Read the quota in gas on a chain (LSP-15)",
        description=schema.LSP15_CHAIN_QUOTA_DESCRIPTION,
        auth=[],
        parameters=[schema.CHAIN_IN_PATH],
        request=QuotaRequestSerializer,
        responses={200: Lsp15QuotaSerializer, **schema.LSP15_CHAIN_QUOTA},
        examples=schema.LSP15_QUOTA_EXAMPLES,
    )
    @action(detail=False, methods=["post"])
    def quota(self, request: Request, chain_id: str) -> Response:
        """Return the available credits as gas at the chain's current fee."""
        with on_chain(chain_in(chain_id)):
            return _quota(request)


def _execute(request: Request) -> Response:
    body = Lsp15ExecuteSerializer.read(request.data)
    claimed = body.get("keyManagerAddress")
    # Without a key manager in the body, the service looks up the profile's; `address` is a placeholder until then.
    call = relay_call(key_manager=claimed or body["address"], transaction=body["transaction"])
    user = lsp15.owner_of_profile(
        address=body["address"],
        signers=lambda: [submission.identify(call=call)[1].controller] if claimed else [],
    )
    transaction_hash = lsp15.execute(
        user=user,
        call=call,
        key_manager=claimed,
        sponsor=sponsor_choice(body.get("sponsor"), body.get("sponsorFallback"), body.get("sponsorVoucher")),
        now=clock.now(),
        admit=_admitting(body["address"], request),
    )
    return Response({"transactionHash": transaction_hash})


def _quota(request: Request) -> Response:
    body = QuotaRequestSerializer.read(request.data)
    reading = lsp15.read_quota(
        user=lsp15.owner_of_profile(
            address=body["address"],
            signers=lambda: quota.signers_of(**body),
        ),
        timestamp=body["timestamp"],
        signature=body["signature"],
        now=clock.now(),
        admit=_admitting(body["address"], request),
    )
    gas_price_wei, credit_wei = quota.gas_price_wei(), current_price().credit_wei
    result = {"quota": reading.available * credit_wei // gas_price_wei, "unit": "gas"}
    # LSP-15 lets a server omit both. A wallet would show 0 as a used-up quota, and -1 as a day in 1969.
    if reading.has_period:
        total = reading.total * credit_wei // gas_price_wei
        result |= {"totalQuota": total, "resetDate": reading.reset_date}
    return Response(result)
