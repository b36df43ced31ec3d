"""
The interface to Stripe: what the service reads and changes there, and the values it gets back.

Money is in minor units, times are aware datetimes in UTC.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

LIVE_PREFIXES = ("sk_live_", "rk_live_")
TEST_PREFIXES = ("sk_test_", "rk_test_")


def is_live_key(secret_key: str) -> bool:
    """Return whether real money moves under this key, full or restricted; Stripe keeps live and test mode apart."""
    return secret_key.startswith(LIVE_PREFIXES)


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomerState:
    """A customer, and the user and profile it was created for; both are empty where another system created it."""

    customer_id: str
    user_id: str
    profile_address: str
    created_at: datetime
    is_live: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionState:
    """
    A subscription, reduced to the items of our product.

    It is not `is_ours` without such an item, and `is_shared` where it has items of other products, too. `item_id` is
    the first item of ours, `other_item_ids` are further ones; `amount_minor` is the sum of their prices times
    quantities. It is not `is_plain` unless one item of ours with quantity 1 is billed.
    `latest_invoice_id` is empty where there is none yet. Of a subscription that is `incomplete`, `past_due` or
    `unpaid`, `payment_client_secret` is set while the payment of its open invoice waits for the card holder, and
    `decline_code` where it was declined; `open_minor` is what that invoice asks for.
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
    open_minor: int = 0
    other_item_ids: tuple[str, ...] = ()
    is_ours: bool = True
    is_shared: bool = False
    is_plain: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class InvoiceState:
    """
    An invoice, reduced to its lines of our product and to what a payout depends on.

    It is not `is_ours` without such a line. Money that reached Stripe (amount paid, less what was paid off Stripe, from
    a credit balance, or by credit notes) is divided among the lines in proportion to their amounts: `collected_minor`
    is our lines' part without tax, `tax_minor` the tax on it, and `other_minor` what other lines brought. The period is
    that of our latest line that is no proration, else of our latest proration; None where there is neither.
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
    tax_minor: int = 0
    other_minor: int = 0
    is_ours: bool = True
    # What its payer calls it.
    number: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class InvoiceSummary:
    """
    An invoice as its payer sees it: finalized, with Stripe's own page and file of it.

    The total is with `tax_minor`; what is left to pay is `open_minor`. Addresses are empty where there is none.
    """

    invoice_id: str
    number: str
    status: str
    currency: str
    total_minor: int
    tax_minor: int
    open_minor: int
    created_at: datetime
    page_url: str
    pdf_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InvoicePage:
    """Invoices, newest first, and whether there are others older than `last_id`."""

    invoices: tuple[InvoiceSummary, ...]
    has_more: bool
    last_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountState:
    """
    What Stripe's API tells of the account's settings.

    `webhook_types` has the event types that an enabled endpoint sends, by its URL; `*` stands for all.
    """

    webhook_types: dict[str, frozenset[str]]
    has_portal: bool
    has_unpaid_subscription: bool
    computes_tax: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnedMoney:
    """All money of one payment that was returned so far: refunds that did not fail, and withdrawn disputed sums."""

    payment_intent_id: str
    refunded_minor: int
    disputed_minor: int

    @property
    def total_minor(self) -> int:
        return self.refunded_minor + self.disputed_minor


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedEvent:
    event_id: str
    type: str
    api_version: str
    object_id: str
    created_at: datetime
    is_live: bool


class BillingClient(Protocol):
    """
    Stripe, reduced to what the service needs.

    Commands take an idempotency key: the same key and arguments give the same answer, so a repeat is safe.
    Every method raises `BillingUnavailable` when Stripe is unreachable, slow, busy or failing.
    """

    def create_customer(self, *, profile_address: str, user_id: str, key: str) -> str:
        """Create a customer and return its id."""

    def is_customer_deleted(self, *, customer_id: str) -> bool:
        """Return whether Stripe once had this customer and has deleted it, which is for good."""

    def delete_customer(self, *, customer_id: str) -> None:
        """Delete the customer with cards and subscriptions, for good; a deleted one stays as it is."""

    def create_setup_intent(self, *, customer_id: str) -> str:
        """Create a setup intent for off-session use and return its client secret."""

    def create_card_page(self, *, customer_id: str, return_url: str) -> str:
        """Create a page of Stripe's that captures a card, and return its address."""

    def create_portal_page(self, *, customer_id: str, return_url: str) -> str:
        """Create a visit to Stripe's customer portal and return its address."""

    def receipt_email(self, *, customer_id: str) -> str:
        """Return the address that Stripe sends receipts to; empty for none."""

    def set_receipt_email(self, *, customer_id: str, email: str) -> None:
        """Have receipts sent to this address, or with an empty one forget it."""

    def invoices(self, *, customer_id: str, limit: int, after: str) -> InvoicePage:
        """
        Read invoices of a customer for our product, newest first, that are older than the one named.

        Drafts are left out, so a page may have fewer than `limit`.
        """

    def has_payment_method(self, *, customer_id: str) -> bool:
        """Return whether the customer has something to pay with, after making the newest card the default."""

    def create_subscription(
        self, *, customer_id: str, amount_minor: int, currency: str, cancels_at_period_end: bool, key: str
    ) -> SubscriptionState:
        """Create a monthly subscription. A declined or unconfirmed first payment leaves it `incomplete`."""

    def update_subscription(
        self,
        *,
        subscription_id: str,
        item_id: str,
        amount_minor: int | None,
        currency: str,
        cancels_at_period_end: bool,
        key: str,
        other_item_ids: Sequence[str] = (),
    ) -> SubscriptionState:
        """
        Change the amount from the next period on (None keeps it) and whether it ends with this one.

        A changed amount is that of one item with quantity 1; `other_item_ids` are removed.
        """

    def cancel_subscription(self, *, subscription_id: str, key: str) -> SubscriptionState:
        """
        End the subscription at once, without refund or final invoice. Cancelling twice gives the same answer.

        One that bills other products, too, goes on without our items.
        """

    def create_refund(self, *, payment_intent_id: str, amount_minor: int, key: str) -> str:
        """
        Return money of a payment to its card, and the id of the refund; once for a key, however long ago.

        Raises:
            BillingRefused: there is not so much left to return, or the payment is disputed.
        """

    def retrieve_subscription(self, *, subscription_id: str) -> SubscriptionState:
        """Read a subscription."""

    def list_subscriptions(self, *, customer_id: str) -> list[SubscriptionState]:
        """Read all subscriptions of a customer to our product, ended ones too, newest first."""

    def pay_invoice(self, *, invoice_id: str) -> None:
        """Try to collect an invoice, also one that is still a draft; a decline shows in its subscription's state."""

    def use_newest_card(self, *, customer_id: str) -> None:
        """Make the card that was captured last the default of the customer and of the live subscriptions."""

    def payment_method_of_setup(self, *, setup_intent_id: str) -> tuple[str, str]:
        """Return (customer id, payment method id) of a succeeded setup intent."""

    def retrieve_invoice(self, *, invoice_id: str) -> InvoiceState:
        """Read an invoice."""

    def paid_invoices_since(self, *, since: datetime) -> Iterator[InvoiceState]:
        """Read every paid invoice created, or in the last 30 days paid, since then, page by page."""

    def customers(self) -> Iterator[CustomerState]:
        """Read every customer of the account that is not deleted, page by page, also those of other systems."""

    def live_subscriptions(self, *, customer_id: str = "") -> Iterator[SubscriptionState]:
        """Read every subscription to our product that has not ended, of one customer or of all, newest first."""

    def refunded_or_disputed_since(self, *, since: datetime) -> Iterator[str]:
        """Read the payment intents of every refund and dispute begun since then, page by page; some more than once."""

    def returned_money(self, *, payment_intent_id: str) -> ReturnedMoney:
        """Read all that was refunded or disputed of one payment."""

    def payment_intent_of(self, *, object_id: str) -> str:
        """Return the payment intent of a charge, refund or dispute."""

    def undelivered_events(
        self, *, since: datetime, types: tuple[str, ...]
    ) -> Iterator[tuple[ReceivedEvent, bytes]]:
        """Read events that no webhook endpoint has accepted, oldest first, each with a body to store."""

    def account_state(self) -> AccountState:
        """Read the account's settings, as far as the API tells them."""

    def read_webhook(self, *, body: bytes, signature: str) -> ReceivedEvent:
        """
        Check a webhook's signature (two secrets during rotation), age and mode.

        Raises:
            WebhookRefused: it is not what Stripe sent to us just now.
        """
