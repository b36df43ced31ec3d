"""The account as the service asks it."""

import json
import secrets
from collections.abc import Iterator, Sequence
from datetime import datetime

from payments.errors import BillingRefused
from payments.models import Settlement
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
    SavedCard,
    SubscriptionState,
)
from tests.fakes.billing.account import ENDED, Account, Customer, Invoice, Subscription, new_id


class AccountClient(Account):
    """The `BillingClient` of the account."""

    def create_customer(self, *, profile_address: str, user_id: str, key: str) -> str:
        self._count("create_customer")
        return self._idempotent(
            key, (profile_address, user_id), lambda: self._new_customer(user_id, profile_address)
        )

    def customer_made_for(self, *, customer_id: str) -> str:
        self._count("customer_made_for")
        return "" if self._is_deleted(customer_id) else self._customer(customer_id).profile_address

    def is_customer_deleted(self, *, customer_id: str) -> bool:
        self._count("is_customer_deleted")
        return self._is_deleted(customer_id)

    def create_setup_intent(self, *, customer_id: str) -> str:
        self._count("create_setup_intent")
        identifier = new_id("seti")
        self._setups[identifier] = (self._customer(customer_id).id, "")
        return f"{identifier}_secret_{secrets.token_hex(8)}"

    def create_card_page(self, *, customer_id: str, return_url: str) -> str:
        self._count("create_card_page")
        return f"https://checkout.example/{self._customer(customer_id).id}/{new_id('cs')}"

    def create_portal_page(self, *, customer_id: str, return_url: str) -> str:
        self._count("create_portal_page")
        return f"https://portal.example/{self._customer(customer_id).id}/{new_id('bps')}"

    def receipt_email(self, *, customer_id: str) -> str:
        self._count("receipt_email")
        return self._customer(customer_id).email

    def set_receipt_email(self, *, customer_id: str, email: str) -> None:
        self._count("set_receipt_email")
        self._customer(customer_id).email = email

    def invoices(self, *, customer_id: str, limit: int, after: str) -> InvoicePage:
        self._count("invoices")
        mine = [row for row in self._invoices.values() if row.customer.id == customer_id][::-1]
        start = 1 + [row.id for row in mine].index(after) if after else 0
        page = mine[start : start + limit]
        return InvoicePage(
            invoices=tuple(_summary(row) for row in page if row.status != "draft"),
            has_more=len(mine) > start + limit,
            last_id=page[-1].id if page else "",
        )

    def invoice_summary(self, *, invoice_id: str) -> InvoiceSummary:
        self._count("invoice_summary")
        return _summary(self._invoices[invoice_id])

    def has_payment_method(self, *, customer_id: str) -> bool:
        self._count("has_payment_method")
        customer = self._customer(customer_id)
        customer.default = customer.cards[-1] if customer.cards else customer.default
        return customer.default is not None

    def customer_balance(self, *, customer_id: str, currency: str) -> int:
        self._count("customer_balance")
        self._customer(customer_id)
        return 0

    def saved_card(self, *, customer_id: str) -> SavedCard | None:
        self._count("saved_card")
        cards = self._customer(customer_id).cards
        if not cards:
            return None
        return SavedCard(brand="visa", last4=cards[-1].last4, expires_month=12, expires_year=2099)

    def create_subscription(
        self, *, customer_id: str, amount_minor: int, currency: str, cancels_at_period_end: bool, key: str
    ) -> SubscriptionState:
        self._count("create_subscription")
        parameters = (customer_id, amount_minor, currency, cancels_at_period_end)
        return self._state(self._idempotent(key, parameters, lambda: self._new_subscription(*parameters)))

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
        self._count("update_subscription")
        subscription = self._subscription(subscription_id)
        if (
            subscription.status in (*ENDED, "incomplete")
            or item_id != subscription.item_id
            or currency != subscription.currency
        ):
            raise BillingRefused("Stripe refused the request.", reason="invalid_request")

        def change() -> str:
            subscription.amount = amount_minor or subscription.amount
            subscription.cancels_at_period_end = cancels_at_period_end
            self._emit("customer.subscription.updated", subscription_id)
            return subscription_id

        parameters = (subscription_id, amount_minor, cancels_at_period_end)
        return self._state(self._idempotent(key, parameters, change))

    def cancel_subscription(self, *, subscription_id: str, key: str) -> SubscriptionState:
        self._count("cancel_subscription")
        subscription = self._subscription(subscription_id)
        if subscription.status not in ENDED:
            self._end(subscription, self._now)
        return self._state(subscription_id)

    def create_purchase(
        self, *, customer_id: str, amount_minor: int, currency: str, key: str, has_expired_key: bool = False
    ) -> str:
        self._count("create_purchase")
        parameters = (customer_id, amount_minor, currency)
        return self._idempotent(key, parameters, lambda: self._new_purchase(*parameters, key))

    def void_invoice(self, *, invoice_id: str) -> None:
        self._count("void_invoice")
        invoice = self._invoices.get(invoice_id)
        if invoice is not None and invoice.status == "draft":
            del self._invoices[invoice_id]
        elif invoice is not None and invoice.status == "open":
            invoice.status = "void"
            self._emit("invoice.voided", invoice_id)

    def open_payment(self, *, invoice_id: str) -> OpenPayment:
        self._count("open_payment")
        invoice = self._invoice(invoice_id)
        secret = f"{invoice.intent}_secret_{invoice.id}" if invoice.needs_confirmation else ""
        return OpenPayment(secret, invoice.decline_code)

    def create_refund(self, *, payment_intent_id: str, amount_minor: int, key: str) -> str:
        self._count("create_refund")

        def refund() -> str:
            disputed = any(pi == payment_intent_id and out for pi, _, out in self.disputes.values())
            if disputed or amount_minor > self._paid_with(payment_intent_id) - self.refunded(
                payment_intent_id
            ):
                raise BillingRefused("Stripe refused the request.", reason="charge_already_refunded")
            return self.refund(payment_intent_id, amount_minor)

        return self._idempotent(key, (payment_intent_id, amount_minor), refund)

    def retrieve_subscription(self, *, subscription_id: str) -> SubscriptionState:
        self._count("retrieve_subscription")
        return self._state(subscription_id)

    def next_charge(self, *, subscription_id: str) -> int | None:
        self._count("next_charge")
        row = self._subscription(subscription_id)
        goes_on = row.status in ("active", "past_due") and not row.cancels_at_period_end
        return row.amount if goes_on else None

    def fraud_warnings_since(self, *, since: datetime) -> Iterator[str]:
        self._count("fraud_warnings_since")
        yield from self.fraud_warnings

    def list_subscriptions(self, *, customer_id: str) -> list[SubscriptionState]:
        self._count("list_subscriptions")
        rows = [
            subscription.id
            for subscription in self._subscriptions.values()
            if subscription.customer.id == customer_id
        ]
        return [self._state(identifier) for identifier in reversed(rows)]

    def pay_invoice(self, *, invoice_id: str) -> None:
        self._count("pay_invoice")
        invoice = self._invoice(invoice_id)
        if invoice.status in ("open", "draft"):
            invoice.status = "open"
            self._collect(invoice)

    def use_newest_card(self, *, customer_id: str) -> None:
        self._count("use_newest_card")
        customer = self._customer(customer_id)
        customer.default = customer.cards[-1] if customer.cards else None

    def payment_method_of_setup(self, *, setup_intent_id: str) -> tuple[str, str]:
        self._count("payment_method_of_setup")
        return self._setups[setup_intent_id]

    def retrieve_invoice(self, *, invoice_id: str) -> InvoiceState:
        self._count("retrieve_invoice")
        return _invoice_state(self._invoice(invoice_id))

    def paid_invoices_since(self, *, since: datetime) -> Iterator[InvoiceState]:
        self._count("paid_invoices_since")
        for invoice in reversed(self._invoices.values()):
            if invoice.paid_at is not None and invoice.paid_at >= since.replace(microsecond=0):
                yield _invoice_state(invoice)

    def part_paid_invoices_since(self, *, since: datetime) -> Iterator[InvoiceState]:
        """Yield nothing: each payment here is of a whole invoice."""
        self._count("part_paid_invoices_since")
        yield from ()

    def customers(self) -> Iterator[CustomerState]:
        self._count("customers")
        live = [customer for customer in self._customers.values() if not customer.is_deleted]
        yield from map(_customer_state, reversed(live))

    def live_subscriptions(self, *, customer_id: str = "") -> Iterator[SubscriptionState]:
        self._count("live_subscriptions")
        for subscription in list(self._subscriptions.values())[::-1]:
            if subscription.status not in ENDED and customer_id in {"", subscription.customer.id}:
                yield self._state(subscription.id)

    def refunded_or_disputed_since(self, *, since: datetime) -> Iterator[str]:
        self._count("refunded_or_disputed_since")
        for identifier, (payment_intent, *_) in {**self._refunds, **self.disputes}.items():
            if self._begun[identifier] >= since.replace(microsecond=0):
                yield payment_intent

    def returned_money(self, *, payment_intent_id: str) -> ReturnedMoney:
        self._count("returned_money")
        return ReturnedMoney(
            payment_intent_id=payment_intent_id,
            refunded_minor=sum(amount for pi, amount in self._refunds.values() if pi == payment_intent_id),
            disputed_minor=sum(
                amount
                for pi, amount, is_withdrawn in self.disputes.values()
                if pi == payment_intent_id and is_withdrawn
            ),
            failed_refunds=tuple(
                (refund, "lost_or_stolen_card")
                for refund, (pi, amount) in self._refunds.items()
                if pi == payment_intent_id and not amount
            ),
        )

    def credited_off_stripe(self, *, invoice_id: str) -> int:
        """Return 0: nobody issues credit notes here."""
        self._count("credited_off_stripe")
        return 0

    def invoice_of_credit_note(self, *, credit_note_id: str) -> str:
        self._count("invoice_of_credit_note")
        return ""

    def paid_with(self, *, payment_intent_id: str) -> int:
        self._count("paid_with")
        return self._paid_with(payment_intent_id)

    def balance_transactions(self, *, since: datetime, until: datetime) -> Iterator[BalanceTransaction]:
        self._count("balance_transactions")
        yield from (row for row in reversed(self.movements) if since <= row.created_at < until)

    def payment_intent_of(self, *, object_id: str) -> str:
        self._count("payment_intent_of")
        payments = {**self._refunds, **self.disputes}
        return str(payments[object_id][0]) if object_id in payments else ""

    def undelivered_events(
        self, *, since: datetime, types: tuple[str, ...]
    ) -> Iterator[tuple[ReceivedEvent, bytes]]:
        self._count("undelivered_events")
        for body in self._undelivered:
            event = objects.received_event(json.loads(body))
            if event.type in types and event.created_at >= since.replace(microsecond=0):
                yield event, body

    def account_state(self) -> AccountState:
        self._count("account_state")
        return self.settings

    def read_webhook(self, *, body: bytes, signature: str) -> ReceivedEvent | None:
        return webhooks.read_webhook(body=body, signature=signature, secrets=self._secrets)

    def _state(self, subscription_id: str) -> SubscriptionState:
        return _subscription_state(self._subscription(subscription_id))


