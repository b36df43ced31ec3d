"""
The interface to Stripe: the requests that the service makes, and the values that they return.

Money is in minor units, times are aware datetimes in UTC.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from payments.models import Settlement

LIVE_PREFIXES = ("sk_live_", "rk_live_")
TEST_PREFIXES = ("sk_test_", "rk_test_")


def is_live_key(secret_key: str) -> bool:
    """Return whether this secret or restricted key is a live-mode key, which moves real money."""
    return secret_key.startswith(LIVE_PREFIXES)


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomerState:
    """A customer with the user and profile it was created for; both are empty if another system created it."""

    customer_id: str
    user_id: str
    profile_address: str
    created_at: datetime
    is_live: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedCard:
    """The details by which users recognise their card; `brand` is Stripe's name, such as `visa`."""

    brand: str
    last4: str
    expires_month: int
    expires_year: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionState:
    """
    A subscription, with only the items of our product.

    `is_ours` means that it has such an item, `is_shared` that it also has items of other products, `is_plain` that it
    bills exactly one of our items, with quantity 1. `item_id` is the first of our items, `other_item_ids` are the
    others; `amount_minor` is the sum of their prices times quantities.

    `latest_invoice_id` is empty if there is no invoice yet. For the status `incomplete`, `past_due` or `unpaid`,
    `open_minor` is the amount of the open invoice. `payment_client_secret` is set while the invoice's payment waits for
    the card holder, `decline_code` if the payment was declined, `is_processing` while the bank has not decided.
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
    is_processing: bool = False
    open_minor: int = 0
    other_item_ids: tuple[str, ...] = ()
    is_ours: bool = True
    is_shared: bool = False
    is_plain: bool = True
    # How the latest invoice for a period was settled, or that it is waiting; empty if there is none.
    latest_invoice: str = ""
    # When the subscription ends, if a date was set at Stripe; it may be the period's end.
    cancels_at: datetime | None = None
    # Whether collection is paused (Stripe creates invoices but does not collect them), and until when, if known.
    is_resting: bool = False
    rests_until: datetime | None = None
    # Whether a schedule at Stripe decides the next amounts and the end.
    is_scheduled: bool = False
    # The time that the amount is for: `month`, `year`, `3 months`.
    interval: str = "month"
    # Whether Stripe sends invoices to be paid, instead of charging the card.
    is_invoiced: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class InvoiceState:
    """
    An invoice, with its lines of our product and the values that a payout depends on.

    `is_ours` means that it has such a line. The money that reached Stripe (the amount paid, less payments outside
    Stripe, from a credit balance or by credit notes) is divided among the lines in proportion to their amounts:
    `collected_minor` is the part of our lines without tax, `tax_minor` the tax on it, and `other_minor` the part of
    other lines. The period is that of our latest line that is not a proration, else of our latest proration; None if
    there is neither. `subscription_id` is empty for a one-off invoice.
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
    # The intents of further payments, if several were needed to pay the invoice.
    further_payment_ids: tuple[str, ...] = ()
    # How the invoice was settled.
    settlement: str = Settlement.COLLECTED
    # With tax; not positive if credit for earlier payments covered it, or if it was free.
    total_minor: int = 0
    # The number that the payer sees.
    number: str = ""
    # The payer's country, for which Stripe computes tax.
    country: str = ""
    # The key of the command that created the invoice; empty if staff or a subscription created it.
    operation: str = ""

    @property
    def payment_ids(self) -> tuple[str, ...]:
        """The payment intents of all payments of the invoice."""
        return (self.payment_intent_id, *self.further_payment_ids) if self.payment_intent_id else ()


