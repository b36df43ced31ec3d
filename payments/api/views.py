"""
The payment endpoints for the signed-in profile, and the webhook.

`POST /webhooks/stripe` is a plain Django view: it verifies and stores the raw bytes; a worker applies them.
"""

from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import re_path
from django.views.decorators.csrf import csrf_exempt
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import ViewSet

from gateway.common import clock
from gateway.common.errors import DomainError
from gateway.common.http import PRIVATE
from gateway.common.problems import json_problem, only_methods
from gateway.web.parsers import expect_json_or_nothing
from gateway.web.routers import WITHOUT_HEAD, ApiRouter, not_prefetched
from gateway.web.throttling import network_rate, user_rate
from payments.amounts import display_amount
from payments.api import schema
from payments.api.purchases import PurchasesViewSet
from payments.api.serializers import (
    DEFAULT_CURRENCY,
    CancellationSerializer,
    CancelSerializer,
    CardSerializer,
    CustomerSerializer,
    HostedPageAnswerSerializer,
    HostedPageSerializer,
    InvoiceSerializer,
    InvoicesQuerySerializer,
    InvoicesSerializer,
    ReceiptEmailSerializer,
    SetupIntentSerializer,
    SubscriptionReportSerializer,
    SubscriptionSerializer,
    UpsertSerializer,
)
from payments.api.sponsors import SponsorInvoicesViewSet, SponsorPurchasesViewSet
from payments.services import customers, events, self_service, standing, subscriptions
from payments.services.subscriptions import SubscriptionRequest
from sponsors.api.access import SPONSOR_PATH
from users.api.authentication import ProfileRequest

_IMMEDIATELY = "cancelImmediately"
_BOOLEANS = {"true": True, "false": False}


_BILLING_RATE = user_rate("BILLING_RATE")
# Rate limits of requests with which a caller could test stolen cards.
_CARD_RATES = (_BILLING_RATE, network_rate("CARD_CAPTURE_NETWORK_RATE"), user_rate("CARD_CAPTURE_RATE"))


