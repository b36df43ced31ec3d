"""POST prepare, execute, quota and transactionStatus for the signed-in profile, and GET a transaction."""

from contextlib import AbstractContextManager
from typing import Any, cast
from uuid import UUID

from django.conf import settings
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import ViewSet

from gateway.chain.config import home, on_chain
from gateway.common import clock
from gateway.common.errors import InvalidRequest
from gateway.web.routers import ApiRouter
from gateway.web.serializers import json_response
from gateway.web.throttling import RateLimit
from gateway.web.waiting import Wait
from relay.api import schema
from relay.api.copies import CopyViewSet
from relay.api.lsp15 import CHAIN_IN_PATH, Lsp15OnChainViewSet, Lsp15ViewSet
from relay.api.profiles import SponsorProfileViewSet, UniversalProfileViewSet
from relay.api.serializers import (
    ExecuteSerializer,
    PreparedSerializer,
    PrepareSerializer,
    QuotaRequestSerializer,
    QuotaSerializer,
    TransactionHashSerializer,
    TransactionQuerySerializer,
    TransactionStatusSerializer,
    WaitSerializer,
    changed_statuses,
    draft_of,
    prepared_body,
    relay_call,
    sponsor_choice,
    status_body,
)
from relay.queries.reports import transaction_report
from relay.services.accepting import preparation, quota, submission
from relay.services.accepting.calls import Caller
from relay.services.accepting.preflight import check_own
from sponsors.api.access import SPONSOR_PATH
from sponsors.rules.vouchers import MOST_CHARACTERS
from sponsors.services.paying import SponsorChoice
from users.api.authentication import SessionReadLate, VerifiedTokenAuthentication
from users.tokens import TokenHolder

# The OpenAPI document names the token's scheme differently from REST framework's class.
_TOKEN: Any = [{"accessToken": []}]


class ExecuteRate(RateLimit):
    """Relay calls per user. The hold limits what a user spends; this rate limits the work of checking calls."""

    setting = "RELAY_EXECUTE_RATE"


class PrepareRate(RateLimit):
    """Preparations per user; each costs about as many node reads as a relay call."""

    setting = "RELAY_PREPARE_RATE"


class ReadRate(RateLimit):
    """Reads of quota and status per user, counted together with those of earnings."""

    setting = "RELAY_READ_RATE"


def _caller(request: Request) -> Caller:
    holder = cast("TokenHolder", request.user)
    return Caller(holder.pk, holder.profile_address, holder.session_id)


_QUOTE_HEADER = OpenApiParameter(
    "Relay-Quote",
    OpenApiTypes.UUID,
    OpenApiParameter.HEADER,
    description="The `id` of a quote from prepare for this call: the call then costs at most the quote.",
)


def _quote_id(request: Request) -> UUID | None:
    text = request.META.get("HTTP_RELAY_QUOTE")
    try:
        return None if text is None else UUID(text)
    except ValueError:
        fault = {
            "pointer": "",
            "code": "invalid",
            "detail": "Send the id of a quote, as returned by prepare.",
        }
        raise InvalidRequest("Correct the header Relay-Quote.", errors=[fault]) from None


_SPONSOR_HEADERS = [
    OpenApiParameter(
        "Relay-Sponsor",
        OpenApiTypes.STR,
        OpenApiParameter.HEADER,
        description="The name of a sponsor that is to pay for the call. A quote decides by itself who pays.",
    ),
    OpenApiParameter(
        "Relay-Sponsor-Fallback",
        OpenApiTypes.STR,
        OpenApiParameter.HEADER,
        enum=["user"],
        description="`user`: the user pays if the sponsor does not. Without it, the call is refused.",
    ),
    OpenApiParameter(
        "Relay-Sponsor-Voucher",
        OpenApiTypes.STR,
        OpenApiParameter.HEADER,
        description="The sponsor's voucher, for policies that want one. A voucher pays for one call.",
    ),
]


def _sponsor(request: Request) -> SponsorChoice | None:
    name, fallback, voucher = (
        request.META.get(f"HTTP_RELAY_SPONSOR{which}") for which in ("", "_FALLBACK", "_VOUCHER")
    )
    # A header whose value is not ASCII arrives as an empty one.
    is_named = name is None or 0 < len(name) <= 40
    is_voucher = voucher is None or 0 < len(voucher) <= MOST_CHARACTERS
    if not is_named or not is_voucher or fallback not in {None, "user"}:
        detail = (
            "Send Relay-Sponsor and Relay-Sponsor-Voucher in ASCII, and `user` as Relay-Sponsor-Fallback."
        )
        fault = {"pointer": "", "code": "invalid", "detail": detail}
        raise InvalidRequest("Correct the headers that name a sponsor.", errors=[fault])
    return sponsor_choice(name, fallback, voucher)


def _on_chain_in(body: dict[str, Any]) -> AbstractContextManager[None]:
    chain_id = body.get("chainId")
    return on_chain(home().id if chain_id is None else chain_id)


