"""The turn from one period of a subscription to the next."""

from devstack.stripe.billing.ending import cancel_now
from devstack.stripe.billing.invoicing import draft
from devstack.stripe.billing.lines import service_line
from devstack.stripe.billing.periods import boundary
from devstack.stripe.state.account import Account
from devstack.stripe.state.things import Thing

_RENEWS = ("active", "past_due", "unpaid")


def turns_at(subscription: Thing) -> int | None:
    """Return when the present period ends; None for a subscription that does not go on."""
    if subscription["status"] not in _RENEWS:
        return None
    return int(subscription["items"]["data"][0]["current_period_end"])


def turn(account: Account, subscription: Thing) -> None:
    """End a subscription that was to end with its period; else begin the next period and bill it."""
    items = subscription["items"]["data"]
    old = (items[0]["current_period_start"], items[0]["current_period_end"])
    if subscription["cancel_at_period_end"]:
        cancel_now(account, subscription["id"], reason="cancellation_requested", ended_at=old[1])
        return
    with account.telling("customer.subscription.updated", subscription):
        _advance(subscription)
        _bill(account, subscription, old)


def restart(account: Account, subscription: Thing) -> None:
    """Begin a new period now, and count all later ones from here."""
    subscription.update(billing_cycle_anchor=account.now, _period=-1)
    _advance(subscription)


def _advance(subscription: Thing) -> None:
    subscription["_period"] += 1
    items, anchor = subscription["items"]["data"], subscription["billing_cycle_anchor"]
    rhythm = items[0]["price"]["recurring"]
    start, end = (
        boundary(anchor, rhythm["interval"], rhythm["interval_count"], subscription["_period"] + step)
        for step in (0, 1)
    )
    for item in items:
        item.update(current_period_start=start, current_period_end=end, billed_until=end)


def _bill(account: Account, subscription: Thing, old: tuple[int, int]) -> None:
    customer = account.store.get("customer", subscription["customer"]) or {}
    items = subscription["items"]["data"]
    new = (items[0]["current_period_start"], items[0]["current_period_end"])
    lines = [*subscription["_pending"], *(service_line(account, subscription, item, new) for item in items)]
    subscription["_pending"] = []
    draft(
        account,
        customer,
        reason="subscription_cycle",
        lines=lines,
        currency=subscription["currency"],
        period=old,
        subscription=subscription,
        auto_advance=subscription["status"] != "unpaid",
    )
