"""Shapes of the relay bodies on the wire. They check form alone; the services decide."""

from typing import Any

from django.conf import settings
from rest_framework import serializers

from gateway.chain.lsp25 import RelayCall
from gateway.common.serializers import (
    AddressField,
    BodySerializer,
    HashField,
    HexField,
    StrictIntegerField,
    Uint256Field,
)
from relay.models import RelayTransaction

SIGNATURE_BYTES = {"min_bytes": 64, "max_bytes": 65}


class PayloadField(HexField):
    """The calldata for the profile: a 4-byte selector and its arguments."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(min_bytes=4, max_bytes=settings.RELAY_MAX_PAYLOAD_BYTES, **kwargs)


class TransactionSerializer(BodySerializer):
    """The signed LSP-25 relay call."""

    abi = PayloadField(help_text="Encoded call for the profile, such as setData or execute.")
    signature = HexField(**SIGNATURE_BYTES, help_text="The controller's signature over the LSP-25 hash.")
    nonce = Uint256Field(
        help_text="The controller's nonce from the key manager's getNonce: channel << 128 | sequence."
    )
    validityTimestamps = Uint256Field(
        required=False,
        allow_null=True,
        default=0,
        help_text="start << 128 | end, in unix seconds; 0 for always.",
    )

    def validate_validityTimestamps(self, value: int | None) -> int | None:  # noqa: N802 - named after the field
        """Refuse a window that no moment lies in."""
        start, end = divmod(value or 0, 2**128)
        if end and start > end:
            raise serializers.ValidationError("The start lies after the end.", code="range")
        return value


class ExecuteSerializer(BodySerializer):
    """The body of execute."""

    keyManagerAddress = AddressField(help_text="The key manager that controls the signed-in profile.")
    transaction = TransactionSerializer()
    address = AddressField(
        required=False, allow_null=True, help_text="The profile; if sent, it must be the signed-in one."
    )


class Lsp15ExecuteSerializer(BodySerializer):
    """The body of execute as LSP-15 wallets send it."""

    address = AddressField(help_text="The profile whose key manager executes the call.")
    transaction = TransactionSerializer()


class TransactionHashSerializer(BodySerializer):
    """A transaction's hash, as answered by execute."""

    transactionHash = HashField()


class QuotaRequestSerializer(BodySerializer):
    """The body of quota."""

    address = AddressField(help_text="The signed-in profile.")
    timestamp = StrictIntegerField(help_text="Unix seconds, within 5 s of the service's clock.")
    signature = HexField(**SIGNATURE_BYTES, help_text="A controller with SIGN signs address and timestamp.")

    def validate_timestamp(self, value: int) -> int:
        """Refuse what no clock shows; a number of 4,300 digits could not even be compared with ours."""
        if not 0 <= value < 2**63:
            raise serializers.ValidationError("Send unix seconds.", code="range")
        return value


class QuotaSerializer(serializers.Serializer[Any]):
    """What is left, and until when."""

    quota = serializers.IntegerField(help_text="Available credits; negative when in debt.")
    unit = serializers.CharField(help_text="`credits`; on the LSP-15 path `gas`.")
    totalQuota = serializers.IntegerField(help_text="Credits paid out for the running period; 0 without one.")
    resetDate = serializers.IntegerField(help_text="End of the period in unix seconds; -1 without one.")


class TransactionStatusSerializer(serializers.Serializer[Any]):
    """The status record of a relay transaction."""

    status = serializers.ChoiceField(choices=RelayTransaction.Status.choices)
    transactionSenderAddress = AddressField(help_text="The profile that acted.")
    creditsUsed = serializers.IntegerField(
        help_text="The expected cost while in progress, then the real one."
    )
    creditsBefore = serializers.IntegerField(
        help_text="The balance; while in progress, of when it was accepted."
    )
    creditsAfter = serializers.IntegerField(help_text="creditsBefore less creditsUsed.")


def relay_call(*, key_manager: str, transaction: dict[str, Any]) -> RelayCall:
    """Return the validated `transaction` as the relay call it describes."""
    return RelayCall(
        key_manager=key_manager,
        payload=transaction["abi"],
        signature=transaction["signature"],
        relay_nonce=transaction["nonce"],
        validity=transaction["validityTimestamps"] or 0,
    )
