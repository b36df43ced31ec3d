"""Time: months of billing at once, in order, without drift."""

from datetime import UTC, datetime

import pytest
import stripe
from hypothesis import given
from hypothesis import strategies as st

from accounts import DAY, HOUR, DoubleAccount
from stripe_double.billing.renewals import period_start
from stripe_double.client import ControlClient, ControlError
from webhook_receiver import WebhookReceiver


def timestamp(text: str) -> int:
    """Return the unix time of an ISO time."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


@given(anchor=st.integers(0, 4_000_000_000), months=st.integers(0, 240))
def test_a_period_starts_on_the_anchors_day_or_the_last_of_a_shorter_month(anchor: int, months: int) -> None:
    start, boundary = (
        datetime.fromtimestamp(item, UTC) for item in (anchor, period_start(anchor, "month", 1, months))
    )
    assert (boundary.year * 12 + boundary.month) - (start.year * 12 + start.month) == months
    next_day = datetime.fromtimestamp(boundary.timestamp() + DAY, UTC)
    assert boundary.day == start.day or (boundary.day < start.day and next_day.day == 1)
    assert boundary.time() == start.time()


@given(anchor=st.integers(0, 4_000_000_000), count=st.integers(1, 12), number=st.integers(0, 100))
def test_weeks_are_seven_days_and_years_twelve_months(anchor: int, count: int, number: int) -> None:
    assert period_start(anchor, "week", count, number) == anchor + 7 * DAY * count * number
    assert period_start(anchor, "year", 1, number) == period_start(anchor, "month", 12, number)


@pytest.mark.parametrize("day", ["2027-01-29T23:59:59", "2027-01-30T12:00:00", "2027-01-31T00:00:00"])
def test_two_years_from_the_end_of_january_are_24_months_without_gap_or_drift(
    day: str, account: DoubleAccount, controls: ControlClient, amount: int
) -> None:
    start = timestamp(day)
    controls.set_clock(start)
    subscription = account.subscribe(account.create_paying_customer(), amount)
    anchor = subscription.billing_cycle_anchor
    assert anchor - start < 60
    controls.advance_to(period_start(anchor, "month", 1, 23) + 2 * HOUR)
    invoices = account.invoices(subscription)
    periods = [(item.lines.data[0].period.start, item.lines.data[0].period.end) for item in invoices]
    assert periods == [
        (period_start(anchor, "month", 1, n), period_start(anchor, "month", 1, n + 1)) for n in range(24)
    ]
    assert [item.amount_paid for item in invoices] == [amount] * 24
    days = [datetime.fromtimestamp(begin, UTC).day for begin, _ in periods]
    first = datetime.fromtimestamp(anchor, UTC).day
    assert days[:4] == [first, 28, first, min(first, 30)]
    assert days[13] == min(first, 29)  # February 2028


def test_due_jobs_run_at_their_own_time_and_in_order(
    account: DoubleAccount, controls: ControlClient, webhooks: WebhookReceiver, amount: int
) -> None:
    customer = account.create_paying_customer()
    subscription = account.subscribe(customer, amount)
    end = subscription["items"].data[0].current_period_end
    controls.advance_to(end + 10 * DAY)
    timestamps = [event["created"] for event in webhooks.events]
    assert timestamps == sorted(timestamps)
    by_type = {event["type"]: event["created"] for event in webhooks.events}
    assert by_type["invoice.created"] == end
    assert by_type["invoice.paid"] == end + HOUR
    assert controls.now >= end + 10 * DAY


def test_time_does_not_go_back(account: DoubleAccount, controls: ControlClient) -> None:
    with pytest.raises(ControlError):
        controls.advance(-5)
    account.v1.customers.create()
    with pytest.raises(ControlError):
        controls.set_clock(0)


def test_several_subscriptions_are_billed_each_at_its_own_anchor(
    account: DoubleAccount, controls: ControlClient, amount: int
) -> None:
    customer = account.create_paying_customer()
    first = account.subscribe(customer, amount)
    controls.advance(10 * DAY)
    second = account.subscribe(customer, amount)
    controls.advance_to(period_start(first.billing_cycle_anchor, "month", 1, 6) + 2 * HOUR)
    assert (len(account.invoices(first)), len(account.invoices(second))) == (7, 6)


def test_a_reset_anchor_begins_a_new_period_now(
    account: DoubleAccount, controls: ControlClient, amount: int
) -> None:
    subscription = account.subscribe(account.create_paying_customer(), amount)
    controls.advance(5 * DAY)
    changed = account.v1.subscriptions.update(
        subscription.id, {"billing_cycle_anchor": {"type": "now"}, "proration_behavior": "none"}
    )
    assert abs(changed.billing_cycle_anchor - controls.now) < 60
    assert changed["items"].data[0].current_period_start == changed.billing_cycle_anchor
    assert [item.billing_reason for item in account.invoices(subscription)] == [
        "subscription_create",
        "subscription_update",
    ]


def test_events_are_kept_for_thirty_days(account: DoubleAccount, controls: ControlClient) -> None:
    account.v1.customers.create()
    (event,) = account.v1.events.list({"type": "customer.created"}).data
    controls.advance(31 * DAY)
    assert not account.v1.events.list({"type": "customer.created"}).data
    with pytest.raises(stripe.InvalidRequestError):
        account.v1.events.retrieve(event.id)
