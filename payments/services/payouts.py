"""
What the lower floors know about payments: the allowance of the period that was paid last.

Experience for collected money: gained with the payout, taken back as the money goes back.

What is taken back of a track is floor(gained × money gone / money collected) at any time, as it is with
credits, so the order in which money goes back and forth does not matter. How much a payout gains is
decided once, by the badge that is worn when it is posted. So a month that is posted late gains by the badge
of that day: otherwise everything gained since would have to be gained anew, and a log is not rewritten.
Credits and periods do not depend on the order.

Payouts: money that was collected for a subscription period becomes credits, once.

`apply_paid_invoice` is the one door for the webhook worker and for beat. Nothing
here looks at the calendar: a payout follows an invoice, whenever it was paid.
"""

from dataclasses import asdict
from datetime import datetime

from django.conf import settings
from django.db.models import Sum

from credits.allowances import PaidPeriod
from credits.models import EntrySource
from credits.services import allowance, entries
from payments.amounts import clawback_target, payout_credits
from payments.errors import RateMissing, UnknownSubscription
from payments.models import Payout, PayoutRate, Subscription
from payments.stripe.states import InvoiceState, is_live_key
from rewards.models import BadgeTrack, ExperienceEntry
from rewards.services import experience
from users.models import User


def follow_payouts(*, user: User) -> None:
    """
    Bring the user's allowance in line with the newest payout and its subscription; in the caller's transaction.

    It is a function of the rows alone, so the order in which they were written does not matter.
    """
    newest = newest_payout(user=user)
    if newest is None:
        return
    period = period_of(payout=newest, is_taken_back=newest.is_taken_back())
    allowance.set_allowance(user=user, **asdict(period))


def period_of(*, payout: Payout, is_taken_back: bool) -> PaidPeriod:
    """
    Return the paid period of a user whose newest payout this is.

    It ends early where the subscription was ended at once, and has never begun where the whole payout
    was taken back.
    """
    subscription, ends_at = payout.subscription, payout.period_end
    if is_taken_back:
        ends_at = payout.period_start
    elif subscription.ended_at is not None:
        ends_at = max(payout.period_start, min(subscription.ended_at, ends_at))
    is_whole = ends_at == payout.period_end
    return PaidPeriod(
        credits=payout.credits,
        starts_at=payout.period_start,
        ends_at=ends_at,
        renews=is_whole and subscription.renews(),
        resets_at=max(ends_at, subscription.current_period_end) if is_whole else ends_at,
    )


def newest_payout(*, user: User) -> Payout | None:
    """Return the payout of the latest period; of two that begin together, that of the later subscription."""
    found = Payout.objects.filter(user_id=user.pk).select_related("subscription")
    return found.order_by("-period_start", "-subscription_id", "-pk").first()


TRACKS = (BadgeTrack.SUBSCRIBER, BadgeTrack.PERMANENT)


def gain(*, payout: Payout) -> None:
    """Add what the payout is worth on both tracks, once; in the caller's transaction."""
    bases = {
        BadgeTrack.SUBSCRIBER: payout.amount_minor * payout.rate.experience_per_minor_unit,
        BadgeTrack.PERMANENT: payout.credits,
    }
    for track, base in bases.items():
        if base > 0:
            experience.gain(
                user=payout.user,
                track=track,
                base=base,
                key=_payout_key(payout, track),
                cause=EntrySource.SUBSCRIBED_PAYOUT,
            )


def steps(*, payout: Payout, gone_minor: int) -> dict[BadgeTrack, int]:
    """Return what is still to be taken back on each track, negative where some is to be given again."""
    clawback_keys = list(payout.clawbacks.values_list("key", flat=True))
    found = {}
    for track in TRACKS:
        gained = _sum("amount", [_payout_key(payout, track)])
        moved = _sum("base", [_clawback_key(key, track) for key in clawback_keys])
        wanted = clawback_target(paid_out=gained, collected_minor=payout.amount_minor, gone_minor=gone_minor)
        found[track] = wanted + moved
    return found


def follow(*, payout: Payout, steps: dict[BadgeTrack, int], clawback_key: str) -> None:
    """Post the steps of a clawback; in the caller's transaction."""
    for track, step in steps.items():
        if step:
            post = experience.take_back if step > 0 else experience.give_again
            post(
                user=payout.user,
                track=track,
                amount=abs(step),
                key=_clawback_key(clawback_key, track),
                cause=EntrySource.PAYOUT_CLAWBACK,
            )


