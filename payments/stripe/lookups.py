"""Reads from Stripe through its SDK; nothing here changes anything at Stripe."""

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any

import stripe

from payments.errors import BillingRefused, BillingUnavailable
from payments.models import Subscription
from payments.stripe import objects, webhooks
from payments.stripe.client import (
    AccountState,
    BalanceTransaction,
    CustomerState,
    InvoicePage,
    InvoiceState,
    InvoiceSummary,
    OpenPayment,
    ReceivedEvent,
    ReturnedMoney,
    SubscriptionState,
)
from payments.stripe.requests import GuardedClient, told, translated_errors

# The API version that `objects` reads. It is pinned so that an upgrade of the SDK does not change Stripe's responses.
API_VERSION = "2026-10-28.endive"
PAGE = {"limit": 100}
# Stripe accepts at most this many event types in one request.
_MOST_TYPES = 20
_NETWORK_RETRIES = 2
# Invoices that can be paid. Paying a draft finalizes it; renewals of an `unpaid` subscription stay drafts.
COLLECTABLE = ("open", "draft")
# The states of a finalized invoice that can still be paid.
UNPAID = ("open", "uncollectible")
PAYMENTS = ["payments"]
_DECIDED_FOR_US = ("won", "warning_closed", "prevented")
_LATEST_PAYMENTS = ["latest_invoice.payments"]
_LATEST_OF_EACH = ["data.latest_invoice"]


