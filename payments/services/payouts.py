"""
Payouts turn the money collected for a subscription period or a purchase into credits and experience, once.

Webhooks, purchases and repairs all call `apply_paid_invoice`. Nothing here depends on the
calendar: only a paid invoice causes a payout.
"""

from datetime import datetime
from typing import TYPE_CHECKING

from django.conf import settings
from django.db.models import Case, When

from credits.models import CreditEntry
from credits.queries import PaidPeriod
from credits.services import allowance, entries
from payments.amounts import earned_bonus, payout_credits
from payments.errors import RateMissing, UnknownSubscription
from payments.models import FurtherPayment, Payout, PayoutRate, PeriodTotals, Purchase, Subscription
from payments.stripe.client import InvoiceState, is_live_key
from rewards.models import BadgeTrack
from rewards.services import experience
from users.models import User

if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations

# Payouts of live subscriptions come before those of ended ones, then later periods before earlier ones. Of periods that
# begin at the same time, that of the newer subscription comes first.
_HAS_ENDED = Case(When(subscription__status__in=Subscription.ENDED, then=1), default=0)
NEWEST_FIRST = (_HAS_ENDED, "-period_start", "-subscription_id", "-pk")


def apply_paid_invoice(*, invoice: InvoiceState, now: datetime) -> Payout | None:
    """
    Pay out the invoice's collected money; a repeat for the same invoice returns the first payout.

    Returns None if there is nothing to pay out: the invoice is not paid, not for our product, marked as paid without a
    payment, or collected less than a credit's worth. Runs inside the caller's transaction, so that entry, payout,
    experience and allowance commit together.

    Raises:
        UnknownSubscription: the subscription, or the purchase, is not stored yet; retry.
        RateMissing: no rate is in force for the currency.
    """
    if not is_payable(invoice=invoice):
        return None
    payer = _subscription_of(invoice) if invoice.subscription_id else _purchase_of(invoice)
    subscription = payer if isinstance(payer, Subscription) else None
    purchase = payer if isinstance(payer, Purchase) else None
    rate = rate_in_force(currency=invoice.currency, at=invoice.paid_at or now)
    bonus = _bonus_of(purchase, invoice) if purchase else 0
    payable_credits = _credits_at(rate, invoice) + bonus
    if payable_credits == 0:
        return None
    existing = Payout.objects.filter(stripe_invoice_id=invoice.invoice_id).first()
    if existing is not None:
        return existing
    inserted = _insert_payout(
        Payout(
            user_id=payer.user_id,
            subscription=subscription,
            purchase=purchase,
            stripe_invoice_id=invoice.invoice_id,
            invoice_number=invoice.number,
            stripe_payment_intent_id=invoice.payment_intent_id,
            amount_minor=invoice.collected_minor,
            tax_minor=invoice.tax_minor,
            other_minor=invoice.other_minor,
            currency=invoice.currency,
            country=invoice.country,
            period_start=invoice.period_start if subscription else None,
            period_end=invoice.period_end if subscription else None,
            rate=rate,
            credits=payable_credits,
            bonus_credits=bonus,
            created_at=now,
        )
    )
    # Stored once, because a paid invoice gets no further payments.
    FurtherPayment.objects.bulk_create(
        [
            FurtherPayment(payout=inserted, stripe_payment_intent_id=intent)
            for intent in invoice.further_payment_ids
        ],
        ignore_conflicts=True,
    )
    return inserted


def is_payable(*, invoice: InvoiceState) -> bool:
    """
    Return whether the invoice is for our product and was paid with money, in the mode (live or test) of our key.

    The kind of invoice does not matter: a month, a proration, a purchase, or one that staff created at Stripe.
    """
    return (
        invoice.status == "paid"
        and invoice.is_ours
        and invoice.collected_minor > 0
        and (not invoice.subscription_id or None not in {invoice.period_start, invoice.period_end})
        and is_of_our_mode(is_live=invoice.is_live)
    )


def is_of_our_mode(*, is_live: bool) -> bool:
    return is_live == is_live_key(settings.STRIPE_SECRET_KEY)


def credits_for(*, invoice: InvoiceState, paid_at: datetime) -> int:
    """
    Return the credits that a payable invoice pays out, at the rate in force when it was paid.

    Raises:
        RateMissing: no rate was in force for the currency.
    """
    return _credits_at(rate_in_force(currency=invoice.currency, at=paid_at), invoice)


def _credits_at(rate: PayoutRate, invoice: InvoiceState) -> int:
    return payout_credits(
        collected_minor=invoice.collected_minor, credits_per_major_unit=rate.credits_per_major_unit
    )


def rate_in_force(*, currency: str, at: datetime) -> PayoutRate:
    """
    Return the currency's rate at that time.

    Raises:
        RateMissing: no rate was in force.
    """
    rate = PayoutRate.objects.in_force(currency=currency, at=at)
    if rate is None:
        raise RateMissing(f"No payout rate for {currency} is in force.", retry_after=3600)
    return rate


