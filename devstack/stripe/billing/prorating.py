"""What a change in the middle of a period costs."""

from fractions import Fraction

from devstack.stripe.billing.collecting import collect
from devstack.stripe.billing.invoicing import draft, finalize
from devstack.stripe.billing.lines import item_amount, proration_line
from devstack.stripe.state.account import Account
from devstack.stripe.state.things import Thing


def prorate(
    account: Account, subscription: Thing, before: list[Thing], *, at_once: bool, off_session: bool
) -> None:
    """Credit what was paid for the rest of the period and charge what the rest costs now."""
    subscription["_pending"].extend(_lines(account.now, subscription, before))
    if at_once and subscription["_pending"]:
        bill_pending(account, subscription, [], off_session=off_session)


def bill_pending(account: Account, subscription: Thing, lines: list[Thing], *, off_session: bool) -> None:
    """Invoice what is pending together with the lines, and collect it now."""
    customer = account.store.get("customer", subscription["customer"]) or {}
    pending, subscription["_pending"] = subscription["_pending"], []
    invoice = draft(
        account,
        customer,
        reason="subscription_update",
        lines=[*pending, *lines],
        currency=subscription["currency"],
        period=(account.now, account.now),
        subscription=subscription,
    )
    finalize(account, invoice)
    collect(account, invoice, off_session=off_session)


def _lines(now: int, subscription: Thing, before: list[Thing]) -> list[Thing]:
    old = {item["id"]: item for item in before}
    new = {item["id"]: item for item in subscription["items"]["data"]}
    changed = [
        identifier
        for identifier in {**old, **new}
        if identifier not in old
        or identifier not in new
        or _terms(old[identifier]) != _terms(new[identifier])
    ]
    credited = [_line(now, subscription, old[identifier], -1) for identifier in changed if identifier in old]
    charged = [_line(now, subscription, new[identifier], 1) for identifier in changed if identifier in new]
    return credited + charged


def _terms(item: Thing) -> tuple[str, int]:
    return item["price"]["id"], item["quantity"]


def _line(now: int, subscription: Thing, item: Thing, sign: int) -> Thing:
    start, end = item["current_period_start"], item["current_period_end"]
    share = Fraction(end - now, end - start)
    return proration_line(subscription, item, (now, end), sign * round(item_amount(item) * share))
