"""The dashboard and the histories of the signed-in profile."""

import re
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer, ValidationError
from rest_framework.viewsets import GenericViewSet, ViewSet

from credits.models import CreditEntry
from gateway.common.clock import now
from gateway.common.db import reading_from_replica
from gateway.common.http import PRIVATE
from gateway.web.pagination import NewestFirst
from gateway.web.routers import ApiRouter
from gateway.web.serializers import rendered
from gateway.web.throttling import user_rate
from portal.api import schema
from portal.api.page import PageViewSet
from portal.api.serializers import (
    AccountResponseSerializer,
    DashboardSerializer,
    DatedEarningSerializer,
    DatedTransactionSerializer,
    DeletionResponseSerializer,
    ProfileResponseSerializer,
    ServiceResponseSerializer,
    dashboard_members,
)
from portal.api.sponsors import PreviewViewSet, SponsorCallViewSet, SponsorContractViewSet
from portal.dashboard import Dashboard, account_summary_of, dashboard_of, earnings_of, relayer_url
from relay.models import RelayTransaction
from relay.queries.chains import chain_states
from relay.queries.prices import current_prices
from relay.queries.reports import ListedTransaction, transactions_of
from sponsors.api.access import SPONSOR_PATH
from users.api.authentication import ProfileRequest
from users.models import User
from users.services import deletion, profile_cards

_CHAIN_ID = re.compile(r"[0-9]{1,18}", re.ASCII)


class EarningPages(NewestFirst):
    ordering = "-account_version"


class TransactionPages(NewestFirst):
    ordering = "-id"


class DashboardViewSet(ViewSet):
    throttle_classes = (user_rate("DASHBOARD_RATE"),)

    @extend_schema(
        operation_id="dashboardInfo",
        tags=["user"],
        summary="Read the dashboard",
        description=schema.DASHBOARD_DESCRIPTION,
        responses={200: DashboardSerializer, **schema.DASHBOARD},
        examples=schema.DASHBOARD_EXAMPLES,
    )
    @action(detail=False, url_path="dashboardInfo")
    def info(self, request: ProfileRequest) -> Response:
        dashboard = _recent_dashboard(request.user)
        body = rendered(
            DashboardSerializer,
            dashboard_members(dashboard),
            profile_address=request.user.profile_address,
        )
        return Response(body, headers=PRIVATE)

    @extend_schema(
        operation_id="account",
        tags=["user"],
        summary="Read a summary of balance, quota and badges",
        description=schema.ACCOUNT_DESCRIPTION,
        responses={200: AccountResponseSerializer, **schema.DASHBOARD},
        examples=schema.ACCOUNT_EXAMPLES,
    )
    @action(detail=False)
    def account(self, request: ProfileRequest) -> Response:
        summary = account_summary_of(user=request.user, now=now())
        return Response(rendered(AccountResponseSerializer, summary), headers=PRIVATE)

    @extend_schema(
        operation_id="deleteAccount",
        tags=["user"],
        summary="Delete the account",
        description=schema.DELETE_ACCOUNT_DESCRIPTION,
        responses={200: DeletionResponseSerializer, **schema.DELETE_ACCOUNT},
        examples=schema.DELETE_ACCOUNT_EXAMPLES,
    )
    @account.mapping.delete
    def delete_account(self, request: ProfileRequest) -> Response:
        response = deletion.request(user=request.user, session=request.auth.session, now=now())
        return Response(rendered(DeletionResponseSerializer, response), headers=PRIVATE)

    @extend_schema(
        operation_id="profile",
        tags=["user"],
        summary="Read the name and picture of the profile",
        description=schema.PROFILE_DESCRIPTION,
        responses={200: ProfileResponseSerializer, **schema.DASHBOARD},
        examples=schema.PROFILE_EXAMPLES,
    )
    @action(detail=False)
    def profile(self, request: ProfileRequest) -> Response:
        card = profile_cards.card_of(request.user)
        body = {"name": card.name if card else "", "picture": profile_cards.picture_uri(card)}
        return Response(rendered(ProfileResponseSerializer, body), headers=PRIVATE)


