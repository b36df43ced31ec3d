"""The account in memory: what it holds, and what happens in it by itself."""

import calendar
import copy
import json
import secrets
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Self, TypeVar

from payments.amounts import MINIMUM_CHARGE
from payments.errors import BillingRefused, BillingUnavailable, PaymentMethodRequired
from payments.stripe.client import AccountState, BalanceTransaction

ENDED = ("canceled", "incomplete_expired")
_HOUR = timedelta(hours=1)
# How long the first payment of a subscription may be made (Stripe, "subscription statuses").
_INCOMPLETE = timedelta(hours=23)
_Row = TypeVar("_Row")


@dataclass
class Card:
    """A captured card; `decline_code` is set if it is declined."""

    id: str
    decline_code: str = ""
    needs_confirmation: bool = False
    last4: str = "4242"


@dataclass
class Customer:
    """A customer with the cards, oldest first."""

    id: str
    user_id: str
    profile_address: str
    created: datetime
    cards: list[Card] = field(default_factory=list)
    default: Card | None = None
    is_deleted: bool = False
    email: str = ""


@dataclass
class Subscription:
    """A subscription with its one item and its invoices; `period` counts from 0."""

    id: str
    item_id: str
    customer: Customer
    amount: int
    currency: str
    anchor: datetime
    cancels_at_period_end: bool
    status: str = "incomplete"
    period: int = 0
    ended_at: datetime | None = None
    invoices: list["Invoice"] = field(default_factory=list)

    def boundary(self, number: int) -> datetime:
        """Return when the period of this number begins."""
        years, month = divmod(self.anchor.month - 1 + number, 12)
        year = self.anchor.year + years
        last = calendar.monthrange(year, month + 1)[1]
        return self.anchor.replace(year=year, month=month + 1, day=min(self.anchor.day, last))


@dataclass
class Invoice:
    """An invoice of a period, or of a purchase; `collected` is money that came in."""

    id: str
    customer: Customer
    currency: str
    subscription: Subscription | None
    reason: str
    amount: int
    created: datetime
    period: tuple[datetime, datetime]
    intent: str
    status: str = "open"
    collected: int = 0
    paid_at: datetime | None = None
    decline_code: str = ""
    needs_confirmation: bool = False
    operation: str = ""


