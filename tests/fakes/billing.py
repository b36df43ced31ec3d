"""
A Stripe in memory behind the seam of `payments.stripe.client`.

The suite of `tests/payments/stripe` holds it to what the SDK answers. It collects once
per invoice, carries no balance from one invoice to the next and prorates nothing.
"""

import calendar
import json
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from payments.amounts import MINIMUM_CHARGE
from payments.errors import BillingRefused, BillingUnavailable, PaymentMethodRequired
from payments.stripe import webhooks
from payments.stripe.states import InvoiceState, MoneyBack, ReceivedEvent, SubscriptionState

_ENDED = ("canceled", "incomplete_expired")
_HOUR = timedelta(hours=1)
_Answer = TypeVar("_Answer")


@dataclass
class _Card:
    id: str
    declines: str = ""
    asks: bool = False


@dataclass
class _Customer:
    id: str
    cards: list[_Card] = field(default_factory=list)
    default: _Card | None = None


@dataclass
class _Subscription:
    id: str
    item_id: str
    customer: _Customer
    amount: int
    currency: str
    anchor: datetime
    cancels: bool
    status: str = "incomplete"
    period: int = 0
    ended_at: datetime | None = None
    invoices: list["_Invoice"] = field(default_factory=list)

    def boundary(self, number: int) -> datetime:
        years, month = divmod(self.anchor.month - 1 + number, 12)
        year = self.anchor.year + years
        last = calendar.monthrange(year, month + 1)[1]
        return self.anchor.replace(year=year, month=month + 1, day=min(self.anchor.day, last))


@dataclass
class _Invoice:
    id: str
    subscription: _Subscription
    reason: str
    amount: int
    created: datetime
    period: tuple[datetime, datetime]
    intent: str
    status: str = "open"
    collected: int = 0
    paid_at: datetime | None = None
    failure: str = ""
    asks: bool = False


