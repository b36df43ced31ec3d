"""
Payouts: money that was collected for a subscription period becomes credits, once.

`apply_paid_invoice` is the one door for the webhook worker and for beat. Nothing
here looks at the calendar: a payout follows an invoice, whenever it was paid.
"""

from datetime import datetime

from django.conf import settings

from credits.models import EntrySource
from credits.services import ledger
from payments.amounts import payout_credits
from payments.errors import RateMissing, UnknownSubscription
from payments.models import Payout, PayoutRate, Subscription
from payments.services import allowances, payout_experience
from payments.stripe.modes import is_live_key
from payments.stripe.states import InvoiceState

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
    payout.entry = ledger.grant(
        user=payout.user,
        credits=payout.credits,
        source=EntrySource.SUBSCRIBED_PAYOUT,
        key=f"stripe:invoice:{payout.stripe_invoice_id}",
    )
    Payout.objects.bulk_create([payout], ignore_conflicts=True)
    stored = Payout.objects.select_related("user", "rate").get(stripe_invoice_id=payout.stripe_invoice_id)
    payout_experience.gain(payout=stored)
    allowances.follow_payouts(user=stored.user)
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