class Lookups:
    """Reads from the Stripe account of one key."""

    def __init__(
        self,
        *,
        secret_key: str,
        webhook_secrets: Sequence[str],
        api_base: str,
        timeout_seconds: int,
        product_id: str,
        automatic_tax: bool = False,
        places: int = 10,
    ) -> None:
        """Create a client; at most `places` threads of this process wait for Stripe at the same time."""
        self._webhook_secrets = tuple(webhook_secrets)
        self._timeout_seconds = timeout_seconds
        self._product_id, self._has_product = product_id, False
        self._automatic_tax = automatic_tax
        self._client = (
            stripe.StripeClient(
                secret_key,
                stripe_version=API_VERSION,
                base_addresses={"api": api_base},
                max_network_retries=_NETWORK_RETRIES,
                http_client=GuardedClient(timeout_seconds=timeout_seconds, places=places),
            )
            if secret_key
            else None
        )

    @property
    def _v1(self) -> Any:
        if self._client is None:
            raise BillingUnavailable("Payments are not set up on this service.", retry_after=3600)
        return self._client.v1

    def customer_made_for(self, *, customer_id: str) -> str:
        with translated_errors():
            customer = self._v1.customers.retrieve(customer_id)
            return "" if is_deleted(customer) else objects.customer_state(customer).profile_address

    def is_customer_deleted(self, *, customer_id: str) -> bool:
        with translated_errors():
            return is_deleted(self._v1.customers.retrieve(customer_id))

    def retrieve_subscription(self, *, subscription_id: str) -> SubscriptionState:
        with translated_errors():
            return self._subscription(subscription_id)

    def list_subscriptions(self, *, customer_id: str) -> list[SubscriptionState]:
        with translated_errors():
            return [self._state_of(row) for row in self._subscriptions_of(customer_id)]

    def next_charge(self, *, subscription_id: str) -> int | None:
        with translated_errors():
            try:
                preview = self._v1.invoices.create_preview({"subscription": subscription_id})
            except stripe.InvalidRequestError as error:
                if error.code == "invoice_upcoming_none":
                    return None
                raise
            return int(preview.amount_due)

    def retrieve_invoice(self, *, invoice_id: str) -> InvoiceState:
        with translated_errors():
            return self._invoice_state(self._v1.invoices.retrieve(invoice_id, {"expand": PAYMENTS}))

    def open_payment(self, *, invoice_id: str) -> OpenPayment:
        with translated_errors():
            return self._open_payment(self._v1.invoices.retrieve(invoice_id, {"expand": PAYMENTS}))

    def paid_invoices_since(self, *, since: datetime) -> Iterator[InvoiceState]:
        query = {"status": "paid", **_created_since(since), "expand": ["data.payments"]}
        with translated_errors():
            yield from map(self._invoice_state, self._v1.invoices.list(query).auto_paging_iter())
            # Stripe lists invoices by creation time only, but one may be paid on its hosted page months later.
            events = self._v1.events.list({"types": ["invoice.paid"], **_created_since(since)})
            for event in events.auto_paging_iter():
                if event.data.object.created < int(since.timestamp()):
                    yield self.retrieve_invoice(invoice_id=event.data.object.id)

    def part_paid_invoices_since(self, *, since: datetime) -> Iterator[InvoiceState]:
        with translated_errors():
            for status in ("open", "uncollectible", "void"):
                query = {"status": status, **_created_since(since), "expand": ["data.payments"]}
                for row in self._v1.invoices.list(query).auto_paging_iter():
                    if row.amount_paid:
                        yield self._invoice_state(row)

    def receipt_email(self, *, customer_id: str) -> str:
        with translated_errors():
            return str(self._existing_customer(customer_id).email or "")

    def invoices(self, *, customer_id: str, limit: int, after: str) -> InvoicePage:
        query = {"customer": customer_id, "limit": limit, **({"starting_after": after} if after else {})}
        with translated_errors():
            page = self._v1.invoices.list(query)
            ours = [row for row in page.data if row.status != "draft" and self._has_our_product(row)]
        summaries = tuple(map(objects.invoice_summary, ours))
        # The last row of Stripe's page, which may be an omitted draft.
        last_id = page.data[-1].id if page.data else ""
        return InvoicePage(invoices=summaries, has_more=bool(page.has_more), last_id=last_id)

    def invoice_summary(self, *, invoice_id: str) -> InvoiceSummary:
        with translated_errors():
            return objects.invoice_summary(self._v1.invoices.retrieve(invoice_id))

    def customer_balance(self, *, customer_id: str, currency: str) -> int:
        with translated_errors():
            customer = self._existing_customer(customer_id)
        return int(customer.balance) if customer.currency in {None, currency} else 0

    def _existing_customer(self, customer_id: str) -> Any:
        customer = self._v1.customers.retrieve(customer_id)
        if is_deleted(customer):
            raise BillingRefused("The customer is deleted at Stripe.", reason="resource_missing")
        return customer

    def customers(self) -> Iterator[CustomerState]:
        with translated_errors():
            yield from map(objects.customer_state, self._v1.customers.list(PAGE).auto_paging_iter())

    def live_subscriptions(self, *, customer_id: str = "") -> Iterator[SubscriptionState]:
        query = {**PAGE, "expand": _LATEST_OF_EACH, **({"customer": customer_id} if customer_id else {})}
        with translated_errors():
            # Without a status filter, Stripe omits only cancelled subscriptions.
            for row in self._v1.subscriptions.list(query).auto_paging_iter():
                state = self._state_of(row)
                if state.is_ours and state.status not in Subscription.ENDED:
                    yield state

    def refunded_or_disputed_since(self, *, since: datetime) -> Iterator[str]:
        with translated_errors():
            for resource in (self._v1.refunds, self._v1.disputes):
                rows = resource.list(_created_since(since)).auto_paging_iter()
                intents = (objects.id_of(row.payment_intent) for row in rows)
                yield from (intent for intent in intents if intent)
            for note in self._v1.credit_notes.list(_created_since(since)).auto_paging_iter():
                if note.out_of_band_amount:
                    query = {**PAGE, "invoice": objects.id_of(note.invoice)}
                    payments = self._v1.invoice_payments.list(query).auto_paging_iter()
                    yield from objects.payment_intents_of(list(payments))

    def fraud_warnings_since(self, *, since: datetime) -> Iterator[str]:
        with translated_errors():
            for row in self._v1.radar.early_fraud_warnings.list(_created_since(since)).auto_paging_iter():
                if row.actionable and row.payment_intent:
                    yield objects.id_of(row.payment_intent)

    def returned_money(self, *, payment_intent_id: str) -> ReturnedMoney:
        query = {**PAGE, "payment_intent": payment_intent_id}
        with translated_errors():
            refunds = list(self._v1.refunds.list(query).auto_paging_iter())
            disputes = self._v1.disputes.list(query).auto_paging_iter()
            return ReturnedMoney(
                payment_intent_id=payment_intent_id,
                refunded_minor=sum(row.amount for row in refunds if row.status in {"succeeded", "pending"}),
                disputed_minor=sum(map(_withdrawn, disputes)),
                failed_refunds=tuple(
                    (row.id, getattr(row, "failure_reason", None) or row.status)
                    for row in refunds
                    if row.status in {"failed", "canceled"}
                ),
            )

    def credited_off_stripe(self, *, invoice_id: str) -> int:
        with translated_errors():
            if not self._v1.invoices.retrieve(invoice_id).post_payment_credit_notes_amount:
                return 0
            notes = self._v1.credit_notes.list({**PAGE, "invoice": invoice_id}).auto_paging_iter()
            return sum(int(note.out_of_band_amount or 0) for note in notes if note.status == "issued")

    def invoice_of_credit_note(self, *, credit_note_id: str) -> str:
        with translated_errors():
            return objects.id_of(self._v1.credit_notes.retrieve(credit_note_id).invoice)

    def paid_with(self, *, payment_intent_id: str) -> int:
        with translated_errors():
            return int(self._v1.payment_intents.retrieve(payment_intent_id).amount_received)

    def balance_transactions(self, *, since: datetime, until: datetime) -> Iterator[BalanceTransaction]:
        created = {"gte": int(since.timestamp()), "lt": int(until.timestamp())}
        query = {**PAGE, "created": created, "expand": ["data.source"]}
        with translated_errors():
            rows = self._v1.balance_transactions.list(query).auto_paging_iter()
            yield from map(objects.balance_transaction, rows)

    def payment_intent_of(self, *, object_id: str) -> str:
        with translated_errors():
            readers: dict[str, Callable[[str], Any]] = {
                "re": self._v1.refunds.retrieve,
                "pyr": self._v1.refunds.retrieve,
                "dp": self._v1.disputes.retrieve,
                "du": self._v1.disputes.retrieve,
                "ch": self._v1.charges.retrieve,
                "py": self._v1.charges.retrieve,
                "issfr": self._v1.radar.early_fraud_warnings.retrieve,
            }
            reader = readers.get(object_id.split("_", 1)[0])
            return objects.id_of(reader(object_id).payment_intent) if reader else ""

    def undelivered_events(
        self, *, since: datetime, types: tuple[str, ...]
    ) -> Iterator[tuple[ReceivedEvent, bytes]]:
        query = {"delivery_success": False, **_created_since(since)}
        groups = [list(types[start : start + _MOST_TYPES]) for start in range(0, len(types), _MOST_TYPES)]
        with translated_errors():
            # Stripe lists the newest first. Only the bytes are kept in memory: the SDK's objects are large, and
            # there are many after days without webhooks.
            received = [
                _received(row.to_dict())
                for group in groups
                for row in self._v1.events.list({**query, "types": group}).auto_paging_iter()
            ]
        # Oldest first, also among events of the same second.
        received.reverse()
        yield from sorted(received, key=lambda pair: pair[0].created_at)

    def account_state(self) -> AccountState:
        with translated_errors():
            endpoints = self._v1.webhook_endpoints.list(PAGE).auto_paging_iter()
            portals = self._v1.billing_portal.configurations.list({"active": True, "is_default": True}).data
            unpaid = self._v1.subscriptions.list({"status": "unpaid", "limit": 1}).data
            return AccountState(
                webhook_types={
                    row.url: frozenset(row.enabled_events) for row in endpoints if row.status == "enabled"
                },
                has_portal=bool(portals),
                has_unpaid_subscription=bool(unpaid),
                computes_tax=self._v1.tax.settings.retrieve().status == "active",
            )

    def read_webhook(self, *, body: bytes, signature: str) -> ReceivedEvent | None:
        return webhooks.read_webhook(body=body, signature=signature, secrets=self._webhook_secrets)

    def _subscriptions_of(self, customer_id: str) -> Iterator[Any]:
        """Yield a customer's subscriptions to our product, newest first."""
        query = {**PAGE, "customer": customer_id, "status": "all", "expand": _LATEST_OF_EACH}
        rows = self._v1.subscriptions.list(query)
        for row in rows.auto_paging_iter():
            if self._state_of(row).is_ours:
                yield row

    def _lines_of(self, invoice: Any) -> list[Any]:
        """Return every line; Stripe embeds only the first ten."""
        if not invoice.lines.has_more:
            return list(invoice.lines.data)
        return list(self._v1.invoices.line_items.list(invoice.id, PAGE).auto_paging_iter())

    def _invoice_state(self, invoice: Any) -> InvoiceState:
        return objects.invoice_state(
            invoice,
            lines=self._lines_of(invoice),
            payments=self._payments_of(invoice),
            product_id=self._product_id,
        )

    def _payments_of(self, invoice: Any) -> list[Any]:
        """Return every payment; if expanded, Stripe embeds only the first ones."""
        payments = getattr(invoice, "payments", None)
        if payments is None or not payments.has_more:
            return list(payments.data) if payments else []
        return list(self._v1.invoice_payments.list({**PAGE, "invoice": invoice.id}).auto_paging_iter())

    def _has_our_product(self, invoice: Any) -> bool:
        return any(objects.product_of(line) == self._product_id for line in self._lines_of(invoice))

    def _items_of(self, subscription: Any) -> list[Any]:
        """Return every item; Stripe embeds only the first ones."""
        items = subscription["items"]
        if not items.has_more:
            return list(items.data)
        query = {**PAGE, "subscription": subscription.id}
        return list(self._v1.subscription_items.list(query).auto_paging_iter())

    def _state_of(self, subscription: Any, **payment: Any) -> SubscriptionState:
        return objects.subscription_state(
            subscription, items=self._items_of(subscription), product_id=self._product_id, **payment
        )

    def _subscription(self, subscription_id: str) -> SubscriptionState:
        subscription = self._v1.subscriptions.retrieve(subscription_id, {"expand": _LATEST_PAYMENTS})
        invoice = subscription.latest_invoice
        if subscription.status not in Subscription.COLLECTABLE or isinstance(invoice, str | None):
            return self._state_of(subscription)
        if invoice.status not in COLLECTABLE:
            return self._state_of(subscription)
        payment = self._open_payment(invoice)
        return self._state_of(
            subscription,
            client_secret=payment.client_secret,
            decline_code=payment.decline_code,
            is_processing=payment.is_processing,
            open_minor=int(invoice.amount_remaining),
        )

    def _open_payment(self, invoice: Any) -> OpenPayment:
        open_payments = [row for row in self._payments_of(invoice) if row.status == "open"]
        intent_id = next(iter(objects.payment_intents_of(open_payments)), "")
        if not intent_id:
            return OpenPayment()
        intent = self._v1.payment_intents.retrieve(intent_id)
        if intent.status == "processing":
            return OpenPayment(is_processing=True)
        failure = intent.last_payment_error
        code = (getattr(failure, "decline_code", None) or failure.code) if failure else "generic_decline"
        # A bank may decline a payment because it requires 3-D Secure; the wallet then confirms the same payment.
        if intent.status == "requires_action" or code == "authentication_required":
            return OpenPayment(client_secret=str(intent.client_secret))
        return OpenPayment(decline_code=told(code))


def is_deleted(row: Any) -> bool:
    """Return whether this is the stub that Stripe returns for a deleted customer or product."""
    return bool(getattr(row, "deleted", False))


def _created_since(since: datetime) -> dict[str, Any]:
    return {**PAGE, "created": {"gte": int(since.timestamp())}}


def _received(event: dict[str, Any]) -> tuple[ReceivedEvent, bytes]:
    return objects.received_event(event), json.dumps(event, default=str).encode()


def _withdrawn(dispute: Any) -> int:
    """
    Return how much of the disputed sum was withdrawn from our account and not reinstated since.

    Of a dispute that was decided for us, nothing is. Else the movements tell: they may be in another currency than the
    payment, so only their proportion is used. Rates of exchange move between them, so they need not add up to 0.
    """
    if dispute.status in _DECIDED_FOR_US:
        return 0
    amounts = [int(entry.amount) for entry in dispute.balance_transactions or []]
    whole, out = -min([*amounts, 0]), -sum(amounts)
    return int(dispute.amount) * min(out, whole) // whole if out > 0 else 0
