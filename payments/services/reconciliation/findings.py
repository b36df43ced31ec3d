"""
What a reconciliation may find. The runbook says what to do about each rule.

Clawbacks against the money that went back, whether or not we were told.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import TypeVar

from django.db.models import Q, TextChoices

from payments.models import Payout
from payments.services import clawbacks, payouts
from payments.stripe.client import get_billing_client

PAGE = 100
_Item = TypeVar("_Item")


class Rule(TextChoices):
    """What must hold, named by how it fails."""

    PAYOUT_MISSING = "payout-missing", "a paid invoice has a payout"
    INVOICE_UNKNOWN = "invoice-unknown", "Stripe knows the payout's invoice"
    INVOICE_NOT_PAID = "invoice-not-paid", "the payout's invoice is paid"
    PAYOUT_AMOUNT = "payout-amount", "the payout's amount is what was collected"
    PAYOUT_CURRENCY = "payout-currency", "the payout's currency is the invoice's"
    PAYOUT_CUSTOMER = "payout-customer", "the payout's customer and subscription are the invoice's"
    PAYOUT_PERIOD = "payout-period", "the payout's period is the invoice's"
    PAYOUT_PAYMENT = "payout-payment", "the payout's payment is the invoice's"
    PAYOUT_CREDITS = "payout-credits", "the payout's credits are its amount at its rate"
    PAYOUT_ENTRY = "payout-entry", "the payout's credits were posted to its user by its entry"
    ENTRY_WITHOUT_PAYOUT = "entry-without-payout", "an entry of a payout belongs to one"
    CLAWBACK_SUM = "clawback-sum", "credits and experience taken back follow the money that went back"
    CLAWBACK_ENTRY = "clawback-entry", "the clawback's credits were posted to its user by its entry"
    ALLOWANCE = "allowance", "the allowance is that of the newest payout"
    SUBSCRIPTIONS_TWO_LIVING = "subscriptions-two-living", "a customer has one living subscription"
    SUBSCRIPTION_DIFFERS = "subscription-differs", "the subscription is as Stripe says"
    SUBSCRIPTION_MISSING = "subscription-missing", "a living subscription of our customer is stored"
    SUBSCRIPTION_UNKNOWN = "subscription-unknown", "Stripe knows the subscription"
    CUSTOMER_UNKNOWN = "customer-unknown", "Stripe knows the customer"
    CUSTOMER_DIFFERS = "customer-differs", "the customer was made for this user"
    CUSTOMER_MISSING = "customer-missing", "a customer that was made for our user is the stored one"
    EVENT_FAILED = "event-failed", "an event is processed"
    OPERATION_UNFINISHED = "operation-unfinished", "what was begun at Stripe is finished"
    LIVEMODE = "livemode", "what Stripe answers is of our key's mode"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A rule that does not hold: what we have, what Stripe says or our other rows say, and which things it is about."""

    rule: Rule
    have: str
    wanted: str
    ids: dict[str, str]

    def is_about(self, other: "Finding") -> bool:
        """Return whether both are about the same rule and things, whatever the values are by now."""
        return (self.rule, self.ids) == (other.rule, other.ids)

    def __str__(self) -> str:
        named = " ".join(f"{noun}={identifier}" for noun, identifier in self.ids.items())
        return f"{self.rule}: {named}: have {self.have}; wanted {self.wanted}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """
    What is compared: what began at `since` or later.

    What began after `settled_before` may still be on its way, and is not missed yet. Money goes back
    long after it was paid, so that is looked for from `money_since` on.
    """

    since: datetime
    money_since: datetime
    settled_before: datetime


def pages(items: Iterable[_Item]) -> Iterator[list[_Item]]:
    """Yield the items in lists of at most a hundred."""
    rest = iter(items)
    while page := list(islice(rest, PAGE)):
        yield page


def compare(*, window: Window, counts: Counter[str]) -> Iterator[Finding]:
    """Yield payouts of which more or less was taken back than the formula asks for now."""
    looked_at: set[str] = set()
    client = get_billing_client()
    for page in pages(client.payments_gone_back_since(since=window.money_since)):
        yield from _of(Q(stripe_payment_intent_id__in=set(page) - looked_at), counts)
        looked_at |= set(page)
    taken_back = Payout.objects.filter(clawbacks__created_at__gte=window.money_since)
    rest = taken_back.exclude(stripe_payment_intent_id__in=looked_at).values_list("pk", flat=True).distinct()
    for some in pages(rest):
        yield from _of(Q(pk__in=some), counts)


def _of(chosen: Q, counts: Counter[str]) -> Iterator[Finding]:
    for payout in Payout.objects.filter(chosen).exclude(stripe_payment_intent_id="").order_by("pk"):
        counts["payments gone back"] += 1
        money = get_billing_client().money_back(payment_intent_id=payout.stripe_payment_intent_id)
        wanted = clawbacks.target(payout=payout, money=money)
        taken = payout.credits_taken_back()
        experience = payouts.steps(payout=payout, gone_minor=clawbacks.gone(money=money))
        if taken != wanted or any(experience.values()):
            left = ", ".join(f"{step} {track}" for track, step in experience.items())
            yield Finding(
                rule=Rule.CLAWBACK_SUM,
                have=f"{taken} of {payout.credits} credits taken back; experience still to take: {left}",
                wanted=f"{money.refunded_minor} refunded and {money.disputed_minor} disputed of "
                f"{payout.amount_minor} {payout.currency}, which is {wanted} credits",
                ids={"payment": payout.stripe_payment_intent_id, "invoice": payout.stripe_invoice_id},
            )
