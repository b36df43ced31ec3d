"""
Purchases that their payer undoes: a full refund for a short time, while none of their credits is spent.

1. `undo` commits a pending `Refund` with a hold of all credits of the purchase, so that nothing spends them meanwhile.
2. `refunds.send` sends the refund from a worker, as one by staff.
3. `clawbacks` releases the hold in the transaction that takes the credits back. If Stripe refuses the refund, `refunds`
   releases it, and the credits stay.
"""

from datetime import datetime, timedelta
from uuid import UUID, uuid4

from django.conf import settings
from django.db import transaction

from credits.errors import InsufficientCredits
from credits.models import CreditAccount, HoldStatus
from credits.services import holds
from gateway.common.tasks import enqueue_on_commit
from payments.errors import UndoRefused, UnknownPurchase
from payments.models import Payout, Purchase, Refund
from users.models import User

# Stripe keeps its fee of a refunded payment, so undoing is no way to spend the operator's money.
_MOST, _WITHIN = 3, timedelta(days=30)
_FORGOTTEN_AFTER = timedelta(days=2)
_Status = Refund.Status
_WITHOUT_MONEY = (_Status.REFUSED, _Status.FAILED)


def undoable_until(purchase: Purchase) -> datetime | None:
    """Return when the time to undo a purchase that was paid ends; None if its payer can never undo it."""
    is_own = purchase.top_up_id is None and purchase.sponsor_id is None
    if not (settings.PURCHASE_UNDO_MINUTES and is_own and purchase.finished_at):
        return None
    return purchase.finished_at + timedelta(minutes=settings.PURCHASE_UNDO_MINUTES)


@transaction.atomic(durable=True)
def undo(*, user: User, purchase_id: UUID, now: datetime) -> Refund:
    """
    Refund a purchase of the user in full, and hold its credits until they are taken back; a repeat does nothing more.

    Raises:
        UnknownPurchase: the user has made no such purchase.
        UndoRefused: the purchase cannot be undone, or not any more.
    """
    purchase = Purchase.objects.filter(pk=purchase_id, user_id=user.pk).first()
    if purchase is None:
        raise UnknownPurchase("You have made no purchase with this id.")
    payout = _lock(user, purchase)
    earlier = payout.refunds.filter(hold__isnull=False).exclude(status__in=_WITHOUT_MONEY).first()
    if earlier is not None:
        return earlier
    _check(purchase, payout, now=now)
    refund = Refund(pk=uuid4(), payout=payout, amount_minor=payout.charged_minor, created_at=now)
    try:
        refund.hold_id = holds.place(user_id=user.pk, credits=payout.credits, key=f"undo:{refund.pk}")
    except InsufficientCredits as short:
        detail = f"The purchase gave {payout.credits} credits, of which a part is spent or held."
        raise UndoRefused(detail, reason="spent") from short
    refund.save(force_insert=True)
    enqueue_on_commit("payments.send_refund", refund_id=str(refund.pk))
    return refund


def _lock(user: User, purchase: Purchase) -> Payout:
    """Lock the payouts of the user's purchases, so that one is undone at a time, and return that of the purchase."""
    payouts = Payout.objects.select_for_update(of=("self",), no_key=True)
    rows = payouts.filter(user_id=user.pk, purchase__isnull=False).order_by("pk")
    payout = next((row for row in rows if row.purchase_id == purchase.pk), None)
    if payout is None or not payout.is_refundable or undoable_until(purchase) is None:
        raise UndoRefused("This purchase can only be refunded by support.", reason="not-undoable")
    return payout


def _check(purchase: Purchase, payout: Payout, *, now: datetime) -> None:
    until = undoable_until(purchase)
    if until is None or now >= until:
        minutes = settings.PURCHASE_UNDO_MINUTES
        raise UndoRefused(f"A purchase can be undone for {minutes} minutes.", reason="too-late")
    if payout.returned_minor or payout.refunds.filter(status=_Status.PENDING).exists():
        raise UndoRefused("Money of this purchase was returned, or is being returned.", reason="returned")
    undone = Refund.objects.filter(
        hold__isnull=False, payout__user_id=payout.user_id, created_at__gt=now - _WITHIN
    )
    if undone.exclude(status=_Status.REFUSED).count() >= _MOST:
        raise UndoRefused(
            f"You have undone {_MOST} purchases within {_WITHIN.days} days.", reason="too-often"
        )


def release_forgotten(*, now: datetime) -> int:
    """
    Release the holds of refunds that Stripe made two days ago without returning money, such as to a closed card.

    Within two days, `payments.claw_back` has asked Stripe for returned money, also if events were lost.
    Returns how many were released.
    """
    done = Refund.objects.filter(hold__status=HoldStatus.HELD, finished_at__lt=now - _FORGOTTEN_AFTER)
    return sum(holds.release(hold_id=hold_id) for hold_id in done.values_list("hold_id", flat=True))


def is_undoable(purchase: Purchase, payout: Payout, *, now: datetime) -> bool:
    """Return whether `undo` would probably succeed now, for the page that offers it."""
    until = undoable_until(purchase)
    if until is None or now >= until or payout.returned_minor or not payout.is_refundable:
        return False
    if any(refund.status not in _WITHOUT_MONEY for refund in payout.refunds.all()):
        return False
    account = CreditAccount.objects.filter(user_id=payout.user_id).first()
    return account is not None and account.available >= payout.credits
