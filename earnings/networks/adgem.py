"""
AdGem: offers, by GET (version 2) or by POST with a JSON body (version 3).

https://docs.adgem.com/docs/integrate/reward-mechanism/postbacks-v3
https://docs.adgem.com/publisher-support/multi-reward-offers
"""

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, ClassVar

from credits.models import EntrySource
from earnings.models import PostbackKind
from earnings.networks.base import Adapter, PostbackEvent, PostbackRefused, RawRequest, SignedFields
from earnings.networks.parameters import (
    flag,
    identifier,
    information,
    is_negative,
    kind_of,
    number,
    without_repeats,
)
from earnings.networks.signatures import hex_hmac, require_match, signed_url

_REWARD, _INSTALL = "reward", "install"


class AdGem(Adapter):
    """HMAC-SHA256 of the whole URL before `&verifier=`, or of the body in the header `Signature`."""

    slug: ClassVar = "adgem"
    title: ClassVar = "AdGem"
    kind: ClassVar = EntrySource.OFFERWALL
    covers: ClassVar = frozenset({"external_id", "user", "amount", "payout_usd"})
    methods: ClassVar = frozenset({"GET", "POST"})
    signature_header: ClassVar = "signature"
    template: ClassVar = (
        "player_id={player_id}&amount={amount}&payout={payout}&transaction_id={transaction_id}"
        "&campaign_id={campaign_id}&goal_id={goal_id}&goal_name={goal_name}"
    )

    def verify(self, request: RawRequest, *, secrets: Sequence[str], keys: Mapping[str, str]) -> SignedFields:
        if request.method != "POST":
            hmac_of = partial(hex_hmac, "sha256")
            return signed_url(
                request, name="verifier", secrets=secrets, hmac_of=hmac_of, template=self.template
            )
        given = request.headers.get(self.signature_header, "").lower()
        require_match(given, secrets=secrets, compute=hex_hmac("sha256", request.body))
        return _conversion(request.body)

    def parse(self, fields: SignedFields) -> PostbackEvent:
        """Read a reward; a negative amount or payout reverses it. A mere installation earns nothing."""
        conversion = fields.get("conversion_type", _REWARD)
        if conversion not in {_REWARD, _INSTALL}:
            raise PostbackRefused("no usable conversion_type")
        if conversion == _INSTALL or flag(fields, "nonpayable_install_goal"):
            kind, amount = PostbackKind.INFO, Decimal(0)
        else:
            amount = number(fields, "amount")
            kind = PostbackKind.REVERSAL if is_negative(fields, "payout") else kind_of(amount)
        return PostbackEvent(
            kind=kind,
            external_id=_id_of(fields),
            user_ref=fields.get("player_id", ""),
            amount=amount,
            payout_usd=information(fields, "payout"),
        )


def _id_of(fields: SignedFields) -> str:
    """
    Return the id of one reward: the goals of an offer share a transaction's id, and each is rewarded once.

    An address without `goal_id` gives each transaction one reward, as before the parameter was added.
    """
    if "conversion_id" in fields:
        return identifier(fields, "conversion_id")
    transaction = identifier(fields, "transaction_id")
    if not fields.get("goal_id"):
        return transaction
    return identifier({"goal_id": f"{transaction}:{identifier(fields, 'goal_id')}"}, "goal_id")


def _conversion(body: bytes) -> dict[str, str]:
    """
    Return the texts, numbers and flags of `data`, with numbers as they are written.

    Raises:
        PostbackRefused: the body is not a JSON object with `data`, or a name is duplicate.
    """
    try:
        document: Any = json.loads(
            body,
            parse_int=str,
            parse_float=str,
            parse_constant=str,
            object_pairs_hook=without_repeats,
        )
    except (ValueError, RecursionError) as error:
        raise PostbackRefused("unreadable body") from error
    data = document.get("data") if isinstance(document, dict) else None
    if not isinstance(data, dict):
        raise PostbackRefused("no data")
    flags = {True: "true", False: "false"}
    texts = {name: flags[value] if isinstance(value, bool) else value for name, value in data.items()}
    return {name: value for name, value in texts.items() if isinstance(value, str)}
