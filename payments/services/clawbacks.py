"""
Clawbacks: credits and experience follow the money back, and forth again.

The sum of a payout's clawbacks is a function of all money that went back so far,
so events may come in any order, twice or not at all.
"""

from datetime import datetime, timedelta

from credits.models import CreditEntry, EntrySource
from credits.services import entries
from payments.amounts import clawback_target
from payments.errors import AnswerOutdated
from payments.models import Clawback, Payout
from payments.services import payouts
from payments.stripe.states import MoneyBack

# How far back refunds and disputes are looked for: a dispute is decided after months.
MEMORY = timedelta(days=180)


def apply_money_back(*, money: MoneyBack, contested: bool, cause: str, now: datetime) -> Clawback | None:
    """
    Bring the clawback of the payment's payout to what `money` asks for; None where it is there already.

    `cause` names where we know it from, for support. Runs inside the caller's transaction, after
    `syncing.hear`: steps of one customer's payouts are posted one after the other. A payment
    without a payout (yet) needs none: the payout asks for itself when it is posted.

    Raises:
        AnswerOutdated: `money` is contested and asks for another sum than what is taken back.
    """
    payout = payout_of(money=money)
    if payout is None:
        return None
    step = target(payout=payout, money=money) - payout.credits_taken_back()
    experience = payouts.steps(payout=payout, gone_minor=gone(money=money))
    if step == 0 and not any(experience.values()):
        return None
    if contested:
        raise AnswerOutdated
    key = f"stripe:clawback:{payout.stripe_invoice_id}:{payout.clawbacks.count() + 1}"
    # A cent may move experience and no credit.
    entry = _post(payout=payout, credits=step, key=key, cause=cause) if step else None
    posted = Clawback.objects.create(payout=payout, key=key, credits=step, entry=entry, created_at=now)
    payouts.follow(payout=payout, steps=experience, clawback_key=key)
    payouts.follow_payouts(user=payout.user)
    return posted


def payout_of(*, money: MoneyBack) -> Payout | None:
    """Return the payout that the payment was for."""
    found = Payout.objects.select_related("user", "subscription__customer")
    return (
        found.filter(stripe_payment_intent_id=money.payment_intent_id)
        .exclude(stripe_payment_intent_id="")
        .first()
    )


def target(*, payout: Payout, money: MoneyBack) -> int:
    """Return the credits that must have been taken back of the payout in all."""
    return clawback_target(
        paid_out=payout.credits,
        collected_minor=payout.amount_minor,
        gone_minor=gone(money=money),
    )


def gone(*, money: MoneyBack) -> int:
    """Return all money that is gone, in minor units."""
    return money.refunded_minor + money.disputed_minor


def _post(*, payout: Payout, credits: int, key: str, cause: str) -> CreditEntry:
    source = EntrySource.PAYOUT_CLAWBACK
    if credits > 0:
        return entries.reverse(user=payout.user, credits=credits, source=source, key=key, reason=cause)
    return entries.grant(user=payout.user, credits=-credits, source=source, key=key, reason=cause)