def _subscription_of(invoice: InvoiceState) -> Subscription:
    subscription = (
        Subscription.objects.select_related("user", "customer")
        .filter(
            stripe_subscription_id=invoice.subscription_id,
            customer__stripe_customer_id=invoice.customer_id,
        )
        .first()
    )
    if subscription is None:
        raise UnknownSubscription(
            f"No subscription {invoice.subscription_id} of {invoice.customer_id} is known."
        )
    return subscription


def _purchase_of(invoice: InvoiceState) -> Purchase:
    purchase = Purchase.objects.filter(
        stripe_invoice_id=invoice.invoice_id, customer__stripe_customer_id=invoice.customer_id
    ).first()
    if purchase is None:
        raise UnknownSubscription(f"No purchase of {invoice.customer_id} has {invoice.invoice_id}.")
    return purchase


def _bonus_of(purchase: Purchase, invoice: InvoiceState) -> int:
    return earned_bonus(
        bonus_credits=purchase.bonus_credits,
        price_minor=purchase.amount_minor,
        charged_minor=invoice.collected_minor + invoice.tax_minor,
    )


def _insert_payout(payout: Payout) -> Payout:
    payout.entry = post_credits(
        payout=payout,
        credits=payout.credits,
        source=payout.source,
        key=f"stripe:invoice:{payout.stripe_invoice_id}",
    )
    Payout.objects.bulk_create([payout], ignore_conflicts=True)
    rows = Payout.objects.select_related("user", "rate", "purchase")
    stored = rows.get(stripe_invoice_id=payout.stripe_invoice_id)
    _gain_experience(stored)
    update_allowance(user=stored.user)
    return stored


def post_credits(*, payout: Payout, credits: int, source: str, key: str, reason: str = "") -> CreditEntry:
    """Post credits of a payout to its account, the user's or the sponsor's; negative credits are taken back."""
    if payout.sponsor_id is not None:
        return entries.move_of_sponsor(
            sponsor_id=payout.sponsor_id, credits=credits, source=source, key=key, reason=reason
        )
    post = entries.grant if credits > 0 else entries.reverse
    return post(user=payout.user, credits=abs(credits), source=source, key=key, reason=reason)


def _gain_experience(payout: Payout) -> None:
    """
    Add the payout's experience once, in the caller's transaction. A purchase gives none on the subscriber track, and
    a purchase for a sponsor gives none at all.

    The growth rate is that of the user's badge at the time of posting, even if the payout is posted late: later entries
    are final and cannot be recomputed.
    """
    if payout.sponsor_id is not None:
        return
    bases = {
        BadgeTrack.SUBSCRIBER: payout.amount_minor * payout.rate.experience_per_minor_unit
        if payout.subscription_id
        else 0,
        BadgeTrack.PERMANENT: payout.credits,
    }
    for track, base in bases.items():
        if base > 0:
            experience.gain(
                user=payout.user,
                track=track,
                base=base,
                key=experience_key(payout, track),
                cause=payout.source,
            )


def experience_key(payout: Payout, track: BadgeTrack) -> str:
    return f"stripe:invoice:{payout.stripe_invoice_id}:{track.lower()}"


def update_allowance(*, user: User) -> None:
    """
    Update the user's allowance from the newest payout of a subscription, in the caller's transaction.

    The result depends only on the rows, not on the order in which they were written.
    """
    payout = newest_payout(user=user)
    if payout is None:
        return
    period = paid_period_of(payout=payout, credits=payout.period_paid_out - payout.period_taken_back)
    if period is not None:
        allowance.set_allowance(user=user, period=period)


def paid_period_of(*, payout: Payout, credits: int) -> PaidPeriod | None:
    """
    Return the paid period of a user's newest payout; `credits` are those of the period that were not taken back.

    None for a purchase, which has no period. The period ends early if the subscription was cancelled at once, and it is
    empty if all of its credits were taken back. A later period that a balance covers is paid as well, without credits.
    """
    subscription, starts_at, ends_at = payout.subscription, payout.period_start, payout.period_end
    if subscription is None or starts_at is None or ends_at is None:
        return None
    is_covered = subscription.is_covered_after(ends_at)
    if is_covered:
        starts_at, ends_at = subscription.current_period_start, subscription.current_period_end
    elif credits <= 0:
        ends_at = starts_at
    elif subscription.ended_at is not None:
        ends_at = max(starts_at, min(subscription.ended_at, ends_at))
    is_whole = ends_at in {payout.period_end, subscription.current_period_end}
    return PaidPeriod(
        credits=0 if is_covered else max(0, credits),
        starts_at=starts_at,
        ends_at=ends_at,
        renews=is_whole and subscription.renews(),
        resets_at=max(ends_at, subscription.current_period_end) if is_whole else ends_at,
    )


def newest_payout(*, user: User) -> "WithAnnotations[Payout, PeriodTotals] | None":
    """Return the payout of the latest period, as `NEWEST_FIRST` orders them."""
    rows = (
        Payout.objects.filter(user_id=user.pk, subscription__isnull=False)
        .select_related("subscription")
        .with_period()
    )
    return rows.order_by(*NEWEST_FIRST).first()
