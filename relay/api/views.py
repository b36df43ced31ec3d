"""POST prepare, execute, quota and transactionStatus for the signed-in profile."""

from typing import Any, cast

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import ViewSet

from gateway.common.throttling import RateLimit
from relay import queries
from relay.api import schema
from relay.api.serializers import (
    ExecuteSerializer,
    PreparedSerializer,
    PrepareSerializer,
    QuotaRequestSerializer,
    QuotaSerializer,
    TransactionHashSerializer,
    TransactionStatusSerializer,
    draft_of,
    prepared_answer,
    relay_call,
)
from relay.services import preparation, quota, submission
from relay.services.acceptance import Caller
from relay.services.preflight import check_own
from users.api.authentication import SessionReadLate, VerifiedTokenAuthentication
from users.tokens import TokenHolder

# REST framework's class for it is another one than the document names.
_TOKEN: Any = [{"accessToken": []}]


class ExecuteRate(RateLimit):
    """Relay calls per user; the hold limits the spend, this limits the work."""

    setting = "RELAY_EXECUTE_RATE"


class PrepareRate(RateLimit):
    """Preparations per user; each asks the node about as much as a relay call does."""

    setting = "RELAY_PREPARE_RATE"


class ReadRate(RateLimit):
    """Readings of quota and status per user, counted with those of the ad networks."""

    setting = "RELAY_READ_RATE"


def _caller(request: Request) -> Caller:
    holder = cast("TokenHolder", request.user)
    return Caller(holder.user_id, holder.profile_address, holder.session_id)


class RelayViewSet(SessionReadLate, ViewSet):
    """What the signed-in profile asks for; its session is read together with what else the rows say."""

    authentication_classes = (VerifiedTokenAuthentication,)

    @extend_schema(
        operation_id="execute",
        tags=["relay"],
        summary="Execute a relay transaction",
        description=schema.EXECUTE_DESCRIPTION,
        auth=_TOKEN,
        request=ExecuteSerializer,
        responses={200: TransactionHashSerializer, **schema.EXECUTE},
        examples=schema.EXECUTE_EXAMPLES,
    )
    @action(detail=False, methods=["post"], throttle_classes=[ExecuteRate])
    def execute(self, request: Request) -> Response:
        """Relay a signed call and answer the hash of the transaction that carries it."""
        caller, body = _caller(request), ExecuteSerializer.read(request.data)
        if body.get("address") is not None:
            check_own(profile_address=caller.profile_address, address=body["address"])
        call = relay_call(key_manager=body["keyManagerAddress"], transaction=body["transaction"])
        transaction_hash = submission.execute(caller=caller, call=call, now=timezone.now())
        return Response({"transactionHash": transaction_hash})

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
        """Answer what is to be signed, what it would cost, and why it would be refused."""
        caller, body = _caller(request), PrepareSerializer.read(request.data)
        if body.get("address") is not None:
            check_own(profile_address=caller.profile_address, address=body["address"])
        prepared = preparation.prepare(caller=caller, draft=draft_of(body), now=timezone.now())
        return Response(prepared_answer(prepared))

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
        """Answer what is left and until when, to a controller's signature."""
        body = QuotaRequestSerializer.read(request.data)
        reading = quota.read_quota(caller=_caller(request), now=timezone.now(), **body)
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
        """Answer status and cost; the hash of any attempt names the transaction."""
        caller, body = _caller(request), TransactionHashSerializer.read(request.data)
        report = queries.transaction_report(
            user_id=caller.user_id,
            session_id=caller.session_id,
            transaction_hash=body["transactionHash"],
            now=timezone.now(),
        )
        return Response(
            {
                "status": report.status,
                "transactionSenderAddress": report.sender_address,
                "creditsUsed": report.credits_used,
                "creditsBefore": report.credits_before,
                "creditsAfter": report.credits_after,
            }
        )
