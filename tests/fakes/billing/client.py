"""The account as the service asks it."""

import json
import secrets
from collections.abc import Iterator
from datetime import datetime

from payments.errors import BillingRefused
from payments.stripe import objects, webhooks
from payments.stripe.client import (
    CustomerState,
    InvoiceState,
    ReceivedEvent,
    ReturnedMoney,
    SubscriptionState,
)
from tests.fakes.billing.books import Books
from tests.fakes.billing.states import customer_state, invoice_state
from tests.fakes.billing.things import ENDED, new


class Client(Books):
    """The `BillingClient` over the account."""

    def create_customer(self, *, profile_address: str, user_id: str, key: str) -> str:
        self._ask("create_customer")
        return self._once(
            key, (profile_address, user_id), lambda: self._new_customer(user_id, profile_address)
        )

    def create_setup_intent(self, *, customer_id: str) -> str:
        self._ask("create_setup_intent")
        identifier = new("seti")
        self._setups[identifier] = (self._customer(customer_id).id, "")
        return f"{identifier}_secret_{secrets.token_hex(8)}"

    def has_payment_method(self, *, customer_id: str) -> bool:
        self._ask("has_payment_method")
        customer = self._customer(customer_id)
        customer.default = customer.cards[-1] if customer.cards else customer.default
        return customer.default is not None

    def create_subscription(
        self, *, customer_id: str, amount_minor: int, currency: str, cancels_at_period_end: bool, key: str
    ) -> SubscriptionState:
        self._ask("create_subscription")
        wanted = (customer_id, amount_minor, currency, cancels_at_period_end)
        return self._state(self._once(key, wanted, lambda: self._begin(*wanted)))

    def update_subscription(
        self,
        *,
        subscription_id: str,
        item_id: str,
        amount_minor: int | None,
        currency: str,
        cancels_at_period_end: bool,
        key: str,
    ) -> SubscriptionState:
        self._ask("update_subscription")
        found = self._subscription(subscription_id)
        if found.status in (*ENDED, "incomplete") or item_id != found.item_id or currency != found.currency:
            raise BillingRefused("Stripe refused the request.", reason="invalid_request")

        def change() -> str:
            found.amount = amount_minor or found.amount
            found.cancels = cancels_at_period_end
            self._tell("customer.subscription.updated", subscription_id)
            return subscription_id

        wanted = (subscription_id, amount_minor, cancels_at_period_end)
        return self._state(self._once(key, wanted, change))

    def cancel_subscription(self, *, subscription_id: str, key: str) -> SubscriptionState:
        self._ask("cancel_subscription")
        found = self._subscription(subscription_id)
        if found.status not in ENDED:
            self._end(found, self._now)
        return self._state(subscription_id)

    def retrieve_subscription(self, *, subscription_id: str) -> SubscriptionState:
        self._ask("retrieve_subscription")
        return self._state(subscription_id)

    def list_subscriptions(self, *, customer_id: str) -> list[SubscriptionState]:
        self._ask("list_subscriptions")
        rows = [found.id for found in self._subscriptions.values() if found.customer.id == customer_id]
        return [self._state(identifier) for identifier in reversed(rows)]

    def pay_open_invoice(self, *, invoice_id: str) -> None:
        self._ask("pay_open_invoice")
        invoice = self._invoice(invoice_id)
        if invoice.status == "open":
            self._collect(invoice)

    def use_newest_card(self, *, customer_id: str) -> None:
        self._ask("use_newest_card")
        customer = self._customer(customer_id)
        customer.default = customer.cards[-1] if customer.cards else None

    def payment_method_of_setup(self, *, setup_intent_id: str) -> tuple[str, str]:
        self._ask("payment_method_of_setup")
        return self._setups[setup_intent_id]

    def retrieve_invoice(self, *, invoice_id: str) -> InvoiceState:
        self._ask("retrieve_invoice")
        return invoice_state(self._invoice(invoice_id))

    def paid_invoices_since(self, *, since: datetime) -> Iterator[InvoiceState]:
        self._ask("paid_invoices_since")
        for invoice in reversed(self._invoices.values()):
            if invoice.status == "paid" and invoice.created >= since.replace(microsecond=0):
                yield invoice_state(invoice)

    def customers(self) -> Iterator[CustomerState]:
        self._ask("customers")
        yield from map(customer_state, reversed(self._customers.values()))

    def living_subscriptions(self) -> Iterator[SubscriptionState]:
        self._ask("living_subscriptions")
        for found in reversed(self._subscriptions.values()):
            if found.status not in ENDED:
                yield self._state(found.id)

    def refunded_or_disputed_since(self, *, since: datetime) -> Iterator[str]:
        self._ask("refunded_or_disputed_since")
        for identifier, (payment_intent, *_) in {**self._refunds, **self.disputes}.items():
            if self._begun[identifier] >= since.replace(microsecond=0):
                yield payment_intent

    def returned_money(self, *, payment_intent_id: str) -> ReturnedMoney:
        self._ask("returned_money")
        return ReturnedMoney(
            payment_intent_id=payment_intent_id,
            refunded_minor=sum(amount for pi, amount in self._refunds.values() if pi == payment_intent_id),
            disputed_minor=sum(
                amount for pi, amount, gone in self.disputes.values() if pi == payment_intent_id and gone
            ),
        )

    def payment_intent_of(self, *, object_id: str) -> str:
        self._ask("payment_intent_of")
        known = {**self._refunds, **self.disputes}
        return str(known[object_id][0]) if object_id in known else ""

    def undelivered_events(
        self, *, since: datetime, types: tuple[str, ...]
    ) -> Iterator[tuple[ReceivedEvent, bytes]]:
        self._ask("undelivered_events")
        for body in self._lost:
            event = objects.received_event(json.loads(body))
            if event.type in types and event.created_at >= since.replace(microsecond=0):
                yield event, body

    def read_webhook(self, *, body: bytes, signature: str) -> ReceivedEvent:
        return webhooks.read_webhook(body=body, signature=signature, secrets=self._secrets, is_live=False)
