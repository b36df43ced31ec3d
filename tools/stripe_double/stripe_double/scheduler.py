"""The scheduler: due work, done in order of time."""

import os
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass

from stripe_double.account import Account
from stripe_double.billing import test_clocks
from stripe_double.billing.collection import (
    collect_invoice,
    expire_subscription,
    subscription_of,
    void_and_update_subscription,
)
from stripe_double.billing.invoicing import finalization_due_at, try_to_finalize, write_off
from stripe_double.billing.payments import payment_intent_of
from stripe_double.billing.renewals import renew, renews_at
from stripe_double.resources.refunds import settle_refund
from stripe_double.store import Resource
from stripe_double.webhooks import WebhookSender

_INCOMPLETE_SECONDS = 23 * 3600
_IDLE_SECONDS = 0.2


@dataclass(frozen=True, order=True)
class Timer:
    """When a resource is due; equal times keep the order in which they were set."""

    due_at: int
    sequence: int
    kind: str
    id: str


class Timers:
    """The timers of all resources, kept up to date by the store."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._timers: dict[tuple[str, str], Timer] = {}
        self._sequence = 0
        for kind in _DUE_AT:
            for resource in account.store.all(kind):
                self._update(kind, resource["id"], resource)
        account.store.on_change(self._update)

    def first(self) -> Timer | None:
        """Return the earliest timer."""
        return min(self._timers.values(), default=None)

    def _update(self, kind: str, identifier: str, resource: Resource | None) -> None:
        due_at = _DUE_AT[kind](self._account, resource) if resource is not None and kind in _DUE_AT else None
        timer = self._timers.get((kind, identifier))
        if due_at is None:
            self._timers.pop((kind, identifier), None)
        elif timer is None or timer.due_at != due_at:
            self._sequence += 1
            self._timers[kind, identifier] = Timer(due_at, self._sequence, kind, identifier)


class Scheduler:
    """Runs due work in real time, or up to a given time on request."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._timers = Timers(account)
        self._sender = WebhookSender(account)
        self._lock = threading.Lock()

    def start(self) -> None:
        """Run with real time in a thread until the process ends."""
        threading.Thread(target=self._run_forever, name="scheduler", daemon=True).start()

    def advance_to(self, timestamp: int) -> None:
        """Run everything due up to the timestamp, webhooks included, and continue from there."""
        with self._lock:
            self._run(timestamp)
            self._account.clock.move_to(max(timestamp, self._account.now))

    def run_due(self) -> None:
        """Run everything that is due now."""
        with self._lock:
            try:
                self._run(self._account.now)
            finally:
                self._account.clock.resume()

    def _run_forever(self) -> None:
        try:
            while True:
                self._account.wakeup.wait(_IDLE_SECONDS)
                self._account.wakeup.clear()
                self.run_due()
                self._advance_test_clocks()
        except Exception:  # noqa: BLE001 (ends the process)
            traceback.print_exc()
            os._exit(1)  # a double with a frozen scheduler would mislead; its supervisor notices the exit

    def _advance_test_clocks(self) -> None:
        target = test_clocks.target_of(self._account)
        if target is not None:
            self.advance_to(target)
            with self._account.transaction():
                test_clocks.arrive(self._account)

    def _run(self, until: int) -> None:
        start = self._account.now
        while True:
            with self._account.transaction():
                timer = self._timers.first()
                if timer is None or timer.due_at > until:
                    return
                self._account.clock.freeze_at(max(timer.due_at, start))  # overdue work runs now
                resource = self._account.store.get(timer.kind, timer.id)
                if resource is not None and timer.kind in _HANDLERS:
                    _HANDLERS[timer.kind](self._account, resource)
            if timer.kind == "_delivery":
                self._sender.send(timer.id)


def _subscription_due_at(_account: Account, subscription: Resource) -> int | None:
    if subscription["status"] == "incomplete":
        return int(subscription["created"]) + _INCOMPLETE_SECONDS
    return renews_at(subscription)


def _invoice_due_at(account: Account, invoice: Resource) -> int | None:
    if invoice["status"] == "open":
        next_attempt: int | None = invoice["next_payment_attempt"]
        return next_attempt
    return finalization_due_at(account, invoice)


def _handle_subscription(account: Account, subscription: Resource) -> None:
    if subscription["status"] == "incomplete":
        expire_subscription(account, subscription["id"])
    else:
        renew(account, subscription)


def _handle_invoice(account: Account, invoice: Resource) -> None:
    is_draft = invoice["status"] == "draft"
    if is_draft and (not try_to_finalize(account, invoice) or _is_resting(account, invoice)):
        return
    if invoice["collection_method"] == "send_invoice":
        return  # It was sent; its payer opens the hosted page.
    intent = payment_intent_of(account, invoice)
    if intent is not None and intent["status"] == "canceled":
        invoice["next_payment_attempt"] = None
    else:
        collect_invoice(account, invoice, off_session=True, scheduled=True)


def _is_resting(account: Account, invoice: Resource) -> bool:
    """Settle the invoice of a subscription whose collection is paused, as staff have chosen; return whether it is."""
    pause = (subscription_of(account, invoice) or {}).get("pause_collection")
    if not pause or invoice["status"] != "open":
        return False
    if pause["behavior"] == "void":
        void_and_update_subscription(account, invoice)
    else:
        write_off(account, invoice)
    return True


_DUE_AT: dict[str, Callable[[Account, Resource], int | None]] = {
    "_delivery": lambda _, delivery: None if delivery["held"] else delivery["due_at"],
    "subscription": _subscription_due_at,
    "invoice": _invoice_due_at,
    "refund": lambda _, refund: refund["_settles_at"],
}
_HANDLERS: dict[str, Callable[[Account, Resource], None]] = {
    "subscription": _handle_subscription,
    "invoice": _handle_invoice,
    "refund": settle_refund,
}
