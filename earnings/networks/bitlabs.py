"""BitLabs: surveys, and offers whose callbacks may be stateful."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import ClassVar

from credits.models import EntrySource
from earnings.models import PostbackKind
from earnings.networks.base import Adapter, PostbackEvent, PostbackRefused, RawRequest, SignedFields
from earnings.networks.parameters import hex_hmac, identifier, kind_of, number, optional_number, signed_url

_REWARDED = {"COMPLETE", "COMPLETED", "SCREENOUT", "START_BONUS"}
_UNDECIDED = {"CREATED", "PENDING", "REVIEWING"}
# An announced credit is rejected as a whole; a paid one is corrected by the amount that is reported.
_REJECTED = "REJECTED"
_UNDONE = {"RECONCILIATION", "RECONCILED", _REJECTED}
# Reconciled offers without stateful callbacks are `or…` of the offer `o…`.
_RECONCILED_OFFER, _OFFER = "or", "o"


class BitLabs(Adapter):
    """HMAC-SHA1 of the whole address before `&hash=`, exactly as it was sent."""

    slug: ClassVar = "bitlabs"
    title: ClassVar = "BitLabs"
    kind: ClassVar = EntrySource.SURVEYS
    covers: ClassVar = frozenset({"external_id", "user", "amount", "payout_usd"})
    template: ClassVar = (
        "uid=[%UID%]&tx=[%TX%]&val=[%VAL%]&raw=[%RAW%]&type=[%TYPE%]&state=[%OFFER:STATE%]&ref=[%REF%]"
    )

    def verify(self, request: RawRequest, *, secrets: Sequence[str], keys: Mapping[str, str]) -> SignedFields:
        return signed_url(request, name="hash", secrets=secrets, hmac_of=partial(hex_hmac, "sha1"))

    def parse(self, fields: SignedFields) -> PostbackEvent:
        """Read what became of a survey or an offer; where an offer has a state, the type says nothing more."""
        transaction, amount = identifier(fields, "tx"), number(fields, "val")
        status = fields.get("state") or fields.get("type") or ""
        kind = _kind(status, is_negative=amount < 0)
        if kind is PostbackKind.CREDIT:
            kind = kind_of(amount)
        return PostbackEvent(
            kind=kind,
            external_id=transaction,
            original_id=_original(transaction, fields) if kind is PostbackKind.REVERSAL else "",
            user_ref=fields.get("uid", ""),
            amount=amount,
            takes_back=abs(amount) or None if kind is PostbackKind.REVERSAL and status != _REJECTED else None,
            payout_usd=optional_number(fields, "raw"),
        )


def _kind(status: str, *, is_negative: bool) -> PostbackKind:
    if status in _UNDECIDED:
        return PostbackKind.PENDING
    if status in _UNDONE or is_negative:
        return PostbackKind.REVERSAL
    if status in _REWARDED:
        return PostbackKind.CREDIT
    raise PostbackRefused("no usable type")


def _original(transaction: str, fields: SignedFields) -> str:
    if fields.get("ref"):
        return identifier(fields, "ref")
    if transaction.startswith(_RECONCILED_OFFER):
        return _OFFER + transaction.removeprefix(_RECONCILED_OFFER)
    return transaction
