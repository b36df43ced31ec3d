"""Request and response bodies of the payment endpoints."""

import re
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.core.validators import RegexValidator
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from gateway.web.serializers import AddressField, BodySerializer, StrictIntegerField
from payments.models import Settlement, Subscription
from payments.services.standing import NextStep

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
    """An amount in minor units; the error for a fraction such as 25.50 names the number to send."""

    default_error_messages = {"major": "Send the amount in minor units: {given} is {minor}."}

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, float | str) and (minor := _minor_units(data)) is not None:
            self.fail("major", given=f"{minor / 100:.2f}", minor=minor)
        return super().to_internal_value(data)


def _minor_units(amount: float | str) -> int | None:
    """Return the minor units of an amount like 25.5; None for other input, and for 2550.0, which may be minor units."""
    if not _MAJOR_UNITS.fullmatch(str(amount)):
        return None
    minor = int(Decimal(str(amount)) * 100)
    return minor if minor % 100 else None


class CustomerSerializer(serializers.Serializer[Any]):
    """The user's customer at the payment provider."""

    walletAddress = AddressField()
    paymentsCustomerId = serializers.CharField()


class SetupIntentSerializer(serializers.Serializer[Any]):
    """The client secret with which the wallet captures a card."""

    clientSecret = serializers.CharField()


class UpsertSerializer(BodySerializer):
    """The requested subscription."""

    subscriptionCost = CostField(min_value=1, help_text="Monthly amount in minor units: 25.50 is 2550.")
    currency = CurrencyField(
        default=DEFAULT_CURRENCY, allow_null=True, help_text="ISO code, such as usd or eur."
    )
    cancelAtEndOfBillingPeriod = StrictBooleanField(
        default=False,
        allow_null=True,
        help_text="True ends the subscription after the current period; false continues it.",
    )


class SubscriptionSerializer(serializers.Serializer[Any]):
    """The current subscription."""

    subscriptionId = serializers.CharField()
    subscriptionFor = serializers.CharField(help_text="The customer's id.")
    subscriptionAmount = serializers.CharField(help_text="Monthly amount as text, such as $25.50.")


@extend_schema_field(OpenApiTypes.INT64)
class UnixTimeField(serializers.Field[datetime, Any, int, datetime]):
    """A time in unix seconds."""

    def to_representation(self, value: datetime) -> int:
        return int(value.timestamp())


class OtherSubscriptionSerializer(serializers.Serializer[Subscription]):
    """Another live subscription. Amounts are in minor units, times in unix seconds."""

    subscriptionId = serializers.CharField(source="stripe_subscription_id")
    status = serializers.ChoiceField(Subscription.Status.choices, help_text="Stripe's status.")
    currency = serializers.CharField()
    subscriptionCost = serializers.IntegerField(source="amount_minor")
    currentPeriodEnd = UnixTimeField(source="current_period_end")


class SubscriptionReportSerializer(serializers.Serializer[Any]):
    """The state of the subscription. Amounts are in minor units, times in unix seconds."""

    subscriptionId = serializers.CharField(source="subscription.stripe_subscription_id")
    status = serializers.ChoiceField(
        Subscription.Status.choices, source="subscription.status", help_text="Stripe's status."
    )
    currency = serializers.CharField(source="subscription.currency")
    subscriptionCost = serializers.IntegerField(
        source="subscription.amount_minor",
        help_text="Amount for each `interval`, also while the subscription is ending.",
    )
    interval = serializers.CharField(
        source="subscription.interval",
        help_text="`month`; staff can arrange others at Stripe, such as `year` or `3 months`.",
    )
    isInvoiced = serializers.BooleanField(
        source="subscription.is_invoiced",
        help_text="Stripe sends invoices to be paid on their pages, and charges no card.",
    )
    paidCost = serializers.IntegerField(
        source="paid_minor",
        allow_null=True,
        help_text="Price of the current period, less returned money; null while it is unpaid.",
    )
    nextCost = serializers.IntegerField(
        source="next_minor",
        allow_null=True,
        help_text="Amount of the next invoice by Stripe's preview; null if there is none. While Stripe is "
        "unavailable, the last known amount, or null.",
    )
    nextCostAt = UnixTimeField(
        source="previewed_at",
        allow_null=True,
        help_text="When Stripe previewed `nextCost`; null without one.",
    )
    currentPeriodEnd = UnixTimeField(
        source="subscription.current_period_end", help_text="When `nextCost` is charged."
    )
    cancelAtEndOfBillingPeriod = serializers.BooleanField(source="subscription.cancels_at_period_end")
    openCost = serializers.IntegerField(
        source="open_minor",
        allow_null=True,
        help_text="Amount of the open invoice; 0 without one, null while Stripe is unreachable.",
    )
    clientSecret = serializers.CharField(
        source="client_secret",
        allow_blank=True,
        help_text="Confirms the open payment with Stripe's library; empty if nothing needs confirmation.",
    )
    declineCode = serializers.CharField(
        source="decline_code",
        allow_blank=True,
        help_text="Why the card was declined; empty if it was not.",
    )
    nextStep = serializers.ChoiceField(
        [step.value for step in NextStep],
        source="next_step",
        help_text="`nothing`; `confirm`: confirm the payment with `clientSecret`; `capture-card`: capture a card "
        "with a setup intent, then call upsertSubscription; `wait`: the bank is processing the payment; `pay`: "
        "call upsertSubscription; `subscribe`: "
        "start a new subscription; `complete-address`: capture a card with the full address by createCardPage, "
        "which also pays the waiting invoice; `pay-invoice`: open the `pageUrl` of the open invoice. `refunded`, "
        "`disputed` and `not-paid` are the reason why the current period gives no credits: call "
        "upsertSubscription to buy a month.",
    )
    latestInvoice = serializers.ChoiceField(
        ["", *Settlement.values],
        source="subscription.latest_invoice",
        help_text="How the latest invoice was settled, or that it is `waiting`; empty if there is none.",
    )
    isResting = serializers.BooleanField(
        source="subscription.is_resting",
        help_text="Staff have paused the collection of invoices; upsertSubscription resumes it.",
    )
    endsAt = UnixTimeField(
        source="subscription.cancels_at",
        allow_null=True,
        help_text="When it ends, if an end is set; null while it renews.",
    )
    otherSubscriptions = OtherSubscriptionSerializer(
        many=True,
        source="others",
        help_text="Further live ones, which staff made; upsertSubscription ends them.",
    )


