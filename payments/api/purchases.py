"""The endpoints that sell credits without a subscription: packs, purchases and automatic top-up."""

from datetime import datetime
from typing import Any

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.response import Response
from rest_framework.viewsets import ViewSet

from gateway.common import clock
from gateway.common.http import PRIVATE
from gateway.web.idempotency import key_header, key_of
from gateway.web.throttling import user_rate
from payments.amounts import MINIMUM_CHARGE, display_amount
from payments.api import schema
from payments.api.purchase_serializers import (
    NewPurchaseSerializer,
    PacksSerializer,
    PurchaseSerializer,
    PurchasesSerializer,
    TopUpSerializer,
    TopUpTermsSerializer,
    UndoSerializer,
)
from payments.api.serializers import DEFAULT_CURRENCY
from payments.models import AutoTopUp, Payout, Purchase
from payments.queries import (
    fixed_currency_of,
    newest_purchases,
    offered_packs,
    own_currency_of,
    rates_in_force,
)
from payments.services import purchases, top_ups, undo
from payments.services.purchases import Order
from payments.services.top_ups import Terms
from users.api.authentication import ProfileRequest
from users.models import User

PURCHASE_KEY = key_header(
    "new for every purchase; a repeat with the same key continues or returns the same purchase.",
    required=True,
)

# These read our rows alone, and nothing at Stripe.
_READS = (user_rate("DASHBOARD_RATE"),)


class PurchasesViewSet(ViewSet):
    throttle_classes = (user_rate("BILLING_RATE"),)

    @extend_schema(
        operation_id="getPacks",
        tags=["payments"],
        summary="List the packs of credits",
        description=schema.PACKS_DESCRIPTION,
        responses={200: PacksSerializer, **schema.PACKS},
        examples=schema.PACKS_EXAMPLES,
    )
    @action(detail=False, methods=["get"], url_path="packs", throttle_classes=_READS)
    def packs(self, request: ProfileRequest) -> Response:
        return Response(_offer(request.user), headers=PRIVATE)

    @extend_schema(
        operation_id="purchaseCredits",
        tags=["payments"],
        summary="Buy credits once",
        description=schema.PURCHASE_DESCRIPTION,
        parameters=[PURCHASE_KEY],
        request=NewPurchaseSerializer,
        responses={200: PurchaseSerializer, **schema.PURCHASE},
        examples=schema.PURCHASE_EXAMPLES,
    )
    @action(detail=False, methods=["post"], url_path="purchaseCredits")
    def purchase_credits(self, request: ProfileRequest) -> Response:
        key = key_of(request, required=True)
        fields = NewPurchaseSerializer.read(request.data)
        purchase = purchases.buy(user=request.user, order=order_of(fields), key=key, now=clock.now())
        return Response(PurchaseSerializer(bought(purchase)).data, headers=PRIVATE)

    @extend_schema(
        operation_id="getPurchases",
        tags=["payments"],
        summary="List the newest purchases",
        description=schema.PURCHASES_DESCRIPTION,
        responses={200: PurchasesSerializer, **schema.PACKS},
        examples=schema.PURCHASES_EXAMPLES,
    )
    @action(detail=False, methods=["get"], url_path="purchases", throttle_classes=_READS)
    def purchases(self, request: ProfileRequest) -> Response:
        now = clock.now()
        rows = [_bought(row, payout, now) for row, payout in newest_purchases(request.user)]
        return Response(PurchasesSerializer({"results": rows}).data, headers=PRIVATE)

    @extend_schema(
        operation_id="undoPurchase",
        tags=["payments"],
        summary="Undo a purchase",
        description=schema.UNDO_DESCRIPTION,
        request=UndoSerializer,
        responses={200: PurchaseSerializer, **schema.UNDO},
        examples=schema.UNDO_EXAMPLES,
    )
    @action(detail=False, methods=["post"], url_path="undoPurchase")
    def undo_purchase(self, request: ProfileRequest) -> Response:
        purchase_id = UndoSerializer.read(request.data)["purchaseId"]
        undo.undo(user=request.user, purchase_id=purchase_id, now=clock.now())
        undone = bought(Purchase.objects.get(pk=purchase_id))
        return Response(PurchaseSerializer(undone).data, headers=PRIVATE)

    @extend_schema(
        methods=["GET"],
        operation_id="getTopUp",
        tags=["payments"],
        summary="Get automatic top-up",
        description=schema.TOP_UP_DESCRIPTION,
        responses={200: TopUpSerializer, **schema.TOP_UP},
        examples=schema.TOP_UP_EXAMPLES,
    )
    @extend_schema(
        methods=["PUT"],
        operation_id="setTopUp",
        tags=["payments"],
        summary="Turn automatic top-up on or off",
        description=schema.TOP_UP_DESCRIPTION,
        request=TopUpTermsSerializer,
        responses={200: TopUpSerializer, **schema.SET_TOP_UP},
        examples=schema.TOP_UP_EXAMPLES,
    )
    @action(detail=False, methods=["get", "put"], url_path="topUp")
    def top_up(self, request: ProfileRequest) -> Response:
        if request.method == "PUT":
            _set_top_up(request.user, TopUpTermsSerializer.read(request.data))
        return Response(TopUpSerializer(_top_up_of(request.user)).data, headers=PRIVATE)


