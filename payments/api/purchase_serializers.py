"""Request and response bodies of the endpoints for purchases and automatic top-up."""

from typing import Any

from rest_framework import serializers

from gateway.web.serializers import BodySerializer, StrictIntegerField
from payments.api.serializers import (
    DEFAULT_CURRENCY,
    CostField,
    CurrencyField,
    StrictBooleanField,
    UnixTimeField,
)
from payments.models import AutoTopUp


class PackSerializer(serializers.Serializer[Any]):
    """A pack: credits for a fixed price, in minor units with tax."""

    pack = serializers.CharField(help_text="Its id.")
    currency = serializers.CharField()
    cost = serializers.IntegerField()
    amount = serializers.CharField(help_text="The price as text, such as $10.00.")
    credits = serializers.IntegerField(help_text="All credits that it gives, before tax on the price.")
    bonusCredits = serializers.IntegerField(help_text="The part of them beyond the rate.")


class SoldCurrencySerializer(serializers.Serializer[Any]):
    """A currency in which any amount can be bought, within these limits in minor units."""

    currency = serializers.CharField()
    minimum = serializers.IntegerField()
    maximum = serializers.IntegerField()
    creditsPerMajorUnit = serializers.IntegerField(help_text="Credits for 1.00, before tax.")


class PacksSerializer(serializers.Serializer[Any]):
    """The packs that are offered, and the currencies for other amounts."""

    packs = PackSerializer(many=True, help_text="Those in the account's own currency first.")
    currencies = SoldCurrencySerializer(many=True, help_text="The account's own currency first.")
    ownCurrency = serializers.CharField(
        allow_null=True, help_text="That of the subscription, or of the last payment; null before the first."
    )
    undoMinutes = serializers.IntegerField(
        help_text="Minutes for which `undoPurchase` takes a purchase; 0 for never."
    )


class NewPurchaseSerializer(BodySerializer):
    """The item of a purchase: a pack, or an amount."""

    pack = serializers.CharField(max_length=40, required=False, help_text="Id of a pack.")
    amount = CostField(
        required=False, min_value=1, help_text="An amount instead of a pack, in minor units with tax."
    )
    currency = CurrencyField(
        default=DEFAULT_CURRENCY, allow_null=True, help_text="Currency of the amount, such as usd or eur."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse both, or neither."""
        if ("pack" in attrs) == ("amount" in attrs):
            raise serializers.ValidationError("Send either a pack or an amount.")
        return attrs


class PurchaseSerializer(serializers.Serializer[Any]):
    """A paid purchase, whose credits are posted."""

    purchaseId = serializers.CharField()
    status = serializers.ChoiceField(["paid"])
    pack = serializers.CharField(allow_null=True, help_text="Null for an amount.")
    cost = serializers.IntegerField(help_text="The price in minor units.")
    currency = serializers.CharField()
    credits = serializers.IntegerField(
        help_text="0 if the invoice was settled without a payment, as from a balance at Stripe."
    )
    createdAt = UnixTimeField()
    undoUntil = UnixTimeField(
        allow_null=True, help_text="Until then `undoPurchase` refunds it; null if it cannot be undone now."
    )
    undo = serializers.ChoiceField(
        ["", "pending", "done", "refused", "failed"],
        help_text="The refund that the payer asked for, `done` once Stripe has made it, `failed` if the bank returned "
        "it; otherwise empty.",
    )


class PurchasesSerializer(serializers.Serializer[Any]):
    """The newest purchases."""

    results = PurchaseSerializer(many=True)


class UndoSerializer(BodySerializer):
    """The purchase to undo."""

    purchaseId = serializers.UUIDField()


class TopUpTermsSerializer(BodySerializer):
    """Whether a pack is bought automatically, and on which terms. Without `enabled`, the other fields are ignored."""

    enabled = StrictBooleanField(help_text="False withdraws the consent at once.")
    threshold = StrictIntegerField(
        required=False,
        min_value=1,
        max_value=10**12,
        help_text="A pack is bought when fewer credits are available.",
    )
    pack = serializers.CharField(required=False, max_length=40, help_text="Id of a pack.")
    monthlyLimit = CostField(
        required=False,
        min_value=1,
        max_value=10**9,
        help_text="Automatic purchases in a calendar month (UTC), at most, in minor units.",
    )
    consent = serializers.CharField(
        required=False,
        min_length=20,
        max_length=2000,
        help_text="The exact text that the user has accepted, stored with the time.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Require the terms where it is enabled."""
        missing = [name for name in ("threshold", "pack", "monthlyLimit", "consent") if name not in attrs]
        if attrs["enabled"] and missing:
            raise serializers.ValidationError(dict.fromkeys(missing, "This field is required."))
        return attrs


class TopUpSerializer(serializers.Serializer[Any]):
    """Automatic top-up, with the terms of the last consent; amounts are in minor units, times in unix seconds."""

    status = serializers.ChoiceField(["off", "on", "paused"])
    threshold = serializers.IntegerField()
    pack = serializers.CharField(allow_blank=True)
    cost = serializers.IntegerField(help_text="The pack's price.")
    currency = serializers.CharField(allow_blank=True)
    monthlyLimit = serializers.IntegerField()
    spentThisMonth = serializers.IntegerField(help_text="What automatic purchases have cost this month.")
    consent = serializers.CharField(allow_blank=True, help_text="The text that was accepted.")
    consentedAt = UnixTimeField(allow_null=True)
    pausedReason = serializers.ChoiceField(
        ["", *AutoTopUp.PausedReason.values],
        help_text="Why nothing is bought until the user consents again; empty unless it is paused.",
    )
    declineCode = serializers.CharField(allow_blank=True)
    lastPurchaseAt = UnixTimeField(allow_null=True)