class PaymentsViewSet(ViewSet):
    throttle_classes = (_BILLING_RATE,)

    @extend_schema(
        operation_id="createCustomer",
        tags=["payments"],
        summary="Create the customer of the user's profile",
        description=schema.CUSTOMER_DESCRIPTION,
        request=None,
        responses={200: CustomerSerializer, **schema.CUSTOMER},
        examples=schema.CUSTOMER_EXAMPLES,
    )
    @action(detail=False, methods=["post"], url_path="createCustomer")
    def create_customer(self, request: ProfileRequest) -> Response:
        user = request.user
        expect_json_or_nothing(request)
        customer = customers.ensure_customer(user=user, now=clock.now())
        return Response(
            {"walletAddress": user.profile_address, "paymentsCustomerId": customer.stripe_customer_id}
        )

    @extend_schema(
        operation_id="getSetupIntent",
        tags=["payments"],
        summary="Get a setup intent's client secret",
        description=schema.SETUP_INTENT_DESCRIPTION,
        responses={200: SetupIntentSerializer, **schema.SETUP_INTENT},
        examples=schema.SETUP_INTENT_EXAMPLES,
    )
    @action(
        detail=False,
        methods=["get"],
        url_path="getSetupIntent",
        http_method_names=WITHOUT_HEAD,
        throttle_classes=_CARD_RATES,
    )
    @not_prefetched
    def get_setup_intent(self, request: ProfileRequest) -> Response:
        secret = customers.setup_secret(user=request.user, now=clock.now())
        return Response({"clientSecret": secret}, headers=PRIVATE)

    @extend_schema(
        operation_id="upsertSubscription",
        tags=["payments"],
        summary="Insert or update the subscription",
        description=schema.UPSERT_DESCRIPTION,
        request=UpsertSerializer,
        responses={200: SubscriptionSerializer, **schema.UPSERT},
        examples=schema.UPSERT_EXAMPLES,
    )
    @action(detail=False, methods=["post"], url_path="upsertSubscription")
    def upsert_subscription(self, request: ProfileRequest) -> Response:
        fields = UpsertSerializer.read(request.data)
        subscription = subscriptions.upsert(
            user=request.user,
            request=SubscriptionRequest(
                amount_minor=fields["subscriptionCost"],
                # Null means the same as a missing member.
                currency=fields["currency"] or DEFAULT_CURRENCY,
                cancels_at_period_end=bool(fields["cancelAtEndOfBillingPeriod"]),
            ),
            now=clock.now(),
        )
        return Response(
            {
                "subscriptionId": subscription.stripe_subscription_id,
                "subscriptionFor": subscription.customer.stripe_customer_id,
                "subscriptionAmount": display_amount(
                    amount_minor=subscription.amount_minor, currency=subscription.currency
                ),
            }
        )

    @extend_schema(
        operation_id="getSubscription",
        tags=["payments"],
        summary="Get the state of the subscription",
        description=schema.REPORT_DESCRIPTION,
        responses={200: SubscriptionReportSerializer, **schema.REPORT},
        examples=schema.REPORT_EXAMPLES,
    )
    @action(detail=False, methods=["get"], url_path="subscription")
    def subscription(self, request: ProfileRequest) -> Response:
        report = standing.report(user=request.user, now=clock.now())
        return Response(SubscriptionReportSerializer(report).data, headers=PRIVATE)

    @extend_schema(
        operation_id="createCardPage",
        tags=["payments"],
        summary="Create a page at Stripe that captures a card",
        description=schema.CARD_PAGE_DESCRIPTION,
        request=HostedPageSerializer,
        responses={200: HostedPageAnswerSerializer, **schema.HOSTED_PAGE},
        examples=schema.HOSTED_PAGE_EXAMPLES,
    )
    @action(detail=False, methods=["post"], url_path="cardPage", throttle_classes=_CARD_RATES)
    def card_page(self, request: ProfileRequest) -> Response:
        return_url = HostedPageSerializer.read(request.data)["returnUrl"]
        return Response(
            {"url": self_service.card_page(user=request.user, return_url=return_url, now=clock.now())},
            headers=PRIVATE,
        )

    @extend_schema(
        operation_id="createPortalPage",
        tags=["payments"],
        summary="Create a session of Stripe's customer portal",
        description=schema.PORTAL_PAGE_DESCRIPTION,
        request=HostedPageSerializer,
        responses={200: HostedPageAnswerSerializer, **schema.HOSTED_PAGE},
        examples=schema.HOSTED_PAGE_EXAMPLES,
    )
    @action(detail=False, methods=["post"], url_path="portalPage")
    def portal_page(self, request: ProfileRequest) -> Response:
        return_url = HostedPageSerializer.read(request.data)["returnUrl"]
        return Response(
            {"url": self_service.portal_page(user=request.user, return_url=return_url, now=clock.now())},
            headers=PRIVATE,
        )

    @extend_schema(
        operation_id="getCard",
        tags=["payments"],
        summary="Get the saved card",
        description=schema.CARD_DESCRIPTION,
        responses={200: CardSerializer, **schema.CARD},
    )
    @action(detail=False, methods=["get"])
    def card(self, request: ProfileRequest) -> Response:
        card = self_service.saved_card(user=request.user, now=clock.now())
        return Response(CardSerializer({"card": card}).data, headers=PRIVATE)

    @extend_schema(
        operation_id="getInvoices",
        tags=["payments"],
        summary="List the invoices",
        description=schema.INVOICES_DESCRIPTION,
        parameters=[InvoicesQuerySerializer],
        responses={200: InvoicesSerializer, **schema.INVOICES},
        examples=schema.INVOICES_EXAMPLES,
    )
    @action(detail=False, methods=["get"], url_path="invoices")
    def invoices(self, request: ProfileRequest) -> Response:
        query = InvoicesQuerySerializer.read(request.query_params.dict())
        page = self_service.invoices(
            user=request.user, limit=query["limit"], after=query.get("after", ""), now=clock.now()
        )
        rows = InvoiceSerializer(page.invoices, many=True).data
        address = request.build_absolute_uri(request.path)
        next_page = f"{address}?limit={query['limit']}&after={page.last_id}" if page.has_more else None
        return Response({"next": next_page, "results": rows}, headers=PRIVATE)

    @extend_schema(
        methods=["GET"],
        operation_id="getReceiptEmail",
        tags=["payments"],
        summary="Get the e-mail address for receipts",
        description=schema.RECEIPT_EMAIL_DESCRIPTION,
        responses={200: ReceiptEmailSerializer, **schema.RECEIPT_EMAIL},
    )
    @extend_schema(
        methods=["POST"],
        operation_id="setReceiptEmail",
        tags=["payments"],
        summary="Set the e-mail address for receipts",
        description=schema.RECEIPT_EMAIL_DESCRIPTION,
        request=ReceiptEmailSerializer,
        responses={200: ReceiptEmailSerializer, **schema.CUSTOMER},
    )
    @action(detail=False, methods=["get", "post"], url_path="receiptEmail")
    def receipt_email(self, request: ProfileRequest) -> Response:
        if request.method != "POST":
            email = self_service.receipt_email(user=request.user, now=clock.now())
            return Response({"email": email or None}, headers=PRIVATE)
        email = ReceiptEmailSerializer.read(request.data)["email"] or ""
        self_service.set_receipt_email(user=request.user, email=email, now=clock.now())
        return Response({"email": email or None}, headers=PRIVATE)

    @extend_schema(
        operation_id="cancelSubscription",
        tags=["payments"],
        summary="Cancel the subscription",
        description=schema.CANCEL_DESCRIPTION,
        parameters=[schema.IMMEDIATELY],
        request=CancelSerializer,
        responses={200: CancellationSerializer, **schema.CANCEL},
        examples=schema.CANCEL_EXAMPLES,
    )
    @action(detail=False, methods=["delete"], url_path="cancelSubscription", schema=schema.DeleteWithBody())
    def cancel_subscription(self, request: ProfileRequest) -> Response:
        body = CancelSerializer.read(_cancellation(request))
        subscription = subscriptions.cancel(
            user=request.user,
            immediately=body["cancelImmediately"],
            now=clock.now(),
        )
        return Response(
            {
                "success": True,
                "customerIdCancelledFor": subscription.customer.stripe_customer_id,
                "cancelledInstantly": subscription.ended_at is not None,
            }
        )


