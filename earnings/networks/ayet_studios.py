"""ayeT-Studios: offers."""

from collections.abc import Mapping, Sequence
from typing import ClassVar
from urllib.parse import urlencode

from credits.models import EntrySource
from earnings.models import PostbackKind
from earnings.networks.base import Adapter, PostbackEvent, RawRequest, SignedFields
from earnings.networks.parameters import (
    flag,
    identifier,
    information,
    kind_of,
    number,
    parameters,
)
from earnings.networks.signatures import hex_hmac, require_match

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
        text = urlencode(sorted(fields.items()), errors="surrogateescape")
        message = text.replace("~", "%7E").encode()
        given = request.headers.get(self.signature_header, "").lower()
        require_match(given, secrets=secrets, compute=hex_hmac("sha256", message))
        return fields

    def parse(self, fields: SignedFields) -> PostbackEvent:
        """Read a conversion, or a chargeback, whose id is `r-` and the conversion's id."""
        transaction, amount = identifier(fields, "transaction_id"), number(fields, "currency_amount")
        is_reversal = flag(fields, "is_chargeback") or transaction.startswith(_CHARGEBACK_PREFIX)
        kind = PostbackKind.REVERSAL if is_reversal else kind_of(amount)
        return PostbackEvent(
            kind=kind,
            external_id=transaction,
            original_id=transaction.removeprefix(_CHARGEBACK_PREFIX) if kind is PostbackKind.REVERSAL else "",
            user_ref=fields.get("external_identifier", ""),
            amount=amount,
            payout_usd=information(fields, "payout_usd"),
        )
