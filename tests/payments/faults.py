"""Fault injection between the service and Stripe: calls that fail, stall or kill, and responses that are changed."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

from payments.errors import BillingRefused
from payments.stripe import get_billing_client, set_billing_client
from payments.stripe.client import BillingClient
from tests.killing import ProcessKilled

_IDS = ("invoice_id", "subscription_id", "customer_id", "payment_intent_id")


class FaultInjector:
    """
    A billing client that passes every call on and counts it in `calls` by method name.

    `before` and `after` are called around the calls of one method. `change` and `hide` make it return
    something else than Stripe has.
    """

    def __init__(self, real: BillingClient) -> None:
        self.real = real
        self.calls: Counter[str] = Counter()
        self.before: dict[str, Callable[[], None]] = {}
        self.after: dict[str, Callable[[], None]] = {}
        self._changes: dict[str, dict[str, Any]] = {}
        self._hidden: set[str] = set()

    def change(self, identifier: str, **fields: Any) -> None:
        """Respond with these fields from now on; what no longer fits a list is missing from it."""
        self._changes[identifier] = fields

    def hide(self, identifier: str) -> None:
        """Respond from now on as if it did not exist."""
        self._hidden.add(identifier)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Call no hook inside the block."""
        before, after = self.before, self.after
        self.before, self.after = {}, {}
        try:
            yield
        finally:
            self.before, self.after = before, after

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.real, name)

        def call(**arguments: Any) -> Any:
            self.calls[name] += 1
            self.before.get(name, _nothing)()
            if self._hidden & set(map(str, arguments.values())):
                raise BillingRefused("Stripe refused the request.", reason="resource_missing")
            result = self._changed(name, method(**arguments))
            self.after.get(name, _nothing)()
            return result

        return call

    def _changed(self, method: str, answer: Any) -> Any:
        if not isinstance(answer, Iterator):
            return self._changed_row(answer)
        rows = (self._changed_row(row) for row in answer if _id_of(row) not in self._hidden)
        return (row for row in rows if method != "paid_invoices_since" or row.status == "paid")

    def _changed_row(self, row: Any) -> Any:
        fields = self._changes.get(_id_of(row))
        return replace(row, **fields) if fields else row


def _id_of(row: Any) -> str:
    return next((str(getattr(row, name)) for name in _IDS if hasattr(row, name)), str(row))


@contextmanager
def fault_injection() -> Iterator[FaultInjector]:
    """Put a fault injector between the service and Stripe inside the block."""
    client = FaultInjector(get_billing_client())
    set_billing_client(cast("BillingClient", client))
    try:
        yield client
    finally:
        set_billing_client(client.real)


@contextmanager
def killed_after(method: str) -> Iterator[None]:
    """Kill the process once Stripe has responded to this call."""
    with fault_injection() as client:
        client.after[method] = _kill
        with _expect_kill(method):
            yield


@contextmanager
def killed_before(method: str) -> Iterator[None]:
    """Kill the process before it calls Stripe's method."""
    with fault_injection() as client:
        client.before[method] = _kill
        with _expect_kill(method):
            yield


@contextmanager
def _expect_kill(method: str) -> Iterator[None]:
    try:
        yield
    except ProcessKilled:
        return
    raise AssertionError(f"{method} was not called")


def once(act: Callable[[], object]) -> Callable[[], None]:
    """Return a hook that acts the first time alone."""
    left = [act]

    def hook() -> None:
        while left:
            left.pop()()

    return hook


def _kill() -> None:
    raise ProcessKilled


def _nothing() -> None:
    """Let the call pass."""
