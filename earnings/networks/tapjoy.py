"""
Tapjoy, now Unity Offerwall: offers, with self-managed currency.

https://docs.unity.com/en-us/grow/offerwall/monetization/virtual-currency/self-managed-currency
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from credits.models import EntrySource
from earnings.networks.base import (
    Adapter,
    PostbackEvent,
    PostbackRefused,
    PostbackResponse,
    PostbackResponses,
    RawRequest,
    SignedFields,
)
from earnings.networks.parameters import event_of, parameters
from earnings.networks.signatures import hex_md5, require_match

_SIGNED = ("id", "snuid", "currency")


class Tapjoy(Adapter):
    """MD5 of id, user, amount and secret, separated by colons. Tapjoy retries after any status but 200 and 403."""

    slug: ClassVar = "tapjoy"
    title: ClassVar = "Tapjoy"
    kind: ClassVar = EntrySource.OFFERWALL
    covers: ClassVar = frozenset({"external_id", "user", "amount"})
    responses: ClassVar = PostbackResponses(
        ok=PostbackResponse(200, "OK"), reject=PostbackResponse(403, "refused")
    )

    def verify(self, request: RawRequest, *, secrets: Sequence[str], keys: Mapping[str, str]) -> SignedFields:
        given = parameters(request.query)
        signed = {name: given.get(name, "") for name in _SIGNED}
        if any(":" in value for value in signed.values()):
            raise PostbackRefused("a field contains the separator")
        before = "".join(f"{value}:" for value in signed.values())
        require_match(given.get("verifier", "").lower(), secrets=secrets, compute=hex_md5(before))
        return signed

    def parse(self, fields: SignedFields) -> PostbackEvent:
        """Read a reward. Tapjoy documents no reversals; a negative amount counts as one."""
        return event_of(fields, id_="id", user="snuid", amount="currency")
