"""
Clawbacks take credits and experience back for refunded and disputed money, and restore them when it is reinstated.

A payout's clawbacks take back `floor(gained × money returned / money charged)` in total, for credits and for the
experience of each track. The total depends only on Stripe's current state, so events may arrive in any order, twice or
not at all. Credits that the payer has transferred to a sponsor are taken from the sponsor first.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from django.db.models import Sum

from credits.lots import clawback_key
from credits.models import CreditEntry, EntrySource
from credits.services import entries
from payments.amounts import clawback_target
from payments.errors import StaleSnapshot
from payments.models import Clawback, MoneyReturn, Payout
from payments.services import payouts
from payments.stripe import get_billing_client
from payments.stripe.client import ReturnedMoney
from rewards.models import BadgeTrack, ExperienceEntry
from rewards.services import experience
from sponsors.rules.transfers import Part, taken
from sponsors.rules.transfers import returned as returned_to
from sponsors.services import transfers
from sponsors.services.transfers import TransferredPart

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
    if payout is None or not (returned.total_minor or payout.refunded_minor or payout.disputed_minor):
        return
    to_take = credits_to_take(payout=payout, returned=returned) - payout.credits_taken_back()
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
    if is_same:
        return
    key = _post(payout=payout, to_take=to_take, cause=cause, now=now)
    _post_experience(payout=payout, experience_by_track=experience_by_track, clawback_key=key)
    payouts.update_allowance(user=payout.user)


def _post(*, payout: Payout, to_take: int, cause: str, now: datetime) -> str:
    """
    Take credits back from the accounts that got them, or give them back if negative; return the first clawback's key.

    `to_take` may be 0, because a few cents can change the experience without changing the credits.
    """
    # A purchase for a sponsor has no transferred parts: the sponsor has all of its credits.
    moved = (
        {} if payout.sponsor_id else transfers.lock_parts(user_id=payout.user_id, lot_entry=payout.entry_id)
    )
    first = payout.clawbacks.count() + 1
    rows = [
        Clawback(
            payout=payout,
            key=clawback_key(
                invoice_id=payout.stripe_invoice_id,
                number=number,
                lot_entry=moved[part.lot].in_entry if part.lot else None,
            ),
            transferred_id=part.lot,
            credits=part.credits,
            created_at=now,
        )
        for number, part in enumerate(_parts(payout, to_take, moved), first)
    ]
    for row in rows:
        row.entry = _post_entry(row, moved, cause) if row.credits else None
        row.save(force_insert=True)
    return rows[0].key


def _parts(payout: Payout, to_take: int, moved: Mapping[int, TransferredPart]) -> list[Part]:
    if not moved or not to_take:
        return [Part(None, to_take)]
    if to_take > 0:
        return taken(to_take, [Part(part.pk, part.credits) for part in moved.values()])
    earlier = payout.clawbacks.order_by("pk").values_list("transferred", "credits")
    return [Part(part.lot, -part.credits) for part in returned_to(-to_take, [Part(*row) for row in earlier])]


def _post_entry(row: Clawback, moved: Mapping[int, TransferredPart], cause: str) -> CreditEntry:
    source = EntrySource.PAYOUT_CLAWBACK
    if row.transferred_id is None:
        return payouts.post_credits(
            payout=row.payout, credits=-row.credits, source=source, key=row.key, reason=cause
        )
    transfers.count_clawback(lot=row.transferred_id, credits=row.credits)
    sponsor_id = moved[row.transferred_id].sponsor_id
    return entries.move_of_sponsor(
        sponsor_id=sponsor_id, credits=-row.credits, source=source, key=row.key, reason=cause
    )


def payout_of(returned: ReturnedMoney) -> Payout | None:
    rows = Payout.objects.select_related("user", "subscription__customer", "purchase__customer")
    return rows.paid_by([returned.payment_intent_id]).first()


def read_returned_money(payment_intent_ids: Sequence[str]) -> ReturnedMoney:
    """Read from Stripe the sum of money returned of all payments of one invoice."""
    client = get_billing_client()
    parts = [client.returned_money(payment_intent_id=intent) for intent in payment_intent_ids]
    return ReturnedMoney(
        payment_intent_id=payment_intent_ids[0],
        refunded_minor=sum(part.refunded_minor for part in parts),
        disputed_minor=sum(part.disputed_minor for part in parts),
    )


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
