"""A billing client that answers something else than Stripe has."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

from payments.errors import BillingRefused
from payments.stripe import get_billing_client, set_billing_client
from payments.stripe.client import BillingClient

_IDS = ("invoice_id", "subscription_id", "customer_id", "payment_intent_id")


class LyingClient:
    """Passes every call on, and changes or hides what is answered about the chosen ids."""

    def __init__(self, real: BillingClient) -> None:
        self.real = real
        self.changes: dict[str, dict[str, Any]] = {}
        self.hidden: set[str] = set()

    def tell(self, identifier: str, **changes: Any) -> None:
        """Answer with these fields from now on; what no longer fits a list is missing from it."""
        self.changes[identifier] = changes

    def hide(self, identifier: str) -> None:
        """Know nothing of it from now on."""
        self.hidden.add(identifier)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.real, name)

        def call(**arguments: Any) -> Any:
            if self.hidden & set(map(str, arguments.values())):
                raise BillingRefused("Stripe refused the request.", reason="resource_missing")
            answer = method(**arguments)
            if isinstance(answer, Iterator):
                kept = (self._told(row) for row in answer if _id_of(row) not in self.hidden)
                return (row for row in kept if _fits(name, row))
            return self._told(answer)

        return call

    def _told(self, row: Any) -> Any:
        changes = self.changes.get(_id_of(row))
        return replace(row, **changes) if changes else row


def _id_of(row: Any) -> str:
    return next((str(getattr(row, name)) for name in _IDS if hasattr(row, name)), str(row))


def _fits(method: str, row: Any) -> bool:
    return method != "paid_invoices_since" or row.status == "paid"


@contextmanager
def lying() -> Iterator[LyingClient]:
    """Put a lying client between the service and Stripe inside the block."""
    client = LyingClient(get_billing_client())
    set_billing_client(cast("BillingClient", client))
    try:
        yield client
    finally:
        set_billing_client(client.real)