def _summary(invoice: Invoice) -> InvoiceSummary:
    return InvoiceSummary(
        invoice_id=invoice.id,
        number=invoice.id[-8:],
        status=invoice.status,
        currency=invoice.currency,
        total_minor=invoice.amount,
        tax_minor=0,
        open_minor=invoice.amount if invoice.status == "open" else 0,
        created_at=invoice.created,
        page_url=f"https://invoice.example/{invoice.id}",
        pdf_url=f"https://invoice.example/{invoice.id}.pdf",
    )


def _customer_state(customer: Customer) -> CustomerState:
    return CustomerState(
        customer_id=customer.id,
        user_id=customer.user_id,
        profile_address=customer.profile_address,
        created_at=customer.created,
        is_live=False,
    )


def _subscription_state(subscription: Subscription) -> SubscriptionState:
    latest = subscription.invoices[-1]
    is_due = subscription.status in ("incomplete", "past_due", "unpaid") and latest.status in (
        "open",
        "draft",
    )
    waits = is_due and latest.status == "open"
    needs_confirmation = waits and latest.needs_confirmation
    return SubscriptionState(
        subscription_id=subscription.id,
        customer_id=subscription.customer.id,
        item_id=subscription.item_id,
        status=subscription.status,
        amount_minor=subscription.amount,
        currency=subscription.currency,
        current_period_start=subscription.boundary(subscription.period),
        current_period_end=subscription.boundary(subscription.period + 1),
        cancels_at_period_end=subscription.cancels_at_period_end,
        cancels_at=subscription.boundary(subscription.period + 1)
        if subscription.cancels_at_period_end
        else None,
        ended_at=subscription.ended_at,
        latest_invoice_id=latest.id,
        latest_invoice=_settlement(latest),
        payment_client_secret=f"{latest.intent}_secret_{latest.id}" if needs_confirmation else "",
        decline_code=latest.decline_code if waits else "",
        open_minor=latest.amount if is_due else 0,
    )


def _invoice_state(invoice: Invoice) -> InvoiceState:
    return InvoiceState(
        invoice_id=invoice.id,
        customer_id=invoice.customer.id,
        subscription_id=invoice.subscription.id if invoice.subscription else "",
        status=invoice.status,
        billing_reason=invoice.reason,
        currency=invoice.currency,
        collected_minor=invoice.collected,
        period_start=invoice.period[0] if invoice.subscription else None,
        period_end=invoice.period[1] if invoice.subscription else None,
        payment_intent_id=invoice.intent,
        paid_at=invoice.paid_at,
        is_live=False,
        settlement=_settlement(invoice),
        total_minor=invoice.amount,
        operation=invoice.operation,
    )


def _settlement(invoice: Invoice) -> Settlement:
    if invoice.status in ("open", "draft"):
        return Settlement.WAITING
    if invoice.status == "void":
        return Settlement.VOID
    if invoice.collected:
        return Settlement.COLLECTED
    return Settlement.OFF_STRIPE if invoice.intent else Settlement.CARRIED
