"""
Clawbacks: credits follow the money back, and forth again.

The sum of a payout's clawbacks is a function of all money that went back so far,
so events may come in any order, twice or not at all.
"""

from datetime import datetime

from django.db.models import Sum

from credits.models import CreditEntry, EntrySource
from credits.services import ledger
from payments.amounts import clawback_target
from payments.models import Clawback, Payout
from payments.services import allowances
from payments.stripe.states import MoneyBack


def apply_money_back(*, money: MoneyBack, cause: str, now: datetime) -> Clawback | None:
    """
    Bring the clawback of the payment's payout to what `money` asks for; None where it is there already.

    `cause` names what told us, for support. Runs inside the caller's transaction, with the
    payout's row locked: steps of one payout are posted one after the other. A payment
    without a payout (yet) needs none: the payout asks for itself when it is posted.
    """
    payout = (
        Payout.objects.select_for_update(no_key=True, of=("self",))
        .select_related("user", "subscription__user")
        .filter(stripe_payment_intent_id=money.payment_intent_id)
        .exclude(stripe_payment_intent_id="")
        .first()
    )
    if payout is None:
        return None
    steps = payout.clawbacks.count()
    step = clawback_target(
        paid_out=payout.credits,
        collected_minor=payout.amount_minor,
        gone_minor=money.refunded_minor + money.disputed_minor,
    ) - clawed_back(payout=payout)
    if step == 0:
        return None
    key = f"stripe:clawback:{payout.stripe_invoice_id}:{steps + 1}"
    entry = _post(payout=payout, credits=step, key=key, cause=cause)
    posted = Clawback.objects.create(payout=payout, key=key, credits=step, entry=entry, created_at=now)
    allowances.follow_subscription(subscription=payout.subscription)
    return posted


def clawed_back(*, payout: Payout) -> int:
    """Return the credits taken back of the payout in all, less what was given again."""
    return payout.clawbacks.aggregate(credits=Sum("credits"))["credits"] or 0


def _post(*, payout: Payout, credits: int, key: str, cause: str) -> CreditEntry:
    source = EntrySource.PAYOUT_CLAWBACK
    if credits > 0:
        return ledger.reverse(user=payout.user, credits=credits, source=source, key=key, reason=cause)
    return ledger.grant(user=payout.user, credits=-credits, source=source, key=key, reason=cause)
