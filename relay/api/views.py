"""
How often a user may relay and read.

POST execute, quota and transactionStatus for the signed-in profile.
"""

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from gateway.common.throttling import RateLimit
from relay import queries
from relay.api import schema
from relay.api.serializers import (
    ExecuteSerializer,
    QuotaRequestSerializer,
    QuotaSerializer,
    TransactionHashSerializer,
    TransactionStatusSerializer,
    relay_call,
)
from relay.services import quota, submission
from relay.services.preflight import check_own
from users.api.authentication import profile_owner


class ExecuteRate(RateLimit):
    """Relay calls per user; the hold limits the spend, this limits the work."""

    setting = "RELAY_EXECUTE_RATE"


class ReadRate(RateLimit):
    """Readings of quota and status per user, counted with those of the ad networks."""

    setting = "RELAY_READ_RATE"


class ExecuteView(APIView):
    """Relay a signed call."""

    throttle_classes = (ExecuteRate,)

    @extend_schema(
        operation_id="execute",
        tags=["relay"],
        summary="Execute a relay transaction",
        description=schema.EXECUTE_DESCRIPTION,
        request=ExecuteSerializer,
        responses={200: TransactionHashSerializer, **schema.EXECUTE},
        examples=schema.EXECUTE_EXAMPLES,
    )
    def post(self, request: Request) -> Response:
        """Answer the hash of the transaction that carries the call."""
        user = profile_owner(request)
        body = ExecuteSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        asked = body.validated_data
        if asked.get("address") is not None:
            check_own(user=user, address=asked["address"])
        call = relay_call(key_manager=asked["keyManagerAddress"], transaction=asked["transaction"])
        return Response({"transactionHash": submission.execute(user=user, call=call, now=timezone.now())})


class QuotaView(APIView):
    """Read the credit quota with a controller's signature."""

    throttle_classes = (ReadRate,)

    @extend_schema(
        operation_id="quota",
        tags=["relay"],
        summary="Read the user's credit quota",
        description=schema.QUOTA_DESCRIPTION,
        request=QuotaRequestSerializer,
        responses={200: QuotaSerializer, **schema.QUOTA},
        examples=schema.QUOTA_EXAMPLES,
    )
    def post(self, request: Request) -> Response:
        """Answer what is left and until when."""
        user = profile_owner(request)
        body = QuotaRequestSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        found = quota.read_quota(user=user, now=timezone.now(), **body.validated_data)
        return Response(
            {
                "quota": found.available,
                "unit": "credits",
                "totalQuota": found.total,
                "resetDate": found.reset_date,
            }
        )


class TransactionStatusView(APIView):
    """Report on a relay transaction."""

    throttle_classes = (ReadRate,)

    @extend_schema(
        operation_id="transactionStatus",
        tags=["relay"],
        summary="Read the status and cost of a relay transaction",
        description=schema.STATUS_DESCRIPTION,
        request=TransactionHashSerializer,
        responses={200: TransactionStatusSerializer, **schema.STATUS},
        examples=schema.STATUS_EXAMPLES,
    )
    def post(self, request: Request) -> Response:
        """Answer status and cost; the hash of any attempt names the transaction."""
        user = profile_owner(request)
        body = TransactionHashSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        report = queries.transaction_report(
            user=user, transaction_hash=body.validated_data["transactionHash"]
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
