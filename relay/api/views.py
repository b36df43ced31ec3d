"""POST execute, quota and transactionStatus for the signed-in profile."""

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from gateway.common.owner import profile_owner
from relay import queries
from relay.api import examples, refusals
from relay.api.serializers import (
    ExecuteSerializer,
    QuotaRequestSerializer,
    QuotaSerializer,
    TransactionHashSerializer,
    TransactionStatusSerializer,
    relay_call,
)
from relay.api.throttles import ExecuteRate, ReadRate
from relay.services import execution, quota
from relay.services.ownership import check_own


class ExecuteView(APIView):
    """Relay a signed call."""

    throttle_classes = (ExecuteRate,)

    @extend_schema(
        operation_id="execute",
        tags=["relay"],
        summary="Execute a relay transaction",
        description=examples.EXECUTE_DESCRIPTION,
        request=ExecuteSerializer,
        responses={200: TransactionHashSerializer, **refusals.EXECUTE},
        examples=examples.EXECUTE,
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
        return Response({"transactionHash": execution.execute(user=user, call=call, now=timezone.now())})


class QuotaView(APIView):
    """Read the credit quota with a controller's signature."""

    throttle_classes = (ReadRate,)

    @extend_schema(
        operation_id="quota",
        tags=["relay"],
        summary="Read the user's credit quota",
        description=examples.QUOTA_DESCRIPTION,
        request=QuotaRequestSerializer,
        responses={200: QuotaSerializer, **refusals.QUOTA},
        examples=examples.QUOTA,
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
        description=examples.STATUS_DESCRIPTION,
        request=TransactionHashSerializer,
        responses={200: TransactionStatusSerializer, **refusals.STATUS},
        examples=examples.STATUS,
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