_RETURN_URL = r"\A(https://[^/\s]+|http://(localhost|127\.0\.0\.1)(:[0-9]{1,5})?)(/\S*)?\Z"


class HostedPageSerializer(BodySerializer):
    """The URL to which Stripe's page returns the browser."""

    returnUrl = serializers.CharField(
        max_length=2000,
        validators=[RegexValidator(_RETURN_URL, "Send an https address.")],
        help_text="An https URL, or http on localhost.",
    )


class HostedPageAnswerSerializer(serializers.Serializer[Any]):
    """A page at Stripe for this user only, valid for a short time."""

    url = serializers.URLField()


class SavedCardSerializer(serializers.Serializer[Any]):
    """A card as its holder recognises it."""

    brand = serializers.CharField(help_text="Stripe's word, such as `visa`.")
    last4 = serializers.CharField()
    expiresMonth = serializers.IntegerField(source="expires_month")
    expiresYear = serializers.IntegerField(source="expires_year")


class CardSerializer(serializers.Serializer[Any]):
    """The card that the next payment uses."""

    card = SavedCardSerializer(allow_null=True, help_text="Null if none is saved.")


class ReceiptEmailSerializer(BodySerializer):
    """The address to which Stripe sends receipts."""

    email = serializers.EmailField(
        max_length=512, allow_null=True, help_text="Null for no receipts, which deletes the address."
    )


class InvoicesQuerySerializer(BodySerializer):
    """The requested page of invoices."""

    limit = serializers.IntegerField(default=20, min_value=1, max_value=100, help_text="Rows per page.")
    after = serializers.RegexField(
        r"\Ain_[A-Za-z0-9]{1,100}\Z",
        required=False,
        help_text="The last invoice of the previous page, as in `next`.",
    )


class InvoiceSerializer(serializers.Serializer[Any]):
    """An invoice. Amounts are in minor units, times in unix seconds."""

    invoiceId = serializers.CharField(source="invoice_id")
    number = serializers.CharField()
    status = serializers.ChoiceField(["open", "paid", "uncollectible", "void"])
    currency = serializers.CharField()
    total = serializers.IntegerField(source="total_minor", help_text="Total, including tax.")
    tax = serializers.IntegerField(source="tax_minor", help_text="Tax included in the total.")
    open = serializers.IntegerField(source="open_minor", help_text="Amount left to pay.")
    createdAt = UnixTimeField(source="created_at")
    pageUrl = serializers.CharField(
        source="page_url", help_text="Stripe's page of the invoice, where an open invoice can be paid."
    )
    pdfUrl = serializers.CharField(source="pdf_url")


class InvoicesSerializer(serializers.Serializer[Any]):
    """A page of invoices, newest first."""

    next = serializers.URLField(
        allow_null=True, help_text="URL of the next page, with older invoices; null on the last page."
    )
    results = InvoiceSerializer(many=True)


class CancelSerializer(BodySerializer):
    """How to end the subscription."""

    cancelImmediately = StrictBooleanField(
        help_text="True ends the subscription now, false at the end of the current period."
    )


class CancellationSerializer(serializers.Serializer[Any]):
    """The cancelled subscription's customer, and whether the subscription has already ended."""

    success = serializers.BooleanField()
    customerIdCancelledFor = serializers.CharField()
    cancelledInstantly = serializers.BooleanField()
