"""ayeT-Studios: offers."""

from collections.abc import Mapping, Sequence
from typing import ClassVar
from urllib.parse import urlencode

from credits.models import EntrySource
from earnings.models import PostbackKind
from earnings.networks.base import Adapter, PostbackEvent, PostbackRefused, RawRequest, SignedFields
from earnings.networks.parameters import (
    hex_hmac,
    identifier,
    kind_of,
    number,
    optional_number,
    parameters,
    require_match,
)

_CHARGEBACK_PREFIX = "r-"


class AyetStudios(Adapter):
    """HMAC-SHA256 of all parameters, sorted by name and re-encoded, in a header."""

    slug: ClassVar = "ayet-studios"
    title: ClassVar = "ayeT-Studios"
    kind: ClassVar = EntrySource.OFFERWALL
    covers: ClassVar = frozenset({"external_id", "user", "amount", "payout_usd"})
    proven_by: ClassVar = (
        "https://docs.ayetstudios.com/v/product-docs/callbacks-and-testing/callback-verification"
        "/hmac-security-hash-optional"
    )
    signature_header: ClassVar = "x-ayetstudios-security-hash"
    template: ClassVar = (
        "transaction_id={transaction_id}&external_identifier={external_identifier}"
        "&currency_amount={currency_amount}&payout_usd={payout_usd}&is_chargeback={is_chargeback}"
    )

    def verify(self, request: RawRequest, *, secrets: Sequence[str], keys: Mapping[str, str]) -> SignedFields:
        fields = parameters(request.query)
        # PHP escapes the tilde, Python does not.
        message = urlencode(sorted(fields.items())).replace("~", "%7E").encode()
        given = request.headers.get(self.signature_header, "").lower()
        require_match(given, secrets=secrets, compute=hex_hmac("sha256", message))
        return fields

    def parse(self, fields: SignedFields) -> PostbackEvent:
        """Read a conversion, or a chargeback, whose id is `r-` and the conversion's id."""
        transaction, amount = identifier(fields, "transaction_id"), number(fields, "currency_amount")
        charged_back = fields.get("is_chargeback", "0")
        if charged_back not in {"0", "1"}:
            raise PostbackRefused("no usable is_chargeback")
        is_reversal = charged_back == "1" or transaction.startswith(_CHARGEBACK_PREFIX)
        kind = PostbackKind.REVERSAL if is_reversal else kind_of(amount)
        return PostbackEvent(
            kind=kind,
            external_id=transaction,
            original_id=transaction.removeprefix(_CHARGEBACK_PREFIX) if kind is PostbackKind.REVERSAL else "",
            user_ref=fields.get("external_identifier", ""),
            amount=amount,
            payout_usd=optional_number(fields, "payout_usd"),
        )