class Account:
    """The rows of one account, its clock and its events. `calls` counts the client's calls by method name."""

    def __init__(self, *, webhook_secrets: Sequence[str] = (), begins_at: datetime | None = None) -> None:
        self.calls: Counter[str] = Counter()
        self.events: list[bytes] = []
        self._secrets = tuple(webhook_secrets)
        self._now = (begins_at or datetime.now(UTC)).replace(microsecond=0)
        self._responses_by_key: dict[str, tuple[object, str]] = {}
        self._customers: dict[str, Customer] = {}
        self._setups: dict[str, tuple[str, str]] = {}
        self._subscriptions: dict[str, Subscription] = {}
        self._invoices: dict[str, Invoice] = {}
        self._refunds: dict[str, list[Any]] = {}
        self.disputes: dict[str, list[Any]] = {}
        self.fraud_warnings: list[str] = []
        self._begun: dict[str, datetime] = {}
        self.movements: list[BalanceTransaction] = []
        self._undelivered: list[bytes] = []
        self._loses_deliveries = self._is_away = False
        self.settings = AccountState(
            webhook_types={}, has_portal=True, has_unpaid_subscription=False, computes_tax=False
        )

    def copy(self, *, webhook_secrets: Sequence[str]) -> Self:
        """Return another account that has the same past and signs with other secrets."""
        other = copy.deepcopy(self)
        other._secrets = tuple(webhook_secrets)
        return other

    def _count(self, name: str) -> None:
        self.calls[name] += 1
        if self._is_away:
            raise BillingUnavailable("Stripe does not respond. Repeat the request.", retry_after=5)

    def _idempotent(self, key: str, parameters: object, command: Callable[[], str]) -> str:
        if key not in self._responses_by_key:
            self._responses_by_key[key] = (parameters, command())
        first_parameters, result = self._responses_by_key[key]
        if first_parameters != parameters:
            raise BillingRefused("Stripe refused the request.", reason="idempotency_error")
        return result

    def _new_customer(self, user_id: str, profile_address: str) -> str:
        customer = Customer(new_id("cus"), user_id, profile_address, self._now)
        self._customers[customer.id] = customer
        return customer.id

    def _new_subscription(self, customer_id: str, amount: int, currency: str, cancels: bool) -> str:
        customer = self._customer(customer_id)
        if customer.default is None:
            raise PaymentMethodRequired("Save a card with getSetupIntent first.")
        subscription = Subscription(
            new_id("sub"), new_id("si"), customer, amount, currency, self._now, cancels
        )
        self._subscriptions[subscription.id] = subscription
        self._emit("customer.subscription.created", subscription.id)
        self._collect(self._new_invoice(subscription, "subscription_create"))
        return subscription.id

    def _new_invoice(self, subscription: Subscription, reason: str) -> Invoice:
        period = (subscription.boundary(subscription.period), subscription.boundary(subscription.period + 1))
        invoice = Invoice(
            new_id("in"),
            subscription.customer,
            subscription.currency,
            subscription,
            reason,
            subscription.amount,
            self._now,
            period,
            intent=new_id("pi"),
        )
        subscription.invoices.append(invoice)
        self._invoices[invoice.id] = invoice
        return invoice

    def _new_purchase(self, customer_id: str, amount: int, currency: str, key: str) -> str:
        invoice = Invoice(
            new_id("in"),
            self._customer(customer_id),
            currency,
            None,
            "manual",
            amount,
            self._now,
            (self._now, self._now),
            intent=new_id("pi"),
            status="draft",
            operation=key,
        )
        self._invoices[invoice.id] = invoice
        return invoice.id

    def _collect(self, invoice: Invoice) -> None:
        card = invoice.customer.default
        invoice.decline_code, invoice.needs_confirmation = "", False
        if invoice.amount < MINIMUM_CHARGE[invoice.currency]:
            invoice.intent = ""
            self._mark_paid(invoice, 0)
        elif card is None or card.decline_code:
            invoice.decline_code = card.decline_code if card else "generic_decline"
            self._mark_failed(invoice)
        elif card.needs_confirmation:
            invoice.needs_confirmation = True
            self._mark_failed(invoice)
        else:
            self._mark_paid(invoice, invoice.amount)

    def _mark_paid(self, invoice: Invoice, collected: int) -> None:
        invoice.status, invoice.collected, invoice.paid_at = "paid", collected, self._now
        self._move("charge", invoice.intent, collected, fee=round(collected * 0.029) + 30)
        self._emit("invoice.paid", invoice.id)
        if invoice.subscription is not None and invoice.subscription.status not in ENDED:
            invoice.subscription.status = "active"
            self._emit("customer.subscription.updated", invoice.subscription.id)

    def _move(self, category: str, intent: str, amount: int, *, fee: int = 0) -> None:
        if not amount:
            return
        currency = next(row.currency for row in self._invoices.values() if row.intent == intent)
        self.movements.append(
            BalanceTransaction(
                transaction_id=new_id("txn"),
                type="adjustment" if category.startswith("dispute") else category,
                category=category,
                currency=currency,
                amount_minor=amount,
                fee_minor=fee,
                net_minor=amount - fee,
                created_at=self._now,
                payment_intent_id=intent,
                charged_minor=amount,
                charged_currency=currency,
            )
        )

    def _mark_failed(self, invoice: Invoice) -> None:
        self._emit("invoice.payment_failed", invoice.id)
        if invoice.subscription is not None and invoice.subscription.status == "active":
            invoice.subscription.status = "past_due"
            self._emit("customer.subscription.updated", invoice.subscription.id)

    def _expire(self, subscription: Subscription) -> None:
        self._void(subscription)
        subscription.status, subscription.ended_at = "incomplete_expired", self._now
        self._emit("customer.subscription.updated", subscription.id)

    def _void(self, subscription: Subscription) -> None:
        subscription.invoices[-1].status = "void"
        self._emit("invoice.voided", subscription.invoices[-1].id)

    def _end(self, subscription: Subscription, at: datetime) -> None:
        if subscription.status == "incomplete":
            self._void(subscription)
        subscription.status, subscription.ended_at = "canceled", at
        self._emit("customer.subscription.deleted", subscription.id)

    def _start_period(self, subscription: Subscription) -> None:
        if subscription.cancels_at_period_end:
            self._end(subscription, subscription.boundary(subscription.period + 1))
            return
        subscription.period += 1
        self._new_invoice(subscription, "subscription_cycle").status = "draft"
        self._emit("customer.subscription.updated", subscription.id)

    def _next_due(self, target: datetime) -> tuple[datetime, Callable[[], None]] | None:
        period_ends: list[tuple[datetime, Callable[[], None]]] = [
            (row.boundary(row.period + 1), partial(self._start_period, row))
            for row in self._subscriptions.values()
            if row.status in ("active", "past_due")
        ]
        collections: list[tuple[datetime, Callable[[], None]]] = [
            (invoice.created + _HOUR, partial(self._finalize, invoice))
            for invoice in self._invoices.values()
            if invoice.status == "draft"
            and invoice.subscription is not None
            and invoice.subscription.status not in ENDED
        ]
        expiries: list[tuple[datetime, Callable[[], None]]] = [
            (row.anchor + _INCOMPLETE, partial(self._expire, row))
            for row in self._subscriptions.values()
            if row.status == "incomplete"
        ]
        first = min([*period_ends, *collections, *expiries], key=lambda item: item[0], default=None)
        return first if first is not None and first[0] <= target else None

    def _finalize(self, invoice: Invoice) -> None:
        invoice.status = "open"
        self._collect(invoice)

    def _emit(self, type: str, object_id: str) -> None:
        body = {
            "object": "event",
            "id": new_id("evt"),
            "type": type,
            "api_version": "2026-10-28.endive",
            "created": int(self._now.timestamp()),
            "livemode": False,
            "data": {"object": {"id": object_id}},
        }
        self.events.append(json.dumps(body).encode())
        if self._loses_deliveries:
            self._undelivered.append(self.events[-1])

    def _customer(self, identifier: str) -> Customer:
        customer = _get(self._customers, identifier)
        if customer.is_deleted:
            raise BillingRefused("Stripe refused the request.", reason="resource_missing")
        return customer

    def _is_deleted(self, identifier: str) -> bool:
        return _get(self._customers, identifier).is_deleted

    def _subscription(self, identifier: str) -> Subscription:
        return _get(self._subscriptions, identifier)

    def _invoice(self, identifier: str) -> Invoice:
        return _get(self._invoices, identifier)

    def _paid_with(self, intent: str) -> int:
        return sum(invoice.collected for invoice in self._invoices.values() if invoice.intent == intent)

    def refund(self, payment_intent: str, amount: int | None = None) -> str:
        left = self._paid_with(payment_intent) - self.refunded(payment_intent)
        identifier = new_id("re")
        self._refunds[identifier] = [payment_intent, amount or left]
        self._begun[identifier] = self._now
        self._move("refund", payment_intent, -(amount or left))
        self._emit("refund.created", identifier)
        return identifier

    def refunded(self, intent: str) -> int:
        return sum(amount for pi, amount in self._refunds.values() if pi == intent)


def _get(rows: dict[str, _Row], identifier: str) -> _Row:
    """Return a row by its id, or refuse as Stripe does."""
    if identifier not in rows:
        raise BillingRefused("Stripe refused the request.", reason="resource_missing")
    return rows[identifier]


def new_id(prefix: str) -> str:
    """Return a fresh id."""
    return f"{prefix}_{secrets.token_hex(10)}"
