"""The rules that a reconciliation verifies. The runbook explains what to do about a finding of each rule."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import ClassVar, TypeVar

from django.db.models import F, Model, Q, QuerySet, TextChoices

from payments.models import Payout

PAGE = 100
_Item = TypeVar("_Item")
_Row = TypeVar("_Row", bound=Model)


class Rule(TextChoices):
    """A rule. Its code names the violation; its label states the rule."""

    PAYOUT_MISSING = "payout-missing", "a paid invoice has a payout"
    INVOICE_WITHOUT_PAYOUT = "invoice-without-payout", "a paid invoice for our product pays out"
    PAYER_UNKNOWN = "payer-unknown", "who pays for our product is a customer of ours"
    FRAUD_WARNING = "fraud-warning", "no card network warns of fraud in a payment that is kept"
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
    SUBSCRIPTION_DIFFERS = "subscription-differs", "the subscription equals Stripe's"
    SUBSCRIPTION_MISSING = "subscription-missing", "a live subscription of our customer is stored"
    SUBSCRIPTION_UNKNOWN = "subscription-unknown", "Stripe knows the subscription"
    INVOICE_STUCK = "invoice-stuck", "the invoice of a running subscription is collected"
    CUSTOMER_UNKNOWN = "customer-unknown", "Stripe knows the customer"
    CUSTOMER_DIFFERS = "customer-differs", "the customer was created for this user"
    CUSTOMER_MISSING = "customer-missing", "a customer that was created for our user is stored"
    EVENT_FAILED = "event-failed", "an event is processed"
    OPERATION_UNFINISHED = "operation-unfinished", "a change at Stripe is finished"
    REFUND_FAILED = "refund-failed", "a refund reaches the payer"
    LIVEMODE = "livemode", "Stripe's objects are of our key's mode"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A broken rule: our row's value, the value at Stripe or of our other rows, and the ids of the objects."""

    rule: Rule
    have: str
    wanted: str
    ids: dict[str, str]

    def is_about(self, other: "Finding") -> bool:
        """Return whether both have the same rule and ids; the values may differ."""
        return (self.rule, self.ids) == (other.rule, other.ids)

    def __str__(self) -> str:
        named = " ".join(f"{noun}={identifier}" for noun, identifier in self.ids.items())
        return f"{self.rule}: {named}: have {self.have}; wanted {self.wanted}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """
    The time range of a comparison: objects created at `since` or later.

    An object created after `settled_before` may still be in progress, so it is not reported as missing. Refunds and
    disputes may follow long after the payment, so their comparison starts at `returned_since`. Of older payouts, each
    night compares the part whose `turn` it is, so that each is compared twice in a quarter.
    """

    TURNS: ClassVar = 45

    since: datetime
    turn: int
    returned_since: datetime
    settled_before: datetime

    def of_payouts(self, rows: QuerySet[Payout]) -> QuerySet[Payout]:
        """Keep the payouts to compare."""
        return rows.alias(turn=F("pk") % self.TURNS).filter(Q(created_at__gte=self.since) | Q(turn=self.turn))


def pages(items: Iterable[_Item]) -> Iterator[list[_Item]]:
    """Yield the items in lists of at most a hundred."""
    rest = iter(items)
    while page := list(islice(rest, PAGE)):
        yield page


def rows_by(field: str, ids: Iterable[str], rows: QuerySet[_Row]) -> dict[str, _Row]:
    """Return the rows whose `field` is one of these ids, keyed by it."""
    return {getattr(row, field): row for row in rows.filter(**{f"{field}__in": list(ids)})}
