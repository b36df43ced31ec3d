"""Events, and the delivery of each to the webhook endpoint."""

from collections.abc import Iterator
from contextlib import contextmanager

from stripe_double.account import API_VERSION, Account
from stripe_double.store import Resource, difference, new_id, public


def emit(account: Account, type: str, resource: Resource, previous: Resource | None = None) -> None:
    """Record an event with the resource's current state; deliver it after the transaction commits."""
    data: Resource = {"object": public(resource)}
    if previous is not None:
        data["previous_attributes"] = previous
    record_event(
        account,
        {
            "object": "event",
            "id": new_id("evt"),
            "api_version": API_VERSION,
            "created": account.now,
            "data": data,
            "livemode": False,
            "pending_webhooks": 0,
            "request": {"id": account.request.id, "idempotency_key": account.request.idempotency_key},
            "type": type,
        },
    )
    account.wakeup.set()


@contextmanager
def emit_changes(account: Account, type: str, resource: Resource) -> Iterator[None]:
    """Record an event if the block has changed a visible member of the resource."""
    before = public(resource)
    yield
    previous = difference(before, public(resource))
    if previous:
        emit(account, type, resource, previous)


def record_event(account: Account, event: Resource) -> None:
    """Store the event and a delivery of it."""
    account.add(event)
    queue_delivery(account, event)


def queue_delivery(account: Account, event: Resource) -> None:
    """Send the event to the endpoint, if any, after the current transaction."""
    if account.store.get("_endpoint", "endpoint") is None:
        return
    account.add(
        {
            "object": "_delivery",
            "id": new_id("dlv"),
            "event": event["id"],
            "event_type": event["type"],
            "resource": event["data"]["object"].get("id"),
            "created": account.now,
            "due_at": account.now,
            "attempts": 0,
            "delivered_at": None,
            "held": False,
            "delayed": False,
            "response_status": None,
        }
    )


def set_endpoint(account: Account, url: str | None, secret: str) -> None:
    """Set the endpoint of all events and its secret; None disables it."""
    account.store.remove("_endpoint", "endpoint")
    if url is not None:
        account.add({"object": "_endpoint", "id": "endpoint", "url": url, "secret": secret})


def undelivered(account: Account) -> list[Resource]:
    """Return the deliveries that no endpoint has accepted: pending and given up."""
    return account.store.all("_delivery") + account.store.all("_given_up")


def with_pending_webhooks(account: Account, event: Resource) -> Resource:
    """Return the event with its number of pending webhooks."""
    pending = sum(delivery["event"] == event["id"] for delivery in undelivered(account))
    return {**event, "pending_webhooks": pending}