def _recent_dashboard(user: User) -> Dashboard:
    try:
        with reading_from_replica():
            return dashboard_of(user=user, now=now())
    except User.DoesNotExist:  # the standby may lag behind a first sign-in
        return dashboard_of(user=user, now=now())


class ServiceViewSet(ViewSet):
    @extend_schema(
        operation_id="service",
        tags=["user"],
        summary="Read the service's chain and settings",
        description=schema.SERVICE_DESCRIPTION,
        auth=[],
        responses={200: ServiceResponseSerializer, **schema.SERVICE},
        examples=schema.SERVICE_EXAMPLES,
    )
    @action(detail=False, authentication_classes=(), permission_classes=(AllowAny,))
    def service(self, request: Request) -> Response:
        prices = current_prices()
        served = [
            {
                "chainId": chain.id,
                "name": chain.name,
                "currency": chain.currency,
                "creditWei": str(prices[chain.id].credit_wei),
                "creditWeiFrom": int(prices[chain.id].valid_from.timestamp()),
                "explorerUrl": chain.explorer_url,
                "relayerUrl": relayer_url(chain.id),
                "state": state.value,
            }
            for chain, state in chain_states()
        ]
        of_home = {name: value for name, value in served[0].items() if name not in {"name", "state"}}
        body = {**of_home, "billingCurrencies": settings.BILLING_CURRENCIES, "chains": served}
        return Response(body, headers={"Cache-Control": "public, max-age=30"})


class _HistoryViewSet(ListModelMixin, GenericViewSet[Any]):
    throttle_classes = (user_rate("DASHBOARD_RATE"),)
    request: ProfileRequest

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        with reading_from_replica():
            return super().list(request, *args, **kwargs)

    def get_serializer_context(self) -> dict[str, Any]:
        return {
            **super().get_serializer_context(),
            "profile_address": self.request.user.profile_address,
        }

    def finalize_response(self, request: Any, response: Any, *args: Any, **kwargs: Any) -> Any:
        finalized = super().finalize_response(request, response, *args, **kwargs)
        finalized["Cache-Control"] = "no-store"
        return finalized


@extend_schema_view(
    list=extend_schema(
        operation_id="earnings",
        tags=["user"],
        summary="List earnings",
        description=schema.EARNINGS_DESCRIPTION,
        responses={200: DatedEarningSerializer(many=True), **schema.HISTORY},
    )
)
class EarningViewSet(_HistoryViewSet):
    pagination_class = EarningPages
    serializer_class: type[Serializer[Any]] = DatedEarningSerializer

    def get_queryset(self) -> QuerySet[CreditEntry]:
        return earnings_of(self.request.user)


def _chain_id(text: str) -> int:
    if not _CHAIN_ID.fullmatch(text):
        raise ValidationError({"chainId": ["Send the id of a chain."]})
    return int(text)


@extend_schema_view(
    list=extend_schema(
        operation_id="transactions",
        tags=["user"],
        summary="List relay transactions",
        description=schema.TRANSACTIONS_DESCRIPTION,
        parameters=[schema.CHAIN_FILTER],
        responses={200: DatedTransactionSerializer(many=True), **schema.HISTORY},
    )
)
class TransactionViewSet(_HistoryViewSet):
    pagination_class = TransactionPages
    serializer_class: type[Serializer[Any]] = DatedTransactionSerializer

    def get_queryset(self) -> QuerySet[RelayTransaction, ListedTransaction]:
        listed, text = transactions_of(self.request.user), self.request.query_params.get("chainId")
        return listed if text is None else listed.filter(chain_id=_chain_id(text))


router = ApiRouter()
router.register("api", ServiceViewSet, basename="service")
router.register("api/user", DashboardViewSet, basename="dashboard")
router.register("api/user", PageViewSet, basename="page")
router.register("api/user/earnings", EarningViewSet, basename="earnings")
router.register("api/user/transactions", TransactionViewSet, basename="transactions")
router.register(SPONSOR_PATH, SponsorContractViewSet, basename="sponsor-contracts")
router.register(SPONSOR_PATH, SponsorCallViewSet, basename="sponsor-calls")
router.register(SPONSOR_PATH, PreviewViewSet, basename="sponsor-preview")
urlpatterns = router.urls
