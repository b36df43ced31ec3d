"""CPX Research: surveys. Its hash covers only the transaction's id."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from credits.models import EntrySource
from earnings.models import PostbackKind
from earnings.networks.base import (
    Adapter,
    PostbackEvent,
    PostbackRefused,
    PostbackResponse,
    PostbackResponses,
    RawRequest,
    SignedFields,
)
from earnings.networks.parameters import (
    identifier,
    information,
    kind_of,
    number,
    parameters,
)
from earnings.networks.signatures import hex_md5, require_match

_COMPLETED, _CANCELLED = "1", "2"
_SCREENED_OUT = "out"


class CpxResearch(Adapter):
    """
    MD5 of the transaction's id, a dash and the secret.

    User and amount are not signed: anyone who sees a callback could reuse its hash
    with another user and amount, so the network is weak.
    """

    slug: ClassVar = "cpx-research"
    title: ClassVar = "CPX Research"
    kind: ClassVar = EntrySource.SURVEYS
    covers: ClassVar = frozenset({"external_id"})
    responses: ClassVar = PostbackResponses(
        ok=PostbackResponse(200, "ok"), reject=PostbackResponse(400, "refused")
    )
    template: ClassVar = (
        "status={status}&trans_id={trans_id}&user_id={user_id}&amount_local={amount_local}"
        "&amount_usd={amount_usd}&type={type}&hash={secure_hash}"
    )

    def verify(self, request: RawRequest, *, secrets: Sequence[str], keys: Mapping[str, str]) -> SignedFields:
        fields = parameters(request.query)
        before = f"{fields.get('trans_id', '')}-"
        require_match(fields.get("hash", "").lower(), secrets=secrets, compute=hex_md5(before))
        return fields

    def parse(self, fields: SignedFields) -> PostbackEvent:
        """Read a survey's outcome; a cancellation has the id of the reversed credit."""
        transaction, amount = identifier(fields, "trans_id"), number(fields, "amount_local")
        return PostbackEvent(
            kind=_kind(fields, kind_of(amount)),
            external_id=transaction,
            user_ref=fields.get("user_id", ""),
            amount=amount,
            payout_usd=information(fields, "amount_usd"),
        )


def _kind(fields: SignedFields, by_amount: PostbackKind) -> PostbackKind:
    if fields.get("status") == _COMPLETED:
        return by_amount
    if fields.get("status") == _CANCELLED:
        # A screen-out pays nothing, unless it has an amount for the attempt.
        never_paid = fields.get("type") == _SCREENED_OUT and by_amount is PostbackKind.INFO
        return PostbackKind.INFO if never_paid else PostbackKind.REVERSAL
    raise PostbackRefused("no usable status")
