"""Changes to a subscription that has begun."""

from typing import Any

from devstack.stripe.billing.items import changed_items
from devstack.stripe.billing.lines import service_line
from devstack.stripe.billing.prorating import bill_pending, prorate
from devstack.stripe.billing.renewing import restart
from devstack.stripe.state.account import Account
from devstack.stripe.state.things import Thing
from devstack.stripe.wire.finding import merge_metadata, owned_card
from devstack.stripe.wire.refusals import Invalid

_ALLOWED = {
    "canceled": {"metadata", "cancellation_details"},
    "incomplete_expired": {"metadata"},
    "incomplete": {"metadata", "cancellation_details", "default_payment_method", "payment_settings"},
}


def change(account: Account, subscription: Thing, params: dict[str, Any]) -> None:
    """Change what may still be changed in the subscription's status; anything else is refused."""
    _refuse_forbidden(subscription, params)
    if "default_payment_method" in params:
        owned_card(
            account, params["default_payment_method"], subscription["customer"], "default_payment_method"
        )
    with account.telling("customer.subscription.updated", subscription):
        _apply(account, subscription, params)
        _change_terms(account, subscription, params)


def _refuse_forbidden(subscription: Thing, params: dict[str, Any]) -> None:
    permitted = _ALLOWED.get(subscription["status"])
    if permitted is not None and params.keys() - permitted - {"expand"}:
        words = " and ".join(sorted(permitted))
        raise Invalid(f"A subscription that is {subscription['status']} can only update its {words}.")


def _apply(account: Account, subscription: Thing, params: dict[str, Any]) -> None:
    for name in ("default_payment_method", "description"):
        if name in params:
            subscription[name] = params[name]
    if "metadata" in params:
        merge_metadata(subscription, params["metadata"])
    subscription["payment_settings"] |= params.get("payment_settings", {})
    subscription["cancellation_details"] |= params.get("cancellation_details", {})
    if "cancel_at_period_end" in params:
        _end_with_period(account, subscription, wanted=params["cancel_at_period_end"])


def _end_with_period(account: Account, subscription: Thing, *, wanted: bool) -> None:
    end = subscription["items"]["data"][0]["current_period_end"]
    subscription["cancel_at_period_end"] = wanted
    subscription["cancel_at"] = end if wanted else None
    subscription["canceled_at"] = account.now if wanted else None
    subscription["cancellation_details"]["reason"] = "cancellation_requested" if wanted else None


def _change_terms(account: Account, subscription: Thing, params: dict[str, Any]) -> None:
    before = [dict(item) for item in subscription["items"]["data"]]
    off_session = params.get("off_session", False)
    if "items" in params:
        subscription["items"]["data"] = changed_items(account, subscription, params["items"])
    proration = params.get("proration_behavior", "create_prorations")
    if "items" in params and proration != "none":
        prorate(account, subscription, before, at_once=proration == "always_invoice", off_session=off_session)
    if params.get("billing_cycle_anchor", {}).get("type") == "now":
        restart(account, subscription)
        items = subscription["items"]["data"]
        period = (items[0]["current_period_start"], items[0]["current_period_end"])
        lines = [service_line(account, subscription, item, period) for item in items]
        bill_pending(account, subscription, lines, off_session=off_session)
