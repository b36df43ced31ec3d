"""Events, and a delivery of each to every endpoint that wants it."""

from devstack.stripe.state.account import API_VERSION, Account
from devstack.stripe.state.things import Thing, new_id, public


def tell(account: Account, type: str, thing: Thing, previous: Thing | None = None) -> None:
    """Record that something happened to the thing, as it is now."""
    data: Thing = {"object": public(thing)}
    if previous is not None:
        data["previous_attributes"] = previous
    serving = account.serving
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
            "request": {"id": serving.request_id, "idempotency_key": serving.idempotency_key},
            "type": type,
        },
    )


def record_event(account: Account, event: Thing) -> None:
    """Keep the event and a delivery of it for every endpoint that wants its type."""
    account.add(event)
    for endpoint in account.store.all("webhook_endpoint"):
        wanted = endpoint["enabled_events"]
        if endpoint["status"] == "enabled" and ("*" in wanted or event["type"] in wanted):
            queue_delivery(account, event, endpoint)


def queue_delivery(account: Account, event: Thing, endpoint: Thing) -> Thing:
    """Let the event leave for the endpoint as soon as the present work is done."""
    return account.add(
        {
            "object": "_delivery",
            "id": new_id("dlv"),
            "event": event["id"],
            "about": [event["type"], event["data"]["object"].get("id")],
            "endpoint": endpoint["id"],
            "created": account.now,
            "due_at": account.now,
            "attempts": 0,
            "delivered_at": None,
            "held": False,
            "delayed": False,
            "answer": None,
        }
    )


def pending_webhooks(account: Account, event: Thing) -> int:
    """Return how many endpoints have not taken the event yet."""
    return sum(item["event"] == event["id"] for item in undelivered(account))


def undelivered(account: Account) -> list[Thing]:
    """Return the deliveries that no endpoint has taken: those still tried and those given up."""
    return account.store.all("_delivery") + account.store.all("_given_up")


def shown(account: Account, event: Thing) -> Thing:
    """Return the event as the outside sees it now."""
    return {**event, "pending_webhooks": pending_webhooks(account, event)}