@dataclass(frozen=True, slots=True)
class OpenPayment:
    """
    The payment of an open invoice: `client_secret` is set while it waits for the card holder, `decline_code` if it was
    declined, `is_processing` while the bank has not decided; none is set if it was not tried.
    """

    client_secret: str = ""
    decline_code: str = ""
    is_processing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class InvoiceSummary:
    """
    A finalized invoice as its payer sees it, with the URLs of Stripe's page and PDF; empty if there is none.

    `total_minor` includes `tax_minor`; `open_minor` is the amount left to pay.
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
    """Invoices, newest first, and whether there are more that are older than `last_id`."""

    invoices: tuple[InvoiceSummary, ...]
    has_more: bool
    last_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountState:
    """
    The settings of the account that Stripe's API returns.

    `webhook_types` has the event types that each enabled endpoint receives, by its URL; `*` stands for all.
    """

    webhook_types: dict[str, frozenset[str]]
    has_portal: bool
    has_unpaid_subscription: bool
    computes_tax: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnedMoney:
    """
    All money of a payment that was returned so far: refunds that did not fail, and withdrawn disputed sums.

    `failed_refunds` did not reach the payer: the id of each with Stripe's reason, also if it had succeeded before.
    `off_stripe_minor` was returned outside of Stripe, as credit notes of the invoice tell. If several payments paid an
    invoice, the amounts are sums over them, and the intent is that of the first.
    """

    payment_intent_id: str
    refunded_minor: int
    disputed_minor: int
    off_stripe_minor: int = 0
    failed_refunds: tuple[tuple[str, str], ...] = ()

    @property
    def total_minor(self) -> int:
        return self.refunded_minor + self.disputed_minor + self.off_stripe_minor


@dataclass(frozen=True, slots=True, kw_only=True)
class BalanceTransaction:
    """
    A movement of the account's balance: gross, Stripe's fee, and net, in the balance's currency.

    `charged_minor` and `charged_currency` are the same movement in the currency of the payment; `payment_intent_id` is
    empty if it belongs to no payment, as for bank payouts and Stripe's own fees.
    """

    transaction_id: str
    type: str
    category: str
    currency: str
    amount_minor: int
    fee_minor: int
    net_minor: int
    created_at: datetime
    payment_intent_id: str
    charged_minor: int
    charged_currency: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedEvent:
    """An event; `account` is set if it happened in another account, connected to ours."""

    event_id: str
    type: str
    api_version: str
    object_id: str
    created_at: datetime
    is_live: bool
    account: str = ""


class BillingClient(Protocol):
    """
    The requests to Stripe that the service needs.

    Commands take an idempotency key: the same key and arguments return the same result, so a repeat is safe.
    Every method raises `BillingUnavailable` if Stripe is unreachable, slow, busy or failing.
    """

    def create_customer(self, *, profile_address: str, user_id: str, key: str) -> str:
        """Create a customer and return its id."""

    def customer_made_for(self, *, customer_id: str) -> str:
        """Return the profile that a customer was made for; empty if staff or another system made or deleted it."""

    def is_customer_deleted(self, *, customer_id: str) -> bool:
        """Return whether this customer existed and was deleted, which is permanent."""

    def delete_customer(self, *, customer_id: str) -> None:
        """
        Delete the customer with its cards and subscriptions permanently; repeating this changes nothing.

        A customer with a live subscription to another product stays, but the data that this service wrote is removed.
        """

    def create_setup_intent(self, *, customer_id: str) -> str:
        """Create a setup intent for off-session use and return its client secret."""

    def create_card_page(self, *, customer_id: str, return_url: str) -> str:
        """Create a page at Stripe that captures a card, and return its URL."""

    def create_portal_page(self, *, customer_id: str, return_url: str) -> str:
        """Create a session of Stripe's customer portal and return its URL."""

    def receipt_email(self, *, customer_id: str) -> str:
        """Return the e-mail address for receipts; empty for none."""

    def set_receipt_email(self, *, customer_id: str, email: str) -> None:
        """Set the e-mail address for receipts; an empty one deletes it."""

    def invoices(self, *, customer_id: str, limit: int, after: str) -> InvoicePage:
        """
        Read invoices of a customer for our product, newest first, that are older than the invoice `after`.

        Drafts are omitted, so a page may have fewer than `limit` invoices.
        """

    def invoice_summary(self, *, invoice_id: str) -> InvoiceSummary:
        """Read an invoice as its payer sees it."""

    def has_payment_method(self, *, customer_id: str) -> bool:
        """Make the newest card the default, and return whether the customer has a default payment method."""

    def customer_balance(self, *, customer_id: str, currency: str) -> int:
        """
        Return the balance that the next invoice in this currency would take up, in minor units.

        It is negative for a credit (docs.stripe.com/billing/customer/balance).
        """

    def saved_card(self, *, customer_id: str) -> SavedCard | None:
        """Read the newest card, which the next payment uses; None without one."""

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
        resumes: bool = False,
    ) -> SubscriptionState:
        """
        Set the amount from the next period on (None keeps it), and whether the current period is the last.

        A changed amount becomes that of one item with quantity 1, and `other_item_ids` are removed. `resumes` ends a
        pause of collection.
        """

    def cancel_subscription(self, *, subscription_id: str, key: str) -> SubscriptionState:
        """
        End the subscription at once, without refund or final invoice. A repeat returns the same state.

        A subscription that also bills other products continues without our items.
        """

    def create_purchase(
        self, *, customer_id: str, amount_minor: int, currency: str, key: str, has_expired_key: bool = False
    ) -> str:
        """
        Create a one-off invoice for our product, with tax in the amount, and return its id; nothing is collected.

        With `has_expired_key`, Stripe may have forgotten the key, so the client first looks for the invoice it created.
        """

    def void_invoice(self, *, invoice_id: str) -> None:
        """
        Void an open invoice, or delete a draft, so that it is never collected; leave any other invoice unchanged.

        Raises:
            PaymentProcessing: the bank has not decided about a payment of the invoice.
        """

    def open_payment(self, *, invoice_id: str) -> OpenPayment:
        """Read the state of an open invoice's payment: whether it waits for the card holder, or was declined."""

    def create_refund(self, *, payment_intent_id: str, amount_minor: int, key: str) -> str:
        """
        Refund money of a payment to its card and return the refund's id; once per key, however old the key is.

        Raises:
            BillingRefused: less than the amount is left to refund, or the payment is disputed.
        """

    def retrieve_subscription(self, *, subscription_id: str) -> SubscriptionState:
        """Read a subscription."""

    def next_charge(self, *, subscription_id: str) -> int | None:
        """Return the amount of a subscription's next invoice as Stripe previews it; None if there will be none."""

    def list_subscriptions(self, *, customer_id: str) -> list[SubscriptionState]:
        """Read all subscriptions of a customer to our product, including ended ones, newest first."""

    def pay_invoice(self, *, invoice_id: str) -> None:
        """
        Try to collect an open or draft invoice. If the card is declined, the subscription's state has the reason.

        Raises:
            PaymentProcessing: the bank has not decided about an earlier payment of the invoice.
        """

    def use_newest_card(self, *, customer_id: str) -> None:
        """Make the most recently captured card the default of the customer and its live subscriptions."""

    def payment_method_of_setup(self, *, setup_intent_id: str) -> tuple[str, str]:
        """Return (customer id, payment method id) of a succeeded setup intent."""

    def retrieve_invoice(self, *, invoice_id: str) -> InvoiceState:
        """Read an invoice."""

    def paid_invoices_since(self, *, since: datetime) -> Iterator[InvoiceState]:
        """Read paid invoices created since then, and older ones paid since then, if within 30 days; page by page."""

    def part_paid_invoices_since(self, *, since: datetime) -> Iterator[InvoiceState]:
        """Read the partly paid invoices created since then, page by page."""

    def customers(self) -> Iterator[CustomerState]:
        """Read every customer of the account that is not deleted, including those of other systems, page by page."""

    def live_subscriptions(self, *, customer_id: str = "") -> Iterator[SubscriptionState]:
        """Read every live subscription to our product, of one customer or of all, newest first."""

    def refunded_or_disputed_since(self, *, since: datetime) -> Iterator[str]:
        """
        Read the payment intents of all refunds, disputes, and credit notes paid out of band, created since then.

        Some may occur more than once.
        """

    def fraud_warnings_since(self, *, since: datetime) -> Iterator[str]:
        """Read the payment intents of card networks' early fraud warnings that can still be acted on, page by page."""

    def returned_money(self, *, payment_intent_id: str) -> ReturnedMoney:
        """Read the amounts of one payment that were refunded or disputed."""

    def credited_off_stripe(self, *, invoice_id: str) -> int:
        """Return the sum of an invoice's credit notes that was returned outside of Stripe."""

    def invoice_of_credit_note(self, *, credit_note_id: str) -> str:
        """Return the invoice of a credit note."""

    def paid_with(self, *, payment_intent_id: str) -> int:
        """Return the amount that a payment has collected, before refunds and disputes."""

    def balance_transactions(self, *, since: datetime, until: datetime) -> Iterator[BalanceTransaction]:
        """Read the movements of the account's balance from `since` until before `until`, newest first, page by page."""

    def payment_intent_of(self, *, object_id: str) -> str:
        """Return the payment intent of a charge, refund, dispute or early fraud warning."""

    def undelivered_events(
        self, *, since: datetime, types: tuple[str, ...]
    ) -> Iterator[tuple[ReceivedEvent, bytes]]:
        """Read events that no webhook endpoint has accepted, oldest first, each with a body to store."""

    def account_state(self) -> AccountState:
        """Read the settings of the Stripe account, as far as Stripe's API returns them."""

    def read_webhook(self, *, body: bytes, signature: str) -> ReceivedEvent | None:
        """
        Check a webhook's signature (against two secrets during rotation) and age; None for events of no use here.

        Raises:
            WebhookRefused: Stripe did not send it to this service just now.
        """
