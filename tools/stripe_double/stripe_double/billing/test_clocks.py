"""
Test clocks. The double has one time for all customers.

A clock shows the account's time, whatever `frozen_time` it was created with. Advancing a clock advances the account's
time, asynchronously as at Stripe.
"""

from typing import Any

from stripe_double.account import Account, find
from stripe_double.billing import customers
from stripe_double.errors import InvalidRequest
from stripe_double.events import emit
from stripe_double.parameters import Integer, String, takes
from stripe_double.routing import Route
from stripe_double.store import Resource, new_id

KIND = "test_helpers.test_clock"
_PATH = "/v1/test_helpers/test_clocks"
_MONTH = 30 * 86_400
# Stripe's limit: two intervals of the shortest subscription.
_LONGEST_SECONDS = 2 * 366 * 86_400


def create(account: Account, params: dict[str, Any]) -> Resource:
    """Create a clock; it shows the account's time."""
    clock = account.add(
        {
            "object": KIND,
            "id": new_id("clock"),
            "created": account.now,
            "deletes_after": account.now + _MONTH,
            "frozen_time": account.now,
            "livemode": False,
            "name": params.get("name"),
            "status": "ready",
            "status_details": {},
        }
    )
    emit(account, f"{KIND}.created", clock)
    return clock


def retrieve(account: Account, _params: dict[str, Any], identifier: str) -> Resource:
    """Return a clock with the current time."""
    return _shown(account, find(account, KIND, identifier, "test clock"))


def advance(account: Account, params: dict[str, Any], identifier: str) -> Resource:
    """Advance to `frozen_time`; the clock is `ready` again once everything due is done."""
    clock = find(account, KIND, identifier, "test clock")
    target = params["frozen_time"]
    if clock["status"] != "ready":
        raise InvalidRequest("Test clock advancement underway - cannot perform modifications", status=429)
    if not account.now - 1 <= target <= account.now + _LONGEST_SECONDS:
        raise InvalidRequest(
            "The frozen time must be after the clock's, and within the limit.", param="frozen_time"
        )
    clock.update(status="advancing", status_details={"advancing": {"target_frozen_time": target}})
    account.wakeup.set()
    return _shown(account, clock)


def delete(account: Account, _params: dict[str, Any], identifier: str) -> Resource:
    """Delete a clock with its customers."""
    clock = find(account, KIND, identifier, "test clock")
    for customer in account.store.all("customer"):
        if customer.get("test_clock") == identifier:
            customers.delete(account, {}, customer["id"])
    emit(account, f"{KIND}.deleted", clock)
    account.store.remove(KIND, identifier)
    return {"object": KIND, "id": identifier, "deleted": True}


def target_of(account: Account) -> int | None:
    """Return the target time of advancing clocks; None if there are none."""
    targets = [
        clock["status_details"]["advancing"]["target_frozen_time"]
        for clock in account.store.all(KIND)
        if clock["status"] == "advancing"
    ]
    return max(targets, default=None)


def arrive(account: Account) -> None:
    """Mark every advancing clock as ready."""
    for row in account.store.all(KIND):
        clock = account.store.get(KIND, row["id"]) or row
        if clock["status"] == "advancing":
            clock.update(status="ready", status_details={}, frozen_time=account.now)
            emit(account, f"{KIND}.ready", clock)


def _shown(account: Account, clock: Resource) -> Resource:
    return clock if clock["status"] == "advancing" else {**clock, "frozen_time": account.now}


_TIME = Integer(minimum=1)
ROUTES = (
    Route("POST", _PATH, create, takes("frozen_time", frozen_time=_TIME, name=String(300))),
    Route("GET", f"{_PATH}/{{id}}", retrieve, takes()),
    Route("POST", f"{_PATH}/{{id}}/advance", advance, takes("frozen_time", frozen_time=_TIME)),
    Route("DELETE", f"{_PATH}/{{id}}", delete, takes()),
)