class RelayViewSet(SessionReadLate, ViewSet):
    """Relay requests of the signed-in profile; each action reads the session together with its other rows."""

    authentication_classes = (VerifiedTokenAuthentication,)

    @extend_schema(
        operation_id="execute",
        tags=["relay"],
        summary="Execute a relay transaction",
        description=schema.EXECUTE_DESCRIPTION,
        auth=_TOKEN,
        request=ExecuteSerializer,
        parameters=[_QUOTE_HEADER, *_SPONSOR_HEADERS],
        responses={200: TransactionHashSerializer, **schema.EXECUTE},
        examples=schema.EXECUTE_EXAMPLES,
    )
    @action(detail=False, methods=["post"], throttle_classes=[ExecuteRate])
    def execute(self, request: Request) -> HttpResponse:
        """Relay a signed call and return the hash of the transaction that executes it."""
        caller, body = _caller(request), ExecuteSerializer.read(request.data)
        call = relay_call(key_manager=body["keyManagerAddress"], transaction=body["transaction"])
        with _on_chain_in(body):
            if body.get("address") is not None:
                check_own(
                    profile_address=caller.profile_address,
                    address=body["address"],
                    signers=lambda: [submission.identify(call=call)[1].controller],
                )
            transaction_hash = submission.execute(
                caller=caller,
                call=call,
                now=clock.now(),
                quote_id=_quote_id(request),
                sponsor=_sponsor(request),
            )
        return json_response({"transactionHash": transaction_hash})

    @extend_schema(
        operation_id="prepare",
        tags=["relay"],
        summary="Prepare a relay transaction",
        description=schema.PREPARE_DESCRIPTION,
        auth=_TOKEN,
        request=PrepareSerializer,
        responses={200: PreparedSerializer, **schema.PREPARE},
        examples=schema.PREPARE_EXAMPLES,
    )
    @action(detail=False, methods=["post"], throttle_classes=[PrepareRate])
    def prepare(self, request: Request) -> Response:
        """Return the call to sign, its cost, and the reasons for which it would be refused."""
        caller, body = _caller(request), PrepareSerializer.read(request.data)
        if body.get("address") is not None:
            check_own(
                profile_address=caller.profile_address,
                address=body["address"],
                signers=lambda: [body["controller"]] if body.get("controller") else [],
            )
        with _on_chain_in(body):
            prepared = preparation.prepare(caller=caller, draft=draft_of(body), now=clock.now())
            return Response(prepared_body(prepared))

    @extend_schema(
        operation_id="quota",
        tags=["relay"],
        summary="Read the user's credit quota",
        description=schema.QUOTA_DESCRIPTION,
        auth=_TOKEN,
        request=QuotaRequestSerializer,
        responses={200: QuotaSerializer, **schema.QUOTA},
        examples=schema.QUOTA_EXAMPLES,
    )
    @action(detail=False, methods=["post"], throttle_classes=[ReadRate])
    def quota(self, request: Request) -> Response:
        """Return the quota, authorised by a controller's signature."""
        body = QuotaRequestSerializer.read(request.data)
        reading = quota.read_quota(caller=_caller(request), now=clock.now(), **body)
        return Response(
            {
                "quota": reading.available,
                "unit": "credits",
                "totalQuota": reading.total,
                "resetDate": reading.reset_date,
            }
        )

    @extend_schema(
        operation_id="transactionStatus",
        tags=["relay"],
        summary="Read the status and cost of a relay transaction",
        description=schema.STATUS_DESCRIPTION,
        auth=_TOKEN,
        request=TransactionHashSerializer,
        responses={200: TransactionStatusSerializer, **schema.STATUS},
        examples=schema.STATUS_EXAMPLES,
    )
    @action(detail=False, methods=["post"], url_path="transactionStatus", throttle_classes=[ReadRate])
    def transaction_status(self, request: Request) -> Response:
        """Return status and cost; the hash of any attempt identifies the transaction."""
        caller, body = _caller(request), TransactionHashSerializer.read(request.data)
        report = transaction_report(
            user_id=caller.user_id,
            session_id=caller.session_id,
            transaction_hash=body["transactionHash"],
            now=clock.now(),
        )
        return Response(status_body(report))

    @extend_schema(
        operation_id="transaction",
        tags=["relay"],
        summary="Wait for the status of a relay transaction",
        description=schema.WAIT_DESCRIPTION,
        auth=_TOKEN,
        parameters=[schema.HASH_IN_PATH, WaitSerializer],
        responses={200: TransactionStatusSerializer, **schema.WAIT},
        examples=[example for example in schema.STATUS_EXAMPLES if not example.request_only],
    )
    @action(
        detail=False,
        methods=["get"],
        url_path="transactions/(?P<transaction_hash>[^/]+)",
        throttle_classes=[ReadRate],
    )
    def transaction(self, request: Request, transaction_hash: str) -> HttpResponse:
        """Return status and cost; with `wait`, once the status has changed."""
        caller, sent = _caller(request), request.query_params.dict()
        query = TransactionQuerySerializer.read({**sent, "transactionHash": transaction_hash})
        report = transaction_report(
            user_id=caller.user_id,
            session_id=caller.session_id,
            transaction_hash=query["transactionHash"],
            now=clock.now(),
        )
        response = json_response(status_body(report))
        seconds = min(query["wait"], settings.RELAY_WAIT_SECONDS)
        if seconds and report.is_in_progress:
            wait = Wait(caller.user_id, seconds, (report.id, report.status), changed_statuses)
            response.wait = wait  # type: ignore[attr-defined] # for the server, which delays the response
        return response


router = ApiRouter()
router.register("api", UniversalProfileViewSet, basename="universal-profile")
router.register(SPONSOR_PATH, SponsorProfileViewSet, basename="sponsor-profiles")
router.register("api/relay", RelayViewSet, basename="relay")
router.register("api/relay", CopyViewSet, basename="copies")
router.register("api/lsp15", Lsp15ViewSet, basename="lsp15")
router.register(f"api/lsp15/{CHAIN_IN_PATH}", Lsp15OnChainViewSet, basename="lsp15-on-chain")

urlpatterns = router.urls
