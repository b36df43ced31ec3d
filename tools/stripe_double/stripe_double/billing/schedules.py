"""Subscription schedules, as far as a subscription shows that one manages it."""

from typing import Any

from stripe_double.account import Account, find, find_param
from stripe_double.events import emit, emit_changes
from stripe_double.parameters import String, takes
from stripe_double.routing import Route, retrieve_route
from stripe_double.store import Resource, new_id

_PATH = "/v1/subscription_schedules"


def create(account: Account, params: dict[str, Any]) -> Resource:
    """Let a schedule manage a subscription from now on."""
    subscription = find_param(account, "subscription", params["from_subscription"], "from_subscription")
    item = subscription["items"]["data"][0]
    schedule: Resource = {
        "object": "subscription_schedule",
        "id": new_id("sub_sched"),
        "canceled_at": None,
        "completed_at": None,
        "created": account.now,
        "current_phase": {"start_date": item["current_period_start"], "end_date": item["current_period_end"]},
        "customer": subscription["customer"],
        "end_behavior": "release",
        "livemode": False,
        "metadata": {},
        "phases": [],
        "released_at": None,
        "released_subscription": None,
        "status": "active",
        "subscription": subscription["id"],
        "test_clock": None,
    }
    emit(account, "subscription_schedule.created", account.add(schedule))
    with emit_changes(account, "customer.subscription.updated", subscription):
        subscription["schedule"] = schedule["id"]
    return schedule


def release(account: Account, _params: dict[str, Any], identifier: str) -> Resource:
    """Leave the subscription to itself."""
    schedule = find(account, "subscription_schedule", identifier)
    subscription = account.store.get("subscription", schedule["subscription"] or "")
    schedule.update(
        status="released",
        released_at=account.now,
        released_subscription=schedule["subscription"],
        subscription=None,
        current_phase=None,
    )
    emit(account, "subscription_schedule.released", schedule)
    if subscription is not None:
        with emit_changes(account, "customer.subscription.updated", subscription):
            subscription["schedule"] = None
    return schedule


ROUTES = (
    Route("POST", _PATH, create, takes("from_subscription", from_subscription=String())),
    retrieve_route(_PATH, "subscription_schedule"),
    Route("POST", f"{_PATH}/{{id}}/release", release, takes()),
)
