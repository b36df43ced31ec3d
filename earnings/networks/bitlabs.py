"""
BitLabs: surveys, and offers whose callbacks may be stateful.

https://developer.bitlabs.ai/docs/offer-callbacks
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import ClassVar

from credits.models import EntrySource
from earnings.models import PostbackKind
from earnings.networks.base import Adapter, PostbackEvent, PostbackRefused, RawRequest, SignedFields
from earnings.networks.parameters import identifier, information, kind_of, number
from earnings.networks.signatures import hex_hmac, signed_url

# Publishers choose parameter names; these are the names in BitLabs' examples. A URL may have several of them.
_STATE_NAMES = ("state", "offer_state", "magic_receipt_state", "cashback_state")
_NO_STATE = {"", "NONE"}
_REWARDED = {"COMPLETE", "COMPLETED", "SCREENOUT", "START_BONUS"}
_UNDECIDED = {"CREATED", "PENDING", "REVIEWING", "STATE_CHANGE"}
# The amount changed before the decision; the amount sent with COMPLETED counts.
_ADJUSTED = "ADJUSTED"
# An announced credit is rejected as a whole; a paid one is reduced by the reported amount.
_REJECTED = "REJECTED"
_UNDONE = {"RECONCILIATION", "RECONCILED", _REJECTED}
# A reconciled offer without stateful callbacks has the id `or…` of the offer `o…`.
_RECONCILED_OFFER, _OFFER = "or", "o"


class BitLabs(Adapter):
    """HMAC-SHA1 of the whole URL before `&hash=`, exactly as sent."""

    slug: ClassVar = "bitlabs"
    title: ClassVar = "BitLabs"
    kind: ClassVar = EntrySource.SURVEYS
    proven_by: ClassVar = "https://developer.bitlabs.ai/docs/securing-callbacks-through-hashing"
    covers: ClassVar = frozenset({"external_id", "user", "amount", "payout_usd"})
    template: ClassVar = (
        "uid=[%USER:UID%]&tx=[%TX%]&val=[%VALUE:CURRENCY%]&raw=[%VALUE:USD%]&type=[%TYPE%]"
        "&state=[%OFFER:TASK:STATE%]&ref=[%REF%]"
    )

    def verify(self, request: RawRequest, *, secrets: Sequence[str], keys: Mapping[str, str]) -> SignedFields:
        hmac_of = partial(hex_hmac, "sha1")
        return signed_url(request, name="hash", secrets=secrets, hmac_of=hmac_of, template=self.template)

    def parse(self, fields: SignedFields) -> PostbackEvent:
        """Read the outcome of a survey, an offer, a receipt or a purchase; a state takes precedence."""
        transaction, amount = identifier(fields, "tx"), number(fields, "val")
        status = _state(fields) or fields.get("type", "").upper()
        kind = _kind(status, fields, is_negative=amount < 0)
        if kind is PostbackKind.CREDIT:
            kind = kind_of(amount)
        return PostbackEvent(
            kind=kind,
            external_id=transaction,
            original_id=_original(transaction, fields) if kind is PostbackKind.REVERSAL else "",
            user_ref=fields.get("uid", ""),
            amount=amount,
            takes_all=status == _REJECTED,
            payout_usd=information(fields, "raw"),
        )


def _state(fields: SignedFields) -> str:
    states = {fields.get(name, "").upper() for name in _STATE_NAMES} - _NO_STATE
    if len(states) > 1:
        raise PostbackRefused("contradictory states")
    return states.pop() if states else ""


def _kind(status: str, fields: SignedFields, *, is_negative: bool) -> PostbackKind:
    if status in _UNDECIDED:
        return PostbackKind.PENDING
    if status == _ADJUSTED:
        return PostbackKind.INFO
    if status in _UNDONE or is_negative:
        return PostbackKind.REVERSAL
    # The type is for surveys: for an offer it is empty, or COMPLETE even while the offer is pending.
    if status and status not in _REWARDED:
        raise PostbackRefused("no usable type")
    if fields["tx"].startswith(_OFFER) and not any(name in fields for name in _STATE_NAMES):
        return PostbackKind.PENDING
    return PostbackKind.CREDIT


def _original(transaction: str, fields: SignedFields) -> str:
    if fields.get("ref"):
        return identifier(fields, "ref")
    if transaction.startswith(_RECONCILED_OFFER):
        return _OFFER + transaction.removeprefix(_RECONCILED_OFFER)
    return transaction
