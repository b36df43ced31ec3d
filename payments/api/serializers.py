"""Shapes of the payment bodies, as they are on the wire."""

import re
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.core.validators import RegexValidator
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from gateway.web.serializers import AddressField, BodySerializer, StrictIntegerField
from payments.models import Subscription
from payments.services.subscriptions import NextStep

DEFAULT_CURRENCY = "usd"
_MAJOR_UNITS = re.compile(r"[0-9]{1,7}\.[0-9]{1,2}")


class StrictBooleanField(serializers.BooleanField):
    """A JSON boolean; text and numbers are refused."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


@extend_schema_field({"type": "string", "pattern": "^[A-Za-z]{3}$"})
class CurrencyField(serializers.CharField):
    """Three letters in any casing; becomes lower case."""

    default_error_messages = {"invalid": "Send three letters, such as usd."}

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str) or len(data) != 3 or not data.isascii() or not data.isalpha():
            self.fail("invalid")
        return data.lower()


class CostField(StrictIntegerField):
    """An amount in minor units; one with a fraction is answered by the number to send."""

    default_error_messages = {"major": "Send the amount in minor units: {given} is {minor}."}

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, float | str) and (minor := _minor_units(data)) is not None:
            self.fail("major", given=f"{minor / 100:.2f}", minor=minor)
        return super().to_internal_value(data)


def _minor_units(amount: float | str) -> int | None:
    """Return the minor units of an amount like 25.5; None of 2550.0, which may be minor units, and of anything else."""
    if not _MAJOR_UNITS.fullmatch(str(amount)):
        return None
    minor = int(Decimal(str(amount)) * 100)
    return minor if minor % 100 else None


class CustomerSerializer(serializers.Serializer[Any]):
    """The user's customer at the payment provider."""

    walletAddress = AddressField()
    paymentsCustomerId = serializers.CharField()


class SetupIntentSerializer(serializers.Serializer[Any]):
    """What the wallet captures a card with."""

    clientSecret = serializers.CharField()


class UpsertSerializer(BodySerializer):
    """The subscription that is asked for."""

    subscriptionCost = CostField(min_value=1, help_text="Monthly amount in minor units: 25.50 is 2550.")
    currency = CurrencyField(
        default=DEFAULT_CURRENCY, allow_null=True, help_text="ISO code, such as usd or eur."
    )
    cancelAtEndOfBillingPeriod = StrictBooleanField(
        default=False,
        allow_null=True,
        help_text="True ends the subscription after the running period; false lets it go on.",
    )


class SubscriptionSerializer(serializers.Serializer[Any]):
    """The subscription that runs."""

    subscriptionId = serializers.CharField()
    subscriptionFor = serializers.CharField(help_text="The customer's id.")
    subscriptionAmount = serializers.CharField(help_text="Monthly amount as text, such as $25.50.")


@extend_schema_field(OpenApiTypes.INT64)
class UnixTimeField(serializers.Field[datetime, Any, int, datetime]):
    """A moment, in unix seconds."""

    def to_representation(self, value: datetime) -> int:
        return int(value.timestamp())


class SubscriptionReportSerializer(serializers.Serializer[Any]):
    """How the subscription stands. Amounts are in minor units, times in unix seconds."""

    subscriptionId = serializers.CharField(source="subscription.stripe_subscription_id")
    status = serializers.ChoiceField(
        Subscription.Status.choices, source="subscription.status", help_text="Stripe's word for it."
    )
    currency = serializers.CharField(source="subscription.currency")
    paidCost = serializers.IntegerField(
        source="paid_minor",
        allow_null=True,
        help_text="What the running period has cost; null while it is unpaid.",
    )
    nextCost = serializers.IntegerField(
        source="next_minor",
        allow_null=True,
        help_text="What the next period will cost; null where there is none.",
    )
    currentPeriodEnd = UnixTimeField(
        source="subscription.current_period_end", help_text="From when `nextCost` is charged."
    )
    cancelAtEndOfBillingPeriod = serializers.BooleanField(source="subscription.cancels_at_period_end")
    openCost = serializers.IntegerField(
        source="open_minor", help_text="What waits to be paid; 0 for nothing."
    )
    clientSecret = serializers.CharField(
        source="client_secret",
        allow_blank=True,
        help_text="Confirms what is open, by Stripe's library; else empty.",
    )
    declineCode = serializers.CharField(
        source="decline_code", allow_blank=True, help_text="Why the card was declined last; else empty."
    )
    nextStep = serializers.ChoiceField(
        [step.value for step in NextStep],
        source="next_step",
        help_text="`nothing`; `confirm` with `clientSecret`; `capture-card` by a setup intent, then "
        "upsertSubscription; `pay` by upsertSubscription; `subscribe` anew.",
    )


_RETURN_URL = r"\A(https://[^/\s]+|http://(localhost|127\.0\.0\.1)(:[0-9]{1,5})?)(/\S*)?\Z"


class HostedPageSerializer(BodySerializer):
    """Where the browser goes when the person is done with Stripe's page."""

    returnUrl = serializers.CharField(
        max_length=2000,
        validators=[RegexValidator(_RETURN_URL, "Send an https address.")],
        help_text="An https address, or http of localhost.",
    )


class HostedPageAnswerSerializer(serializers.Serializer[Any]):
    """A page of Stripe's for this person alone, good for a short while."""

    url = serializers.URLField()


class ReceiptEmailSerializer(BodySerializer):
    """Where Stripe sends receipts."""

    email = serializers.EmailField(
        max_length=512, allow_null=True, help_text="Null for nowhere; the address is forgotten then."
    )


class InvoicesQuerySerializer(BodySerializer):
    """Which page of invoices."""

    limit = serializers.IntegerField(default=20, min_value=1, max_value=100, help_text="Rows of a page.")
    after = serializers.RegexField(
        r"\Ain_[A-Za-z0-9]{1,100}\Z",
        required=False,
        help_text="Stands in `next`: the invoice before the page.",
    )


class InvoiceSerializer(serializers.Serializer[Any]):
    """An invoice. Amounts are in minor units, times in unix seconds."""

    invoiceId = serializers.CharField(source="invoice_id")
    number = serializers.CharField()
    status = serializers.ChoiceField(["open", "paid", "uncollectible", "void"])
    currency = serializers.CharField()
    total = serializers.IntegerField(source="total_minor", help_text="With tax.")
    tax = serializers.IntegerField(source="tax_minor", help_text="What of it is tax.")
    open = serializers.IntegerField(source="open_minor", help_text="What is left to pay.")
    createdAt = UnixTimeField(source="created_at")
    pageUrl = serializers.CharField(
        source="page_url", help_text="Stripe's page of it, where an open one can be paid."
    )
    pdfUrl = serializers.CharField(source="pdf_url")


class InvoicesSerializer(serializers.Serializer[Any]):
    """A page of invoices, newest first."""

    next = serializers.URLField(
        allow_null=True, help_text="Address of the page of older ones; null on the last one."
    )
    results = InvoiceSerializer(many=True)


class CancelSerializer(BodySerializer):
    """How to end the subscription."""

    cancelImmediately = StrictBooleanField(help_text="True ends it now, false with the running period.")


class CancellationSerializer(serializers.Serializer[Any]):
    """What was cancelled, and when it ends."""

    success = serializers.BooleanField()
    customerIdCancelledFor = serializers.CharField()
    cancelledInstantly = serializers.BooleanField()