def _cancellation(request: Request) -> Any:
    """
    Return the body with `cancelImmediately` added from the query, in which it must be exactly `true` or `false`.

    Raises:
        ValidationError: body and query differ; a guess could end a subscription that should continue.
    """
    body, texts = request.data, request.query_params.getlist(_IMMEDIATELY)
    if not isinstance(body, dict) or not texts:
        return body
    values = [
        *([body[_IMMEDIATELY]] if _IMMEDIATELY in body else []),
        *(_BOOLEANS.get(text, text) for text in texts),
    ]
    if any(value != values[0] for value in values):
        raise ValidationError({_IMMEDIATELY: "The body and the query string have different values."})
    return {**body, _IMMEDIATELY: values[0]}


@csrf_exempt
@only_methods("POST")
def stripe_webhook(request: HttpRequest) -> HttpResponse:
    """Return 200 once the event is stored, or 400 if Stripe did not sign the request for this service just now."""
    try:
        events.receive(
            body=request.body, signature=request.headers.get("Stripe-Signature", ""), now=clock.now()
        )
    except DomainError as error:
        return json_problem(error)
    return JsonResponse({"received": True})


router = ApiRouter()
router.register("api/payments", PaymentsViewSet, basename="payments")
router.register("api/payments", PurchasesViewSet, basename="purchases")
router.register(SPONSOR_PATH, SponsorPurchasesViewSet, basename="sponsor-purchases")
router.register(SPONSOR_PATH, SponsorInvoicesViewSet, basename="sponsor-invoices")
urlpatterns = [*router.urls, re_path(r"^webhooks/stripe/?$", stripe_webhook)]
