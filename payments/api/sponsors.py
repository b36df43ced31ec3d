"""
Endpoints with which a sponsor's members buy credits for it, and list the invoices of these purchases.

POST /api/sponsors/{name}/purchases: charge the member's card; the sponsor gets the credits.
GET /api/sponsors/{name}/invoices: the sponsor's paid invoices, page by page; with an id, Stripe's page and PDF.
"""

from dataclasses import replace
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from gateway.common import clock
from gateway.common.errors import NotFound
from gateway.common.http import PRIVATE
from gateway.web.idempotency import key_of
from gateway.web.pagination import NewestFirst
from gateway.web.serializers import AddressField
from gateway.web.throttling import user_rate
from payments.api import schema
from payments.api.purchase_serializers import NewPurchaseSerializer, PurchaseSerializer
from payments.api.purchases import PURCHASE_KEY, bought, order_of
from payments.api.serializers import InvoiceSerializer, UnixTimeField
from payments.models import Payout
from payments.queries import paid_for_sponsor
from payments.services import purchases
from payments.stripe import get_billing_client
from sponsors.api.access import SponsorViewSet


class SponsorInvoiceSerializer(serializers.Serializer[Any]):
    """A paid invoice of a purchase for a sponsor. Amounts are in minor units, times in unix seconds."""

    invoiceId = serializers.CharField(source="stripe_invoice_id")
    number = serializers.CharField(source="invoice_number")
    payer = AddressField(
        source="user.profile_address", allow_null=True, help_text="Null once the account is deleted."
    )
    currency = serializers.CharField()
    total = serializers.IntegerField(source="charged_minor", help_text="Charged, including tax.")
    tax = serializers.IntegerField(source="tax_minor")
    returned = serializers.IntegerField(source="returned_minor", help_text="By refunds and disputes.")
    credits = serializers.IntegerField()
    creditsTakenBack = serializers.IntegerField(source="taken_back", help_text="For returned money.")
    createdAt = UnixTimeField(source="created_at")


class InvoicePages(NewestFirst):
    ordering = "-pk"


class SponsorPurchasesViewSet(SponsorViewSet):
    throttle_classes = (user_rate("BILLING_RATE"),)

    @extend_schema(
        operation_id="purchaseSponsorCredits",
        tags=["sponsors"],
        summary="Buy credits for a sponsor",
        description=schema.SPONSOR_PURCHASE_DESCRIPTION,
        parameters=[PURCHASE_KEY],
        request=NewPurchaseSerializer,
        responses={200: PurchaseSerializer, **schema.SPONSOR_PURCHASE},
        examples=schema.PURCHASE_EXAMPLES,
    )
    @action(detail=False, methods=["post"], url_path="purchases")
    def buy(self, request: Request, name: str) -> Response:
        payer, key = self.access.payer(), key_of(request, required=True)
        order = order_of(NewPurchaseSerializer.read(request.data))
        purchase = purchases.buy(
            user=payer,
            order=replace(order, sponsor=self.access.sponsor),
            key=key,
            now=clock.now(),
        )
        return Response(PurchaseSerializer(bought(purchase)).data, headers=PRIVATE)


class SponsorInvoicesViewSet(SponsorViewSet, GenericViewSet[Payout]):
    throttle_classes = (user_rate("BILLING_RATE"),)
    pagination_class = InvoicePages
    serializer_class = SponsorInvoiceSerializer

    @extend_schema(
        operation_id="sponsorInvoices",
        tags=["sponsors"],
        summary="List what was paid for a sponsor, page by page",
        responses={200: SponsorInvoiceSerializer(many=True), **schema.SPONSOR_INVOICES},
    )
    @action(detail=False, url_path="invoices")
    def invoices(self, request: Request, name: str) -> Response:
        page = self.paginate_queryset(paid_for_sponsor(self.access.sponsor)) or ()
        response = self.get_paginated_response(SponsorInvoiceSerializer(page, many=True).data)
        return Response(response.data, headers=PRIVATE)

    @extend_schema(
        operation_id="sponsorInvoice",
        tags=["sponsors"],
        summary="Get Stripe's page and PDF of an invoice of a sponsor",
        description="Read at Stripe. Anyone with an invoice's URL can open it.",
        responses={200: InvoiceSerializer, **schema.SPONSOR_INVOICE},
    )
    @action(detail=False, url_path=r"invoices/(?P<invoice_id>in_[A-Za-z0-9]{1,100})", pagination_class=None)
    def invoice(self, request: Request, name: str, invoice_id: str) -> Response:
        if not paid_for_sponsor(self.access.sponsor).filter(stripe_invoice_id=invoice_id).exists():
            raise NotFound("The sponsor has no such invoice.")
        summary = get_billing_client().invoice_summary(invoice_id=invoice_id)
        return Response(InvoiceSerializer(summary).data, headers=PRIVATE)
