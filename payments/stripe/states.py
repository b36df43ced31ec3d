"""
What Stripe answered, as plain values. Money in minor units, times as aware datetimes in UTC.

Live and test: the two modes that Stripe keeps apart. A secret key is of one of them, full or restricted.
"""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomerState:
    """A customer, and which user and profile it was made for; both empty where somebody else made it."""

    customer_id: str
    user_id: str
    profile_address: str
    created_at: datetime
    is_live: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionState:
    """
    A subscription with its one item.

    `latest_invoice_id` is empty where there is none yet. `payment_client_secret` is
    set while the first payment of an `incomplete` subscription waits for the card
    holder; `decline_code` where it was declined.
    """

    subscription_id: str
    customer_id: str
    item_id: str
    status: str
    amount_minor: int
    currency: str
    current_period_start: datetime
    current_period_end: datetime
    cancels_at_period_end: bool
    ended_at: datetime | None
    latest_invoice_id: str
    payment_client_secret: str
    decline_code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InvoiceState:
    """
    An invoice of a subscription, reduced to what a payout depends on.

    `collected_minor` is money that reached Stripe: amount paid, less what was paid
    off Stripe, from a credit balance, or by credit notes. The period is that of the
    non-proration line; None where the invoice has no such line.
    """

    invoice_id: str
    customer_id: str
    subscription_id: str
    status: str
    billing_reason: str
    currency: str
    collected_minor: int
    period_start: datetime | None
    period_end: datetime | None
    payment_intent_id: str
    paid_at: datetime | None
    is_live: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MoneyBack:
    """All money of one payment that went back so far: refunds that did not fail, and withdrawn disputed sums."""

    payment_intent_id: str
    refunded_minor: int
    disputed_minor: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedEvent:
    """A webhook whose signature was right."""

    event_id: str
    type: str
    api_version: str
    object_id: str
    created_at: datetime
    is_live: bool


LIVE_PREFIXES = ("sk_live_", "rk_live_")
TEST_PREFIXES = ("sk_test_", "rk_test_")


def is_live_key(secret_key: str) -> bool:
    """Return whether real money moves under this key."""
    return secret_key.startswith(LIVE_PREFIXES)
