"""Shapes of the payment bodies, as they are on the wire."""

import re
from decimal import Decimal
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from gateway.common.serializers import AddressField, BodySerializer, StrictIntegerField

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


class CancelSerializer(BodySerializer):
    """How to end the subscription."""

    cancelImmediately = StrictBooleanField(help_text="True ends it now, false with the running period.")


class CancellationSerializer(serializers.Serializer[Any]):
    """What was cancelled, and when it ends."""

    success = serializers.BooleanField()
    customerIdCancelledFor = serializers.CharField()
    cancelledInstantly = serializers.BooleanField()