class FakeBilling:
    """
    The client, and the levers of `tests.payments.worlds.World` over the same account.

    `asked` counts the calls by method name; `events` keeps the body of everything told.
    """

    def __init__(self, *, webhook_secrets: Sequence[str] = (), begins_at: datetime | None = None) -> None:
        self.asked: Counter[str] = Counter()
        self.events: list[bytes] = []
        self._secrets = tuple(webhook_secrets)
        self._now = (begins_at or datetime.now(UTC)).replace(microsecond=0)
        self._answers: dict[str, tuple[object, str]] = {}
        self._customers: dict[str, _Customer] = {}
        self._setups: dict[str, tuple[str, str]] = {}
        self._subscriptions: dict[str, _Subscription] = {}
        self._invoices: dict[str, _Invoice] = {}
        self._refunds: dict[str, list[Any]] = {}
        self.disputes: dict[str, list[Any]] = {}
        self._lost: list[bytes] = []
        self._loses = self._is_away = False

    # --- the client

    def create_customer(self, *, profile_address: str, user_id: str, key: str) -> str:
        self._ask("create_customer")
        return self._once(key, (profile_address, user_id), self._new_customer)

    def create_setup_intent(self, *, customer_id: str) -> str:
        self._ask("create_setup_intent")
        identifier = _new("seti")
        self._setups[identifier] = (self._customer(customer_id).id, "")
        return f"{identifier}_secret_{secrets.token_hex(8)}"

    def has_payment_method(self, *, customer_id: str) -> bool:
        self._ask("has_payment_method")
        customer = self._customer(customer_id)
        customer.default = customer.default or (customer.cards[-1] if customer.cards else None)
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
        if found.status in (*_ENDED, "incomplete") or item_id != found.item_id or currency != found.currency:
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
        if found.status not in _ENDED:
            self._end(found, self._now)
        return self._state(subscription_id)

    def retrieve_subscription(self, *, subscription_id: str) -> SubscriptionState:
        self._ask("retrieve_subscription")
        return self._state(subscription_id)

    def list_subscriptions(self, *, customer_id: str) -> list[SubscriptionState]:
        self._ask("list_subscriptions")
        rows = [found.id for found in self._subscriptions.values() if found.customer.id == customer_id]
        return [self._state(identifier) for identifier in reversed(rows)]

    def pay_open_invoice(self, *, invoice_id: str) -> SubscriptionState | None:
        self._ask("pay_open_invoice")
        invoice = self._invoice(invoice_id)
        if invoice.status != "open":
            return None
        self._collect(invoice)
        return self._state(invoice.subscription.id)

    def use_newest_card(self, *, customer_id: str) -> None:
        self._ask("use_newest_card")
        customer = self._customer(customer_id)
        customer.default = customer.cards[-1] if customer.cards else None

    def payment_method_of_setup(self, *, setup_intent_id: str) -> tuple[str, str]:
        self._ask("payment_method_of_setup")
        return self._setups[setup_intent_id]

    def retrieve_invoice(self, *, invoice_id: str) -> InvoiceState:
        self._ask("retrieve_invoice")
        return _invoice_state(self._invoice(invoice_id))

    def paid_invoices_since(self, *, since: datetime) -> Iterator[InvoiceState]:
        self._ask("paid_invoices_since")
        for invoice in reversed(self._invoices.values()):
            if invoice.status == "paid" and invoice.created >= since.replace(microsecond=0):
                yield _invoice_state(invoice)

    def money_back(self, *, payment_intent_id: str) -> MoneyBack:
        self._ask("money_back")
        return MoneyBack(
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
            event = webhooks.event_of(json.loads(body))
            if event.type in types and event.created_at >= since.replace(microsecond=0):
                yield event, body

    def read_webhook(self, *, body: bytes, signature: str) -> ReceivedEvent:
        return webhooks.read(body=body, signature=signature, secrets=self._secrets, is_live=False)

    # --- the levers

    @contextmanager
    def away(self) -> Iterator[None]:
        """Let Stripe not answer inside the block."""
        self._is_away = True
        try:
            yield
        finally:
            self._is_away = False

    def now(self) -> datetime:
        return self._now

    def pass_time(self, seconds: int) -> None:
        target = self._now + timedelta(seconds=seconds)
        while (due := self._next_due(target)) is not None:
            self._now, act = due
            act()
        self._now = target

    def capture(self, customer_id: str, card: str = "pm_card_visa") -> str:
        declines = "generic_decline" if "Fail" in card else ""
        kept = _Card(_new("pm"), declines=declines, asks="authentication" in card)
        self._customer(customer_id).cards.append(kept)
        identifier = _new("seti")
        self._setups[identifier] = (customer_id, kept.id)
        self._tell("setup_intent.succeeded", identifier)
        return identifier

    def decline_from_now(self, payment_method_id: str, code: str | None) -> None:
        for customer in self._customers.values():
            for card in customer.cards:
                if card.id == payment_method_id:
                    card.declines = code or ""

    def confirm(self, client_secret: str) -> None:
        intent = client_secret.split("_secret_")[0]
        invoice = next(found for found in self._invoices.values() if found.intent == intent)
        self._mark_paid(invoice, invoice.amount)

    def refund(self, payment_intent: str, amount: int | None = None) -> str:
        left = self._paid_with(payment_intent) - self.refunded(payment_intent)
        identifier = _new("re")
        self._refunds[identifier] = [payment_intent, amount or left]
        self._tell("refund.created", identifier)
        return identifier

    def fail_refund(self, refund: str) -> None:
        self._refunds[refund][1] = 0
        self._tell("refund.failed", refund)

    def dispute(self, payment_intent: str, amount: int | None = None, *, withdraw: bool = True) -> str:
        left = self._paid_with(payment_intent) - self.refunded(payment_intent)
        identifier = _new("du")
        self.disputes[identifier] = [payment_intent, amount or left, False]
        self._tell("charge.dispute.created", identifier)
        if withdraw:
            self.withdraw(identifier)
        return identifier

    def withdraw(self, dispute: str) -> None:
        self.disputes[dispute][2] = True
        self._tell("charge.dispute.funds_withdrawn", dispute)

    def reinstate(self, dispute: str) -> None:
        self.disputes[dispute][2] = False
        self._tell("charge.dispute.funds_reinstated", dispute)

    def pay_out_of_band(self, invoice: str) -> None:
        self._mark_paid(self._invoice(invoice), 0)

    def lose_deliveries(self) -> None:
        self._loses = True

    # --- inside

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

    def _new_customer(self) -> str:
        customer = _Customer(_new("cus"))
        self._customers[customer.id] = customer
        return customer.id

    def _begin(self, customer_id: str, amount: int, currency: str, cancels: bool) -> str:
        customer = self._customer(customer_id)
        if customer.default is None:
            raise PaymentMethodRequired("Capture a card with getSetupIntent first.")
        made = _Subscription(_new("sub"), _new("si"), customer, amount, currency, self._now, cancels)
        self._subscriptions[made.id] = made
        self._tell("customer.subscription.created", made.id)
        self._collect(self._bill(made, "subscription_create"))
        return made.id

    def _bill(self, subscription: _Subscription, reason: str) -> _Invoice:
        period = (subscription.boundary(subscription.period), subscription.boundary(subscription.period + 1))
        invoice = _Invoice(
            _new("in"), subscription, reason, subscription.amount, self._now, period, intent=_new("pi")
        )
        subscription.invoices.append(invoice)
        self._invoices[invoice.id] = invoice
        return invoice

    def _collect(self, invoice: _Invoice) -> None:
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

    def _mark_paid(self, invoice: _Invoice, collected: int) -> None:
        invoice.status, invoice.collected, invoice.paid_at = "paid", collected, self._now
        self._tell("invoice.paid", invoice.id)
        if invoice.subscription.status not in _ENDED:
            invoice.subscription.status = "active"
            self._tell("customer.subscription.updated", invoice.subscription.id)

    def _mark_failed(self, invoice: _Invoice) -> None:
        self._tell("invoice.payment_failed", invoice.id)
        if invoice.subscription.status == "active":
            invoice.subscription.status = "past_due"
            self._tell("customer.subscription.updated", invoice.subscription.id)

    def _end(self, found: _Subscription, at: datetime) -> None:
        if found.status == "incomplete":
            found.invoices[-1].status = "void"
            self._tell("invoice.voided", found.invoices[-1].id)
        found.status, found.ended_at = "canceled", at
        self._tell("customer.subscription.deleted", found.id)

    def _turn(self, found: _Subscription) -> None:
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
            if invoice.status == "draft" and invoice.subscription.status not in _ENDED
        ]
        first = min([*turns, *collections], key=lambda item: item[0], default=None)
        return first if first is not None and first[0] <= target else None

    def _finalize(self, invoice: _Invoice) -> None:
        invoice.status = "open"
        self._collect(invoice)

    def _state(self, subscription_id: str) -> SubscriptionState:
        found = self._subscription(subscription_id)
        latest = found.invoices[-1]
        waits = found.status == "incomplete"
        return SubscriptionState(
            subscription_id=found.id,
            customer_id=found.customer.id,
            item_id=found.item_id,
            status=found.status,
            amount_minor=found.amount,
            currency=found.currency,
            current_period_start=found.boundary(found.period),
            current_period_end=found.boundary(found.period + 1),
            cancels_at_period_end=found.cancels,
            ended_at=found.ended_at,
            latest_invoice_id=latest.id,
            payment_client_secret=f"{latest.intent}_secret_{latest.id}" if waits and latest.asks else "",
            decline_code=latest.failure if waits else "",
        )

    def _tell(self, type: str, object_id: str) -> None:
        body = {
            "object": "event",
            "id": _new("evt"),
            "type": type,
            "api_version": "2026-10-28.endive",
            "created": int(self._now.timestamp()),
            "livemode": False,
            "data": {"object": {"id": object_id}},
        }
        self.events.append(json.dumps(body).encode())
        if self._loses:
            self._lost.append(self.events[-1])

    def _customer(self, identifier: str) -> _Customer:
        return _found(self._customers, identifier)

    def _subscription(self, identifier: str) -> _Subscription:
        return _found(self._subscriptions, identifier)

    def _invoice(self, identifier: str) -> _Invoice:
        return _found(self._invoices, identifier)

    def _paid_with(self, intent: str) -> int:
        return sum(found.collected for found in self._invoices.values() if found.intent == intent)

    def refunded(self, intent: str) -> int:
        return sum(amount for pi, amount in self._refunds.values() if pi == intent)


def _found(things: dict[str, _Answer], identifier: str) -> _Answer:
    if identifier not in things:
        raise BillingRefused("Stripe refused the request.", reason="resource_missing")
    return things[identifier]


def _new(prefix: str) -> str:
    return f"{prefix}_{secrets.token_hex(10)}"


def _invoice_state(found: _Invoice) -> InvoiceState:
    subscription = found.subscription
    return InvoiceState(
        invoice_id=found.id,
        customer_id=subscription.customer.id,
        subscription_id=subscription.id,
        status=found.status,
        billing_reason=found.reason,
        currency=subscription.currency,
        collected_minor=found.collected,
        period_start=found.period[0],
        period_end=found.period[1],
        payment_intent_id=found.intent,
        paid_at=found.paid_at,
        is_live=False,
    )
