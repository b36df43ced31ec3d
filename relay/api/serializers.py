"""Request and response bodies of the relay. Serializers check only the form; services decide."""

from collections.abc import Set
from typing import Any

from django.conf import settings
from rest_framework import serializers

from gateway.chain.config import get_chain
from gateway.chain.contracts import encode_execute
from gateway.chain.lsp25 import RelayCall
from gateway.chain.signatures import MOST_BYTES
from gateway.common.problems import ProblemSerializer, document
from gateway.web.serializers import (
    AddressField,
    BodySerializer,
    HashField,
    HexField,
    StrictIntegerField,
    Uint256Field,
    json_bytes,
)
from relay.models import RelayTransaction
from relay.queries.reports import TransactionReport, changed_reports
from relay.services.accepting.preparation import VALID_SECONDS, Draft, PreparedCall
from sponsors.rules.vouchers import MOST_CHARACTERS, parse
from sponsors.services.paying import SponsorChoice


class SignatureField(HexField):
    """A signature of 64 bytes (ERC-2098), 65, or more where v is that of EIP-155."""

    default_error_messages = {
        "object": "Send the signature as one 0x-hex text: r, s and v joined, often the member `signature` "
        "or `serialized` of what a library returns."
    }

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(min_bytes=64, max_bytes=MOST_BYTES, **kwargs)

    def to_internal_value(self, data: Any) -> bytes:
        if isinstance(data, dict):
            self.fail("object")
        return super().to_internal_value(data)


class PayloadField(HexField):
    """The calldata for the profile: a 4-byte selector and its arguments."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(min_bytes=4, max_bytes=settings.RELAY_MAX_PAYLOAD_BYTES, **kwargs)


def _starts_before_its_end(value: int) -> None:
    """Refuse an empty validity window."""
    start, end = divmod(value, 2**128)
    if end and start > end:
        raise serializers.ValidationError("The start is after the end.", code="range")


def _validity_field(*, without: str = "") -> Uint256Field:
    return Uint256Field(
        required=False,
        allow_null=True,
        default=None if without else 0,
        validators=[_starts_before_its_end],
        help_text=f"start << 128 | end, in unix seconds; 0 for always.{without}",
    )


class SponsorField(serializers.CharField):
    """The name of a sponsor."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(required=False, allow_null=True, max_length=40, **kwargs)


_SPONSOR_HELP = "The name of a sponsor that is to pay for the call."


def _fallback_field() -> serializers.ChoiceField:
    return serializers.ChoiceField(
        choices=["user"],
        required=False,
        allow_null=True,
        help_text="`user`: the user pays if the sponsor does not. Without it, the call is refused.",
    )


def _voucher_field() -> serializers.CharField:
    return serializers.CharField(
        required=False,
        allow_null=True,
        max_length=MOST_CHARACTERS,
        help_text="The sponsor's voucher, for policies that want one. It pays for one call; preparing uses none up.",
    )


def _chain_field() -> StrictIntegerField:
    return StrictIntegerField(
        required=False,
        allow_null=True,
        help_text="The chain of the call; by default the home chain. `GET /api/service` lists the chains.",
    )


class TransactionSerializer(BodySerializer):
    """The signed LSP-25 relay call."""

    abi = PayloadField(help_text="Encoded call for the profile, such as setData or execute.")
    signature = SignatureField(help_text="The controller's signature over the LSP-25 hash.")
    nonce = Uint256Field(
        help_text="The controller's nonce from the key manager's getNonce: channel << 128 | sequence."
    )
    validityTimestamps = _validity_field()


class ExecuteSerializer(BodySerializer):
    """The body of execute."""

    keyManagerAddress = AddressField(help_text="The key manager that controls the signed-in profile.")
    transaction = TransactionSerializer()
    address = AddressField(
        required=False, allow_null=True, help_text="The profile; if sent, it must be the signed-in one."
    )
    chainId = _chain_field()


class Lsp15ExecuteSerializer(BodySerializer):
    """The body of execute as LSP-15 wallets send it."""

    address = AddressField(help_text="The profile whose key manager executes the call.")
    transaction = TransactionSerializer()
    keyManagerAddress = AddressField(
        required=False, allow_null=True, help_text="By default the profile's; another one is refused."
    )
    sponsor = SponsorField(help_text=_SPONSOR_HELP)
    sponsorFallback = _fallback_field()
    sponsorVoucher = _voucher_field()


