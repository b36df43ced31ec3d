"""The account: what it holds, and what happens in it by itself."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from payments.amounts import MINIMUM_CHARGE
from payments.errors import BillingRefused, BillingUnavailable, PaymentMethodRequired
from payments.stripe.client import SubscriptionState
from tests.fakes.billing.states import subscription_state
from tests.fakes.billing.things import ENDED, Customer, Invoice, Subscription, found_in, new

_HOUR = timedelta(hours=1)


class Books:
    """The rows of one account, its clock and what it has told. `asked` counts the calls by method name."""

    def __init__(self, *, webhook_secrets: Sequence[str] = (), begins_at: datetime | None = None) -> None:
        self.asked: Counter[str] = Counter()
        self.events: list[bytes] = []
        self._secrets = tuple(webhook_secrets)
        self._now = (begins_at or datetime.now(UTC)).replace(microsecond=0)
        self._answers: dict[str, tuple[object, str]] = {}
        self._customers: dict[str, Customer] = {}
        self._setups: dict[str, tuple[str, str]] = {}
        self._subscriptions: dict[str, Subscription] = {}
        self._invoices: dict[str, Invoice] = {}
        self._refunds: dict[str, list[Any]] = {}
        self.disputes: dict[str, list[Any]] = {}
        self._begun: dict[str, datetime] = {}
        self._lost: list[bytes] = []
        self._loses = self._is_away = False

    def _ask(self, name: str) -> None:
        self.asked[name] += 1
        if self._is_away:
            raise BillingUnavailable("Stripe does not answer. Repeat the request.", retry_after=5)

    def _once(self, key: str, wanted: object, order: Callable[[], str]) -> str:
        if key not in self._answers:
            self._answers[key] = (wanted, order())
        if self._answers[key][0] != wanted:
            raise BillingRefused("Stripe refused the request.", reason="idempotency_error")
        return self._answers[key][1]

    def _new_customer(self, user_id: str, profile_address: str) -> str:
        customer = Customer(new("cus"), user_id, profile_address, self._now)
        self._customers[customer.id] = customer
        return customer.id

    def _begin(self, customer_id: str, amount: int, currency: str, cancels: bool) -> str:
        customer = self._customer(customer_id)
        if customer.default is None:
            raise PaymentMethodRequired("Capture a card with getSetupIntent first.")
        made = Subscription(new("sub"), new("si"), customer, amount, currency, self._now, cancels)
        self._subscriptions[made.id] = made
        self._tell("customer.subscription.created", made.id)
        self._collect(self._bill(made, "subscription_create"))
        return made.id

    def _bill(self, subscription: Subscription, reason: str) -> Invoice:
        period = (subscription.boundary(subscription.period), subscription.boundary(subscription.period + 1))
        invoice = Invoice(
            new("in"), subscription, reason, subscription.amount, self._now, period, intent=new("pi")
        )
        subscription.invoices.append(invoice)
        self._invoices[invoice.id] = invoice
        return invoice

    def _collect(self, invoice: Invoice) -> None:
        card = invoice.subscription.customer.default
        invoice.failure, invoice.asks = "", False
        if invoice.amount < MINIMUM_CHARGE[invoice.subscription.currency]:
            invoice.intent = ""
            self._mark_paid(invoice, 0)
        elif card is None or card.declines:
            invoice.failure = card.declines if card else "generic_decline"
            self._mark_failed(invoice)
        elif card.asks:
            invoice.asks = True
            self._mark_failed(invoice)
        else:
            self._mark_paid(invoice, invoice.amount)

    def _mark_paid(self, invoice: Invoice, collected: int) -> None:
        invoice.status, invoice.collected, invoice.paid_at = "paid", collected, self._now
        self._tell("invoice.paid", invoice.id)
        if invoice.subscription.status not in ENDED:
            invoice.subscription.status = "active"
            self._tell("customer.subscription.updated", invoice.subscription.id)

    def _mark_failed(self, invoice: Invoice) -> None:
        self._tell("invoice.payment_failed", invoice.id)
        if invoice.subscription.status == "active":
            invoice.subscription.status = "past_due"
            self._tell("customer.subscription.updated", invoice.subscription.id)

    def _end(self, found: Subscription, at: datetime) -> None:
        if found.status == "incomplete":
            found.invoices[-1].status = "void"
            self._tell("invoice.voided", found.invoices[-1].id)
        found.status, found.ended_at = "canceled", at
        self._tell("customer.subscription.deleted", found.id)

    def _turn(self, found: Subscription) -> None:
        if found.cancels:
            self._end(found, found.boundary(found.period + 1))
            return
        found.period += 1
        self._bill(found, "subscription_cycle").status = "draft"
        self._tell("customer.subscription.updated", found.id)

    def _next_due(self, target: datetime) -> tuple[datetime, Callable[[], None]] | None:
        turns: list[tuple[datetime, Callable[[], None]]] = [
            (found.boundary(found.period + 1), partial(self._turn, found))
            for found in self._subscriptions.values()
            if found.status in ("active", "past_due")
        ]
        collections: list[tuple[datetime, Callable[[], None]]] = [
            (invoice.created + _HOUR, partial(self._finalize, invoice))
            for invoice in self._invoices.values()
            if invoice.status == "draft" and invoice.subscription.status not in ENDED
        ]
        first = min([*turns, *collections], key=lambda item: item[0], default=None)
        return first if first is not None and first[0] <= target else None

    def _finalize(self, invoice: Invoice) -> None:
        invoice.status = "open"
        self._collect(invoice)

    def _state(self, subscription_id: str) -> SubscriptionState:
        return subscription_state(self._subscription(subscription_id))

    def _tell(self, type: str, object_id: str) -> None:
        body = {
            "object": "event",
            "id": new("evt"),
            "type": type,
            "api_version": "2026-10-28.endive",
            "created": int(self._now.timestamp()),
            "livemode": False,
            "data": {"object": {"id": object_id}},
        }
        self.events.append(json.dumps(body).encode())
        if self._loses:
            self._lost.append(self.events[-1])

    def _customer(self, identifier: str) -> Customer:
        return found_in(self._customers, identifier)

    def _subscription(self, identifier: str) -> Subscription:
        return found_in(self._subscriptions, identifier)

    def _invoice(self, identifier: str) -> Invoice:
        return found_in(self._invoices, identifier)

    def _paid_with(self, intent: str) -> int:
        return sum(found.collected for found in self._invoices.values() if found.intent == intent)

    def refunded(self, intent: str) -> int:
        return sum(amount for pi, amount in self._refunds.values() if pi == intent)
