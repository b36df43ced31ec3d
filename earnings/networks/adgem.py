"""AdGem: offers, by GET postback."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import ClassVar

from credits.models import EntrySource
from earnings.models import PostbackKind
from earnings.networks.base import Adapter, PostbackEvent, RawRequest, SignedFields
from earnings.networks.parameters import (
    flag,
    hex_hmac,
    identifier,
    kind_of,
    number,
    optional_number,
    signed_url,
)


class AdGem(Adapter):
    """HMAC-SHA256 of the whole address before `&verifier=`."""

    slug: ClassVar = "adgem"
    title: ClassVar = "AdGem"
    kind: ClassVar = EntrySource.OFFERWALL
    covers: ClassVar = frozenset({"external_id", "user", "amount", "payout_usd"})
    template: ClassVar = (
        "player_id={player_id}&amount={amount}&payout={payout}&transaction_id={transaction_id}"
        "&campaign_id={campaign_id}&goal_name={goal_name}"
    )

    def verify(self, request: RawRequest, *, secrets: Sequence[str], keys: Mapping[str, str]) -> SignedFields:
        return signed_url(request, name="verifier", secrets=secrets, hmac_of=partial(hex_hmac, "sha256"))

    def parse(self, fields: SignedFields) -> PostbackEvent:
        """Read a reward; a negative amount or payout takes it back. An installation alone pays nothing."""
        transaction, payout = identifier(fields, "transaction_id"), optional_number(fields, "payout")
        if flag(fields, "nonpayable_install_goal"):
            kind, amount = PostbackKind.INFO, Decimal(0)
        else:
            amount = number(fields, "amount")
            kind = PostbackKind.REVERSAL if payout is not None and payout < 0 else kind_of(amount)
        return PostbackEvent(
            kind=kind,
            external_id=transaction,
            user_ref=fields.get("player_id", ""),
            amount=amount,
            payout_usd=payout,
        )
