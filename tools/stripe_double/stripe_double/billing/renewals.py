"""The periods of a subscription and their renewals."""

import calendar
import copy
from datetime import UTC, datetime, timedelta

from stripe_double.account import Account
from stripe_double.billing.collection import cancel_subscription
from stripe_double.billing.invoice_lines import Period, period_lines, period_of
from stripe_double.billing.invoicing import create_invoice, new_draft
from stripe_double.events import emit_changes
from stripe_double.store import Resource

_RENEWED_STATUSES = ("active", "past_due", "unpaid", "trialing")
_DAYS = {"day": 1, "week": 7}
_MONTHS = {"month": 1, "year": 12}


def period_start(anchor: int, interval: str, interval_count: int, number: int) -> int:
    """
    Return when period `number` begins; periods are numbered from 0 at the anchor.

    Each is counted from the anchor, so a short month does not change the day of later ones.
    """
    start = datetime.fromtimestamp(anchor, UTC)
    if interval in _DAYS:
        return int((start + timedelta(days=_DAYS[interval] * interval_count * number)).timestamp())
    return int(add_months(start, _MONTHS[interval] * interval_count * number).timestamp())


def renews_at(subscription: Resource) -> int | None:
    """Return when the current period or the subscription ends; None for one that is not renewed."""
    if subscription["status"] not in _RENEWED_STATUSES:
        return None
    end = int(subscription["items"]["data"][0]["current_period_end"])
    return min(end, subscription["cancel_at"] or end)


def renew(account: Account, subscription: Resource) -> None:
    """Start and invoice the next period, or end a subscription that is canceled at period end."""
    period = period_of(subscription["items"]["data"][0])
    if subscription["cancel_at"] is not None and subscription["cancel_at"] <= account.now:
        reason = "cancellation_requested"
        ended_at = subscription["cancel_at"]
        cancel_subscription(account, subscription["id"], reason=reason, ended_at=ended_at)
        return
    with emit_changes(account, "customer.subscription.updated", subscription):
        pause = subscription["pause_collection"]
        if pause and pause["resumes_at"] and pause["resumes_at"] <= account.now:
            subscription["pause_collection"] = pause = None
        begin_next_period(subscription)
        lines = [*subscription["_pending"], *period_lines(account, subscription)]
        subscription["_pending"] = []
        create_invoice(
            account,
            new_draft(
                account,
                account.store.get("customer", subscription["customer"]) or {},
                reason="subscription_cycle",
                lines=lines,
                currency=subscription["currency"],
                period=period,
                subscription=subscription,
                auto_advance=subscription["status"] != "unpaid"
                and not (pause and pause["behavior"] == "keep_as_draft"),
            ),
        )


def next_lines(account: Account, subscription: Resource) -> tuple[list[Resource], Period]:
    """Return the lines that the next invoice will have, and the period that ends then."""
    later = copy.deepcopy(subscription)
    period = period_of(later["items"]["data"][0])
    begin_next_period(later)
    return [*later["_pending"], *period_lines(account, later)], period


def reset_anchor(account: Account, subscription: Resource) -> None:
    """Start a new period now and move the anchor here."""
    subscription.update(billing_cycle_anchor=account.now, _period=-1)
    begin_next_period(subscription)


def begin_next_period(subscription: Resource) -> None:
    subscription["_period"] += 1
    items, anchor = subscription["items"]["data"], subscription["billing_cycle_anchor"]
    recurring, number = items[0]["price"]["recurring"], subscription["_period"]
    start, end = (
        period_start(anchor, recurring["interval"], recurring["interval_count"], period)
        for period in (number, number + 1)
    )
    for item in items:
        item.update(current_period_start=start, current_period_end=end, billed_until=end)


def add_months(start: datetime, months: int) -> datetime:
    """Return the same day this many months later, or the last day of a shorter month."""
    years, month = divmod(start.month - 1 + months, 12)
    year = start.year + years
    last_day = calendar.monthrange(year, month + 1)[1]
    return start.replace(year=year, month=month + 1, day=min(start.day, last_day))