def _offer(user: User) -> dict[str, Any]:
    """Return what this user can buy."""
    fixed, own = fixed_currency_of(user), own_currency_of(user)
    rates = {
        row.currency: row.rate
        for row in sorted(rates_in_force(now=clock.now()), key=lambda row: row.currency != own)
        if row.rate is not None and fixed in {None, row.currency}
    }
    packs = [pack for pack in offered_packs() if pack.currency in rates]
    order = list(rates)
    return {
        "packs": [
            {
                "pack": pack.code,
                "currency": pack.currency,
                "cost": pack.amount_minor,
                "amount": display_amount(amount_minor=pack.amount_minor, currency=pack.currency),
                "credits": purchases.credits_of(pack, rates[pack.currency]),
                "bonusCredits": pack.bonus_credits,
            }
            for pack in sorted(packs, key=lambda pack: order.index(pack.currency))
        ],
        "currencies": [
            {
                "currency": currency,
                "minimum": MINIMUM_CHARGE[currency],
                "maximum": settings.BILLING_MAX_AMOUNT_MINOR,
                "creditsPerMajorUnit": rate.credits_per_major_unit,
            }
            for currency, rate in rates.items()
        ],
        "ownCurrency": own,
        "undoMinutes": settings.PURCHASE_UNDO_MINUTES,
    }


def order_of(fields: dict[str, Any]) -> Order:
    """Return the order that a request body describes."""
    if "pack" in fields:
        pack = purchases.offered_pack(fields["pack"])
        return Order(pack.amount_minor, pack.currency, pack)
    return Order(fields["amount"], fields["currency"] or DEFAULT_CURRENCY)


def bought(purchase: Purchase) -> dict[str, Any]:
    """Return the response body for a purchase."""
    payout = Payout.objects.filter(stripe_invoice_id=purchase.stripe_invoice_id).first()
    return _bought(purchase, payout, clock.now())


def _bought(purchase: Purchase, payout: Payout | None, now: datetime) -> dict[str, Any]:
    can_undo = payout is not None and undo.is_undoable(purchase, payout, now=now)
    return {
        "purchaseId": str(purchase.pk),
        "status": purchase.status,
        "pack": purchase.pack.code if purchase.pack else None,
        "cost": purchase.amount_minor,
        "currency": purchase.currency,
        "credits": payout.credits if payout else 0,
        "createdAt": purchase.created_at,
        "undoUntil": undo.undoable_until(purchase) if can_undo else None,
        "undo": _undo_of(payout),
    }


def _undo_of(payout: Payout | None) -> str:
    """Return the status of the payer's last attempt to undo it."""
    rows = payout.refunds.all() if payout else ()
    attempts = sorted((row for row in rows if row.hold_id), key=lambda row: row.created_at)
    return attempts[-1].status if attempts else ""


def _set_top_up(user: User, fields: dict[str, Any]) -> None:
    if not fields["enabled"]:
        top_ups.withdraw(user=user, now=clock.now())
        return
    terms = Terms(fields["threshold"], fields["pack"], fields["monthlyLimit"], fields["consent"])
    top_ups.consent(user=user, terms=terms, now=clock.now())


def _top_up_of(user: User) -> dict[str, Any]:
    row = top_ups.current_or_last(user)
    if row is None:
        return {**_NO_TOP_UP}
    bought = row.purchases.filter(status=Purchase.Status.PAID)
    return {
        "status": _status_of(row),
        "threshold": row.threshold,
        "pack": row.pack.code,
        "cost": row.amount_minor,
        "currency": row.currency,
        "monthlyLimit": row.monthly_limit_minor,
        "spentThisMonth": top_ups.spent_minor(row, now=clock.now()),
        "consent": row.consent,
        "consentedAt": row.consented_at,
        "pausedReason": row.paused_reason,
        "declineCode": row.decline_code,
        "lastPurchaseAt": bought.order_by("-finished_at").values_list("finished_at", flat=True).first(),
    }


def _status_of(row: AutoTopUp) -> str:
    if row.withdrawn_at is not None:
        return "off"
    return "on" if row.paused_at is None else "paused"


_NO_TOP_UP: dict[str, Any] = {
    "status": "off",
    "threshold": 0,
    "pack": "",
    "cost": 0,
    "currency": "",
    "monthlyLimit": 0,
    "spentThisMonth": 0,
    "consent": "",
    "consentedAt": None,
    "pausedReason": "",
    "declineCode": "",
    "lastPurchaseAt": None,
}
