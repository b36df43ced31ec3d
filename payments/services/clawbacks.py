"""
Clawbacks take credits and experience back for refunded and disputed money, and restore them when it is reinstated.
Money that a credit note returned outside of Stripe counts, too, but is no movement of the Stripe account.

A payout's clawbacks take back `floor(gained × money returned / money charged)` in total, for credits and for the
experience of each track. The total depends only on Stripe's current state, so events may arrive in any order, twice or
not at all.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db.models import Sum

from credits.lots import clawback_key
from credits.models import EntrySource, HoldStatus
from credits.services import holds
from payments.amounts import clawback_target
from payments.errors import BillingRefused, StaleSnapshot, reason_of
from payments.models import Clawback, MoneyReturn, Payout, Refund
from payments.services import payouts
from payments.stripe import get_billing_client
from payments.stripe.client import ReturnedMoney
from rewards.models import BadgeTrack, ExperienceEntry
from rewards.services import experience

# How far back refunds and disputes are compared. A dispute may be decided after months.
LOOKBACK = timedelta(days=180)
_TRACKS = (BadgeTrack.SUBSCRIBER, BadgeTrack.PERMANENT)


def apply_returned_money(*, returned: ReturnedMoney, is_stale: bool, cause: str, now: datetime) -> None:
    """
    Adjust the clawbacks of the payment's payout to match `returned`.

    `cause` names the source of the information, for support. Runs inside the caller's transaction, after
    `synchronisation.record_sync`, which serialises the clawbacks of one customer. Does nothing for a payment
    without a payout: its returned money is read again when the payout is posted.

    Raises:
        StaleSnapshot: `returned` is stale and would change the rows.
    """
    payout = payout_of(returned)
    if payout is None:
        return
    _note_failed(payout, returned, now)
    taken = payout.credits_taken_back()
    if not (returned.total_minor or payout.refunded_minor or payout.disputed_minor or taken):
        return
    to_take = credits_to_take(payout=payout, returned=returned) - taken
    experience_by_track = experience_to_take(payout=payout, returned=returned)
    money = {"refunded_minor": returned.refunded_minor, "disputed_minor": returned.disputed_minor}
    is_known = all(getattr(payout, name) == amount for name, amount in money.items())
    is_same = to_take == 0 and not any(experience_by_track.values())
    if is_stale and not (is_known and is_same):
        raise StaleSnapshot
    if not is_known:
        Payout.objects.filter(pk=payout.pk).update(**money)
        change = {name: amount - getattr(payout, name) for name, amount in money.items()}
        MoneyReturn.objects.create(payout=payout, **change)
    if returned.total_minor >= payout.charged_minor:
        _release_holds(payout)
    if is_same:
        return
    key = clawback_key(invoice_id=payout.stripe_invoice_id, number=payout.clawbacks.count() + 1)
    # A few cents can change the experience without changing the credits.
    entry = (
        payouts.post_credits(
            payout=payout, credits=-to_take, source=EntrySource.PAYOUT_CLAWBACK, key=key, reason=cause
        )
        if to_take
        else None
    )
    Clawback.objects.create(payout=payout, key=key, credits=to_take, entry=entry, created_at=now)
    _post_experience(payout=payout, experience_by_track=experience_by_track, clawback_key=key)
    payouts.update_allowance(user=payout.user)


def _note_failed(payout: Payout, returned: ReturnedMoney, now: datetime) -> None:
    """
    Mark our refunds that did not reach the payer, whose bank may return them after weeks.

    Stripe never changes a failed refund again, so also a stale reading is true.
    """
    for refund_id, reason in returned.failed_refunds:
        made = payout.refunds.filter(status=Refund.Status.DONE, outcome__contains=refund_id)
        made.update(status=Refund.Status.FAILED, last_error=f"{refund_id}: {reason}", finished_at=now)


def _release_holds(payout: Payout) -> None:
    """Release what the payer's undoing of the purchase holds: the clawback takes these credits now."""
    undone = payout.refunds.filter(hold__status=HoldStatus.HELD)
    for hold_id in undone.values_list("hold_id", flat=True):
        holds.release(hold_id=hold_id)


def payout_of(returned: ReturnedMoney) -> Payout | None:
    rows = Payout.objects.select_related("user", "subscription__customer", "purchase__customer")
    return rows.paid_by([returned.payment_intent_id]).first()


def read_returned_money(payment_intent_ids: Sequence[str], *, invoice_id: str) -> ReturnedMoney:
    """Read from Stripe the sum of money returned of all payments of one invoice; an empty `invoice_id` if unknown."""
    client = get_billing_client()
    parts = [client.returned_money(payment_intent_id=intent) for intent in payment_intent_ids]
    return ReturnedMoney(
        payment_intent_id=payment_intent_ids[0],
        refunded_minor=sum(part.refunded_minor for part in parts),
        disputed_minor=sum(part.disputed_minor for part in parts),
        off_stripe_minor=_credited_off_stripe(invoice_id) if invoice_id else 0,
        failed_refunds=tuple(failed for part in parts for failed in part.failed_refunds),
    )


def _credited_off_stripe(invoice_id: str) -> int:
    """Return what credit notes returned; 0 for an invoice that Stripe does not know, which is a finding of its own."""
    try:
        return get_billing_client().credited_off_stripe(invoice_id=invoice_id)
    except BillingRefused as refusal:
        if reason_of(refusal) != "resource_missing":
            raise
    return 0


def credits_to_take(*, payout: Payout, returned: ReturnedMoney) -> int:
    """Return the total credits that the payout's clawbacks must take back."""
    return clawback_target(
        paid_out=payout.credits,
        collected_minor=payout.charged_minor,
        returned_minor=returned.total_minor,
    )


def experience_to_take(*, payout: Payout, returned: ReturnedMoney) -> dict[BadgeTrack, int]:
    """Return the experience still to be taken back on each track; negative if it must be restored."""
    clawback_keys = list(payout.clawbacks.values_list("key", flat=True))
    left = {}
    for track in _TRACKS:
        gained = _sum("amount", [payouts.experience_key(payout, track)])
        # The experience taken back so far, as a negative number.
        moved = _sum("base", [_experience_key(key, track) for key in clawback_keys])
        target = clawback_target(
            paid_out=gained, collected_minor=payout.charged_minor, returned_minor=returned.total_minor
        )
        left[track] = target + moved
    return left


def _post_experience(
    *, payout: Payout, experience_by_track: dict[BadgeTrack, int], clawback_key: str
) -> None:
    for track, amount in experience_by_track.items():
        if amount:
            post = experience.take_back if amount > 0 else experience.restore
            post(
                user=payout.user,
                track=track,
                amount=abs(amount),
                key=_experience_key(clawback_key, track),
                cause=EntrySource.PAYOUT_CLAWBACK,
            )


def _experience_key(clawback_key: str, track: BadgeTrack) -> str:
    return f"{clawback_key}:{track.lower()}"


def _sum(field: str, keys: list[str]) -> int:
    return ExperienceEntry.objects.filter(key__in=keys).aggregate(total=Sum(field))["total"] or 0