class TransactionHashSerializer(BodySerializer):
    """A transaction's hash, as returned by execute."""

    transactionHash = HashField()


# The bytes of an `execute` payload around its data.
_AROUND_DATA_BYTES = 4 + 5 * 32 + 31


class CallSerializer(BodySerializer):
    """The call that the profile should execute: encoded (`abi`), or a call to another address (`to`)."""

    is_strict = True

    abi = PayloadField(
        required=False, allow_null=True, help_text="Encoded call for the profile, such as setData or execute."
    )
    to = AddressField(required=False, allow_null=True, help_text="The address to call. Not with `abi`.")
    value = Uint256Field(
        required=False, allow_null=True, default=0, help_text="The value to send, in wei. Not with `abi`."
    )
    data = HexField(  # type: ignore[assignment] # REST framework takes it off the class, whose `data` stays
        required=False,
        allow_null=True,
        max_bytes=max(0, settings.RELAY_MAX_PAYLOAD_BYTES - _AROUND_DATA_BYTES),
        help_text="The calldata to send; by default none. Not with `abi`.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Require exactly one of the two forms."""
        abi, to = attrs.get("abi"), attrs.get("to")
        if (abi is None) == (to is None):
            raise serializers.ValidationError({"abi": "Send either `abi` or `to`."}, code="required")
        others = [name for name in ("value", "data") if attrs.get(name)]
        if abi is not None and others:
            raise serializers.ValidationError(
                dict.fromkeys(others, "Send this with `to` only; `abi` includes it."), code="invalid"
            )
        return attrs


class PrepareSerializer(BodySerializer):
    """The body of prepare."""

    is_strict = True

    transaction = CallSerializer()
    channel = Uint256Field(
        required=False,
        allow_null=True,
        default=0,
        help_text="Below 2^128. Calls of one channel are executed in order.",
    )
    validityTimestamps = _validity_field(
        without=f" Without it, the call is valid for {VALID_SECONDS} seconds."
    )
    controller = AddressField(
        required=False,
        allow_null=True,
        help_text="The controller that will sign; by default the one that signed in.",
    )
    address = AddressField(
        required=False, allow_null=True, help_text="The profile; if sent, it must be the signed-in one."
    )
    chainId = _chain_field()
    quote = serializers.BooleanField(
        required=False, allow_null=True, default=True, help_text="Whether a quote is wanted."
    )
    sponsor = SponsorField(help_text=_SPONSOR_HELP)
    sponsorFallback = _fallback_field()
    sponsorVoucher = _voucher_field()

    def validate_channel(self, value: int | None) -> int | None:
        """Refuse a channel that does not fit into a nonce."""
        if value is not None and value >= 2**128:
            raise serializers.ValidationError("The number must be below 2^128.", code="range")
        return value


class UnsignedTransactionSerializer(serializers.Serializer[Any]):
    """The `transaction` of execute, without its signature."""

    abi = HexField(max_bytes=settings.RELAY_MAX_PAYLOAD_BYTES, help_text="The encoded call for the profile.")
    nonce = Uint256Field(help_text="The next nonce of the channel, after the calls in progress.")
    validityTimestamps = Uint256Field(help_text="As sent, or with the default end; 0 for always.")


class QuoteSerializer(serializers.Serializer[Any]):
    """The highest cost of the call, if it is sent with the header `Relay-Quote` before the quote expires."""

    id = serializers.UUIDField(help_text="The value of the header `Relay-Quote` of execute.")
    cost = serializers.IntegerField(
        help_text="The highest cost of the call in credits, even if gas prices rise."
    )
    expiresAt = serializers.IntegerField(help_text="When the quote expires, in unix seconds.")


class CallWarningSerializer(serializers.Serializer[Any]):
    """A consequence of the call that execute does not refuse it for."""

    code = serializers.ChoiceField(choices=["ownership-transfer"], help_text="For programs.")
    detail = serializers.CharField(help_text="For people.")


_OWNERSHIP_TRANSFER = {
    "code": "ownership-transfer",
    "detail": "This begins to move the profile to another owner. Until the new owner's key manager relays "
    "`acceptOwnership()`, nothing changes; from then on, calls through the present key manager fail, also those in "
    "progress.",
}


class PreparedSponsorSerializer(serializers.Serializer[Any]):
    """The sponsor that would pay for the call, and how its highest cost is divided."""

    name = serializers.CharField(help_text="The sponsor's name.")
    policy = serializers.CharField(help_text="The name of the policy that pays.")
    credits = serializers.IntegerField(help_text="The sponsor's part of the highest cost.")
    userCredits = serializers.IntegerField(help_text="The user's part of the highest cost.")


class PreparedSerializer(serializers.Serializer[Any]):
    """A relay call that is complete except for its signature, and its expected cost."""

    keyManagerAddress = AddressField(help_text="The key manager that controls the profile.")
    transaction = UnsignedTransactionSerializer(help_text="Add `signature` and send it to execute.")
    controller = AddressField(help_text="The controller that must sign.")
    hash = HashField(help_text="The hash to sign unchanged: LSP-25 adds no further prefix.")
    chainId = serializers.IntegerField(help_text="The chain that the hash is for.")
    gasLimit = serializers.IntegerField(
        allow_null=True, help_text="The gas limit that the service would set; null if the call reverts."
    )
    expectedCost = serializers.IntegerField(
        allow_null=True, help_text="Cost in credits at the current gas price; null if unknown."
    )
    highestCost = serializers.IntegerField(
        allow_null=True, help_text="Credits that would be held for the call now; null if unknown."
    )
    refusals = ProblemSerializer(
        many=True,
        help_text="The reasons for which execute would refuse the call now; empty if it would accept it.",
    )
    quote = QuoteSerializer(allow_null=True, help_text="Null if no quote was requested or is available.")
    warnings = CallWarningSerializer(many=True, help_text="What the user should know before signing.")
    quoteRefusal = ProblemSerializer(
        allow_null=True, help_text="Why a call that execute would accept has no quote."
    )
    sponsor = PreparedSponsorSerializer(allow_null=True, help_text="Null if the user would pay alone.")
    sponsorRefusal = ProblemSerializer(
        allow_null=True, help_text="Why the named sponsor does not pay; the rule is its `code`."
    )


class WaitSerializer(BodySerializer):
    """The query of a transaction's status."""

    wait = serializers.IntegerField(
        required=False,
        default=0,
        min_value=0,
        help_text="Seconds to wait for another status; the service waits at most "
        f"{settings.RELAY_WAIT_SECONDS}.",
    )


class TransactionQuerySerializer(TransactionHashSerializer, WaitSerializer):
    """The hash in the path, and the query."""


class QuotaRequestSerializer(BodySerializer):
    """The body of quota."""

    address = AddressField(help_text="The signed-in profile.")
    timestamp = StrictIntegerField(help_text="Unix seconds, within 5 s of the service's clock.")
    signature = SignatureField(help_text="A controller with SIGN signs address and timestamp.")

    def validate_timestamp(self, value: int) -> int:
        """Refuse times out of range: Python cannot convert a number of more than 4,300 digits to text."""
        if not 0 <= value < 2**63:
            raise serializers.ValidationError("Send unix seconds.", code="range")
        return value


class QuotaSerializer(serializers.Serializer[Any]):
    """The available credits, and the current paid period."""

    quota = serializers.IntegerField(help_text="Available credits; negative when in debt.")
    unit = serializers.CharField(help_text="`credits`.")
    totalQuota = serializers.IntegerField(help_text="Credits paid out for the current period; 0 without one.")
    resetDate = serializers.IntegerField(help_text="End of the period in unix seconds; -1 without one.")


class Lsp15QuotaSerializer(serializers.Serializer[Any]):
    """The available credits as gas; the last two members only during a paid period."""

    quota = serializers.IntegerField(
        help_text="Gas that available credits buy: at 1 gwei on the home chain, at the current fee on another chain. "
        "Negative in debt."
    )
    unit = serializers.CharField(help_text="`gas`.")
    totalQuota = serializers.IntegerField(
        required=False, help_text="Gas that the period's credits buy at the same price."
    )
    resetDate = serializers.IntegerField(required=False, help_text="End of the period in unix seconds.")


class TransactionStatusSerializer(serializers.Serializer[Any]):
    """The status record of a relay transaction."""

    status = serializers.ChoiceField(choices=RelayTransaction.Status.choices)
    transactionSenderAddress = AddressField(help_text="The profile that acted.")
    creditsUsed = serializers.IntegerField(
        help_text="The expected cost while the call is in progress, then the actual cost."
    )
    creditsBefore = serializers.IntegerField(
        help_text="The balance before the charge; while the call is in progress, the balance at acceptance."
    )
    creditsAfter = serializers.IntegerField(help_text="creditsBefore minus creditsUsed.")
    failureCode = serializers.CharField(
        help_text="Why the call ended without success, such as `reverted`; empty otherwise."
    )
    failureDetail = serializers.CharField(help_text="The same as a sentence for people; empty otherwise.")
    paidBy = serializers.CharField(
        help_text="`user`, or the name of the sponsor that pays the call or a part of it; `creditsUsed` is the user's."
    )
    chainId = serializers.IntegerField(help_text="The chain of the transaction.")


def relay_call(*, key_manager: str, transaction: dict[str, Any]) -> RelayCall:
    """Return the validated `transaction` as the relay call it describes."""
    return RelayCall(
        key_manager=key_manager,
        payload=transaction["abi"],
        signature=transaction["signature"],
        relay_nonce=transaction["nonce"],
        validity=transaction["validityTimestamps"] or 0,
    )


def draft_of(body: dict[str, Any]) -> Draft:
    """Return the draft of the call in the validated body of prepare."""
    call = body["transaction"]
    payload = call.get("abi") or encode_execute(
        to=call["to"], value_wei=call["value"] or 0, data=call.get("data") or b""
    )
    return Draft(
        payload,
        channel=body["channel"] or 0,
        validity=body["validityTimestamps"],
        controller=body.get("controller"),
        wants_quote=body["quote"] is not False,
        sponsor=sponsor_choice(body.get("sponsor"), body.get("sponsorFallback"), body.get("sponsorVoucher")),
    )


def sponsor_choice(name: str | None, fallback: str | None, voucher: str | None) -> SponsorChoice | None:
    """
    Return the sponsor that a request names, if it names one.

    Raises:
        VoucherRefused: the voucher has another form.
    """
    if not name:
        return None
    return SponsorChoice(name, user_may_pay=fallback == "user", voucher=parse(voucher) if voucher else None)


def prepared_body(prepared: PreparedCall) -> dict[str, Any]:
    """Return the response body of prepare."""
    call, quote = prepared.call, prepared.quote
    return {
        "keyManagerAddress": call.key_manager,
        "transaction": {
            "abi": "0x" + call.payload.hex(),
            "nonce": str(call.relay_nonce),
            "validityTimestamps": str(call.validity),
        },
        "controller": prepared.identity.controller,
        "hash": prepared.identity.digest,
        "chainId": get_chain().id,
        "gasLimit": prepared.gas_limit,
        "expectedCost": prepared.expected_cost,
        "highestCost": prepared.highest_cost,
        "refusals": [document(refusal) for refusal in prepared.refusals],
        "quote": quote
        and {
            "id": str(quote.pk),
            "cost": quote.credits,
            "expiresAt": int(quote.expires_at.timestamp()),
        },
        "warnings": [_OWNERSHIP_TRANSFER] if prepared.moves_profile else [],
        "quoteRefusal": prepared.quote_refusal and document(prepared.quote_refusal),
        "sponsor": prepared.sponsorship
        and {
            "name": prepared.sponsorship.sponsor,
            "policy": prepared.sponsorship.policy,
            "credits": prepared.sponsorship.credits,
            "userCredits": (prepared.highest_cost or 0) - prepared.sponsorship.credits,
        },
        "sponsorRefusal": prepared.sponsor_refusal and document(prepared.sponsor_refusal),
    }


def status_body(report: TransactionReport) -> dict[str, Any]:
    """Return the response body for a relay transaction's status."""
    return {
        "status": report.status,
        "transactionSenderAddress": report.sender_address,
        "creditsUsed": report.credits_used,
        "creditsBefore": report.credits_before,
        "creditsAfter": report.credits_after,
        "failureCode": report.failure_code,
        "failureDetail": report.failure_detail,
        "paidBy": report.sponsor or "user",
        "chainId": report.chain_id,
    }


def changed_statuses(shown: Set[tuple[int, str]]) -> dict[tuple[int, str], bytes]:
    """Return the rendered responses for the shown relay transactions whose status has changed."""
    reports = changed_reports(shown)
    return {one: json_bytes(status_body(report)) for one, report in reports.items()}
