"""GET dashboardInfo, earnings and transactions of the signed-in profile."""

from typing import Any

from django.db.models import QuerySet
from django.utils.timezone import now
from drf_spectacular.utils import extend_schema
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer
from rest_framework.views import APIView

from credits.models import CreditEntry
from gateway.common.pagination import NewestFirst
from portal.api import schema
from portal.api import schema as examples
from portal.api.serializers import (
    DashboardSerializer,
    DatedEarningSerializer,
    DatedTransactionSerializer,
    on_the_wire,
)
from portal.dashboard import dashboard_of, earnings_of
from relay.models import RelayTransaction
from relay.queries import transactions_of
from users.api.authentication import profile_owner
from users.api.views import DashboardRate

_PRIVATE = {"Cache-Control": "no-store"}


class DashboardView(APIView):
    throttle_classes = (DashboardRate,)

    @extend_schema(
        operation_id="dashboardInfo",
        tags=["user"],
        summary="Read everything a wallet shows of its user",
        description=examples.DASHBOARD_DESCRIPTION,
        responses={200: DashboardSerializer, **schema.DASHBOARD},
        examples=examples.DASHBOARD_EXAMPLES,
    )
    def get(self, request: Request) -> Response:
        """Answer credits, badges, modifiers, histories and what a check-in may give."""
        user = profile_owner(request)
        found = dashboard_of(user=user, now=now())
        shown = DashboardSerializer(on_the_wire(found), context={"profile_address": user.profile_address})
        return Response(shown.data, headers=_PRIVATE)


class _HistoryView(ListAPIView[Any]):
    throttle_classes = (DashboardRate,)
    pagination_class = NewestFirst

    def get_serializer_context(self) -> dict[str, Any]:
        return {
            **super().get_serializer_context(),
            "profile_address": profile_owner(self.request).profile_address,
        }

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        answer = super().finalize_response(request, response, *args, **kwargs)
        answer["Cache-Control"] = "no-store"
        return answer


class EarningPages(NewestFirst):
    ordering = "-account_version"


class TransactionPages(NewestFirst):
    ordering = "-id"


class EarningsView(_HistoryView):
    pagination_class = EarningPages
    serializer_class: type[Serializer[Any]] = DatedEarningSerializer

    @extend_schema(
        operation_id="earnings",
        tags=["user"],
        summary="Read what was earned, page by page",
        description=examples.EARNINGS_DESCRIPTION,
        responses={200: DatedEarningSerializer(many=True), **schema.HISTORY},
    )
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Answer a page of entries."""
        return super().get(request, *args, **kwargs)

    def get_queryset(self) -> QuerySet[CreditEntry]:
        return earnings_of(profile_owner(self.request))


class TransactionsView(_HistoryView):
    pagination_class = TransactionPages
    serializer_class: type[Serializer[Any]] = DatedTransactionSerializer

    @extend_schema(
        operation_id="transactions",
        tags=["user"],
        summary="Read relay transactions, page by page",
        description=examples.TRANSACTIONS_DESCRIPTION,
        responses={200: DatedTransactionSerializer(many=True), **schema.HISTORY},
    )
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Answer a page of transactions."""
        return super().get(request, *args, **kwargs)

    def get_queryset(self) -> QuerySet[RelayTransaction]:
        return transactions_of(profile_owner(self.request))
