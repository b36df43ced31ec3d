"""What a reconciliation may find. The runbook says what to do about each rule."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import TypeVar

from django.db.models import Model, QuerySet, TextChoices

PAGE = 100
_Item = TypeVar("_Item")
_Row = TypeVar("_Row", bound=Model)


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
    CLAWBACK_SUM = "clawback-sum", "credits and experience taken back follow refunds and disputes"
    CLAWBACK_ENTRY = "clawback-entry", "the clawback's credits were posted to its user by its entry"
    ALLOWANCE = "allowance", "the allowance is that of the newest payout"
    SUBSCRIPTIONS_TWO_LIVE = "subscriptions-two-live", "a customer has one live subscription"
    SUBSCRIPTION_DIFFERS = "subscription-differs", "the subscription is as Stripe says"
    SUBSCRIPTION_MISSING = "subscription-missing", "a live subscription of our customer is stored"
    SUBSCRIPTION_UNKNOWN = "subscription-unknown", "Stripe knows the subscription"
    CUSTOMER_UNKNOWN = "customer-unknown", "Stripe knows the customer"
    CUSTOMER_DIFFERS = "customer-differs", "the customer was made for this user"
    CUSTOMER_MISSING = "customer-missing", "a customer that was made for our user is the stored one"
    EVENT_FAILED = "event-failed", "an event is processed"
    OPERATION_UNFINISHED = "operation-unfinished", "what was begun at Stripe is finished"
    LIVEMODE = "livemode", "what Stripe answers is of our key's mode"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A rule that does not hold: what we have, what Stripe or our other rows say, and the ids it is about."""

    rule: Rule
    have: str
    wanted: str
    ids: dict[str, str]

    def is_about(self, other: "Finding") -> bool:
        """Return whether both are about the same rule and ids, whatever the values are by now."""
        return (self.rule, self.ids) == (other.rule, other.ids)

    def __str__(self) -> str:
        named = " ".join(f"{noun}={identifier}" for noun, identifier in self.ids.items())
        return f"{self.rule}: {named}: have {self.have}; wanted {self.wanted}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """
    What is compared: what began at `since` or later.

    What began after `settled_before` may still be on its way, and is not missed yet. Refunds and disputes
    come long after the payment, so they are compared from `returned_since` on.
    """

    since: datetime
    returned_since: datetime
    settled_before: datetime


def pages(items: Iterable[_Item]) -> Iterator[list[_Item]]:
    """Yield the items in lists of at most a hundred."""
    rest = iter(items)
    while page := list(islice(rest, PAGE)):
        yield page


def rows_by(field: str, ids: Iterable[str], rows: QuerySet[_Row]) -> dict[str, _Row]:
    """Return those of the rows whose field has one of these ids, by id."""
    return {getattr(row, field): row for row in rows.filter(**{f"{field}__in": list(ids)})}
