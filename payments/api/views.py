"""
createCustomer, getSetupIntent, upsertSubscription and cancelSubscription for the signed-in profile.

POST /webhooks/stripe: the raw bytes are checked and stored; a worker does the rest.
"""

from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from gateway.common.errors import DomainError
from gateway.common.parsers import expect_json_or_nothing
from gateway.common.problems import for_methods, json_problem
from gateway.common.throttling import RateLimit
from payments.amounts import display_amount
from payments.api import schema as payments_api_schema
from payments.api.schema import IMMEDIATELY, DeleteWithBody
from payments.api.serializers import (
    DEFAULT_CURRENCY,
    CancellationSerializer,
    CancelSerializer,
    CustomerSerializer,
    SetupIntentSerializer,
    SubscriptionSerializer,
    UpsertSerializer,
)
from payments.services import customers, events, subscriptions
from users.api.authentication import profile_owner

_IMMEDIATELY = "cancelImmediately"
_SPELLINGS = {"true": True, "false": False}


class BillingRate(RateLimit):
    """Changes of a subscription per user; each one asks Stripe."""

    setting = "BILLING_RATE"


class BillingView(APIView):
    """What the four paths share."""

    throttle_classes = (BillingRate,)


class CreateCustomerView(BillingView):
    """The user's customer record."""

    @extend_schema(
        operation_id="createCustomer",
        tags=["payments"],
        summary="Create the customer of the user's profile",
        description=payments_api_schema.CUSTOMER_DESCRIPTION,
        request=None,
        responses={200: CustomerSerializer, **payments_api_schema.CUSTOMER},
        examples=payments_api_schema.CUSTOMER_EXAMPLES,
    )
    def post(self, request: Request) -> Response:
        """Answer the customer; the same one however often it is asked for."""
        user = profile_owner(request)
        expect_json_or_nothing(request)
        customer = customers.ensure_customer(user=user, now=timezone.now())
        return Response(
            {"walletAddress": user.profile_address, "paymentsCustomerId": customer.stripe_customer_id}
        )


class SetupIntentView(BillingView):
    """A secret to capture a card with. Without HEAD, which Django would answer by making one that nobody sees."""

    http_method_names = ["get", "options"]

    @extend_schema(
        operation_id="getSetupIntent",
        tags=["payments"],
        summary="Get a setup intent's client secret",
        description=payments_api_schema.SETUP_INTENT_DESCRIPTION,
        responses={200: SetupIntentSerializer, **payments_api_schema.SETUP_INTENT},
        examples=payments_api_schema.SETUP_INTENT_EXAMPLES,
    )
    def get(self, request: Request) -> Response:
        """Answer a fresh client secret; it must not be stored or logged."""
        secret = customers.setup_secret(user=profile_owner(request), now=timezone.now())
        return Response({"clientSecret": secret}, headers={"Cache-Control": "no-store"})


class UpsertSubscriptionView(BillingView):
    """Begin or change the monthly subscription."""

    @extend_schema(
        operation_id="upsertSubscription",
        tags=["payments"],
        summary="Insert or update the subscription",
        description=payments_api_schema.UPSERT_DESCRIPTION,
        request=UpsertSerializer,
        responses={200: SubscriptionSerializer, **payments_api_schema.UPSERT},
        examples=payments_api_schema.UPSERT_EXAMPLES,
    )
    def post(self, request: Request) -> Response:
        """Answer the subscription as it runs now."""
        body = UpsertSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        asked = body.validated_data
        wish = subscriptions.Wish(
            amount_minor=asked["subscriptionCost"],
            # Null is as good as left out.
            currency=asked["currency"] or DEFAULT_CURRENCY,
            cancels_at_period_end=bool(asked["cancelAtEndOfBillingPeriod"]),
        )
        found = subscriptions.upsert(user=profile_owner(request), wish=wish, now=timezone.now())
        return Response(
            {
                "subscriptionId": found.stripe_subscription_id,
                "subscriptionFor": found.customer.stripe_customer_id,
                "subscriptionAmount": display_amount(
                    amount_minor=found.amount_minor, currency=found.currency
                ),
            }
        )


class CancelSubscriptionView(BillingView):
    """End the monthly subscription."""

    schema = DeleteWithBody()

    @extend_schema(
        operation_id="cancelSubscription",
        tags=["payments"],
        summary="Cancel the subscription",
        description=payments_api_schema.CANCEL_DESCRIPTION,
        parameters=[IMMEDIATELY],
        request=CancelSerializer,
        responses={200: CancellationSerializer, **payments_api_schema.CANCEL},
        examples=payments_api_schema.CANCEL_EXAMPLES,
    )
    def delete(self, request: Request) -> Response:
        """Answer what was cancelled. Some proxies drop the body of a DELETE, so a query parameter will do."""
        body = CancelSerializer(data=_cancellation(request))
        body.is_valid(raise_exception=True)
        immediately = body.validated_data["cancelImmediately"]
        found = subscriptions.cancel(user=profile_owner(request), immediately=immediately, now=timezone.now())
        return Response(
            {
                "success": True,
                "customerIdCancelledFor": found.customer.stripe_customer_id,
                "cancelledInstantly": found.ended_at is not None,
            }
        )


def _cancellation(request: Request) -> Any:
    """
    Return the body, completed from the query, where `cancelImmediately` is spelled exactly `true` or `false`.

    Raises:
        ValidationError: it is said twice, and not alike; guessing might end what was to go on.
    """
    body, spelled = request.data, request.query_params.getlist(_IMMEDIATELY)
    if not isinstance(body, dict) or not spelled:
        return body
    said = [
        *([body[_IMMEDIATELY]] if _IMMEDIATELY in body else []),
        *(_SPELLINGS.get(text, text) for text in spelled),
    ]
    if any(other != said[0] for other in said):
        raise ValidationError({_IMMEDIATELY: "The body and the query say different things."})
    return {**body, _IMMEDIATELY: said[0]}


@csrf_exempt
@for_methods("POST")
def stripe_webhook(request: HttpRequest) -> HttpResponse:
    """Answer 200 once the event is stored, 400 to anything that Stripe did not sign for us just now."""
    try:
        events.receive(
            body=request.body, signature=request.headers.get("Stripe-Signature", ""), now=timezone.now()
        )
    except DomainError as refusal:
        return json_problem(refusal)
    return JsonResponse({"received": True})