def _payout_key(payout: Payout, track: BadgeTrack) -> str:
    return f"stripe:invoice:{payout.stripe_invoice_id}:{track.lower()}"


def _clawback_key(key: str, track: BadgeTrack) -> str:
    return f"{key}:{track.lower()}"


def _sum(field: str, keys: list[str]) -> int:
    return ExperienceEntry.objects.filter(key__in=keys).aggregate(total=Sum(field))["total"] or 0


# What a month of a subscription is billed for; anything else is no period that was paid.
_REASONS = {"subscription_create", "subscription_cycle", "subscription_update"}


def apply_paid_invoice(*, invoice: InvoiceState, now: datetime) -> Payout | None:
    """
    Pay out the invoice's collected money; the same invoice again returns the first payout.

    Returns None where the invoice pays for no period with money that reached us: not
    paid, of another reason, marked paid without a payment, or worth less than a credit.
    Runs inside the caller's transaction: entry, payout, experience and allowance commit together.

    Raises:
        UnknownSubscription: the subscription has not been stored yet; try again.
        RateMissing: no rate is in force for the currency.
    """
    if not is_payable(invoice=invoice) or invoice.period_start is None or invoice.period_end is None:
        return None
    subscription = _subscription_of(invoice)
    rate = _rate_in_force(currency=invoice.currency, at=invoice.paid_at or now)
    worth = _worth(invoice=invoice, rate=rate)
    if worth == 0:
        return None
    known = Payout.objects.filter(stripe_invoice_id=invoice.invoice_id).first()
    if known is not None:
        return known
    return _insert_payout(
        Payout(
            user=subscription.user,
            subscription=subscription,
            stripe_invoice_id=invoice.invoice_id,
            stripe_payment_intent_id=invoice.payment_intent_id,
            amount_minor=invoice.collected_minor,
            currency=invoice.currency,
            period_start=invoice.period_start,
            period_end=invoice.period_end,
            rate=rate,
            credits=worth,
            created_at=now,
        )
    )


def _insert_payout(payout: Payout) -> Payout:
    """Give the payout's credits, store it, and return the stored row after everything that follows from it."""
    payout.entry = entries.grant(
        user=payout.user,
        credits=payout.credits,
        source=EntrySource.SUBSCRIBED_PAYOUT,
        key=f"stripe:invoice:{payout.stripe_invoice_id}",
    )
    Payout.objects.bulk_create([payout], ignore_conflicts=True)
    stored = Payout.objects.select_related("user", "rate").get(stripe_invoice_id=payout.stripe_invoice_id)
    gain(payout=stored)
    follow_payouts(user=stored.user)
    return stored


def is_payable(*, invoice: InvoiceState) -> bool:
    """Return whether the invoice is a subscription period that was paid with money in this mode of Stripe."""
    return (
        invoice.status == "paid"
        and bool(invoice.subscription_id)
        and invoice.billing_reason in _REASONS
        and invoice.collected_minor > 0
        and invoice.period_start is not None
        and is_of_our_mode(is_live=invoice.is_live)
    )


def is_of_our_mode(*, is_live: bool) -> bool:
    """Return whether a Stripe object is of the mode, live or test, of our key."""
    return is_live == is_live_key(settings.STRIPE_SECRET_KEY)


def worth_of(*, invoice: InvoiceState, paid_at: datetime) -> int:
    """
    Return the credits that a payable invoice pays out, at the rate of the moment it was paid.

    Raises:
        RateMissing: no rate was in force for the currency.
    """
    return _worth(invoice=invoice, rate=_rate_in_force(currency=invoice.currency, at=paid_at))


def _worth(*, invoice: InvoiceState, rate: PayoutRate) -> int:
    return payout_credits(
        collected_minor=invoice.collected_minor, credits_per_major_unit=rate.credits_per_major_unit
    )


def _subscription_of(invoice: InvoiceState) -> Subscription:
    found = (
        Subscription.objects.select_related("user", "customer")
        .filter(
            stripe_subscription_id=invoice.subscription_id,
            customer__stripe_customer_id=invoice.customer_id,
        )
        .first()
    )
    if found is None:
        raise UnknownSubscription(
            f"No subscription {invoice.subscription_id} of {invoice.customer_id} is known."
        )
    return found


def _rate_in_force(*, currency: str, at: datetime) -> PayoutRate:
    found = PayoutRate.objects.in_force(currency=currency, at=at)
    if found is None:
        raise RateMissing(f"No payout rate for {currency} is in force.", retry_after=3600)
    return found
