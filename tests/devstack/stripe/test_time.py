"""Time: months of billing in an instant, in order, without drift."""

from datetime import UTC, datetime

import pytest
import stripe
from hypothesis import given
from hypothesis import strategies as st

from devstack.stripe.billing.renewals import period_start
from devstack.stripe.client import ControlClient, ControlError
from tests.devstack.stripe.mailbox import Mailbox
from tests.devstack.stripe.worlds import DAY, HOUR, DoubleWorld


def moment(text: str) -> int:
    """Return the second that an ISO time names."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


@given(anchor=st.integers(0, 4_000_000_000), months=st.integers(0, 240))
def test_a_boundary_keeps_the_anchors_day_or_the_last_of_a_shorter_month(anchor: int, months: int) -> None:
    start, found = (
        datetime.fromtimestamp(it, UTC) for it in (anchor, period_start(anchor, "month", 1, months))
    )
    assert (found.year * 12 + found.month) - (start.year * 12 + start.month) == months
    next_day = datetime.fromtimestamp(found.timestamp() + DAY, UTC)
    assert found.day == start.day or (found.day < start.day and next_day.day == 1)
    assert found.time() == start.time()


@given(anchor=st.integers(0, 4_000_000_000), count=st.integers(1, 12), number=st.integers(0, 100))
def test_weeks_are_seven_days_and_years_twelve_months(anchor: int, count: int, number: int) -> None:
    assert period_start(anchor, "week", count, number) == anchor + 7 * DAY * count * number
    assert period_start(anchor, "year", 1, number) == period_start(anchor, "month", 12, number)


@pytest.mark.parametrize("day", ["2027-01-29T23:59:59", "2027-01-30T12:00:00", "2027-01-31T00:00:00"])
def test_two_years_from_the_end_of_january_are_24_months_without_gap_or_drift(
    day: str, here: DoubleWorld, controls: ControlClient, amount: int
) -> None:
    start = moment(day)
    controls.set_clock(start)
    subscription = here.subscribe(here.new_payer(), amount)
    anchor = subscription.billing_cycle_anchor
    assert anchor - start < 60
    controls.advance_to(period_start(anchor, "month", 1, 23) + 2 * HOUR)
    invoices = here.invoices(subscription)
    periods = [(it.lines.data[0].period.start, it.lines.data[0].period.end) for it in invoices]
    assert periods == [
        (period_start(anchor, "month", 1, n), period_start(anchor, "month", 1, n + 1)) for n in range(24)
    ]
    assert [it.amount_paid for it in invoices] == [amount] * 24
    days = [datetime.fromtimestamp(begin, UTC).day for begin, _ in periods]
    first = datetime.fromtimestamp(anchor, UTC).day
    assert days[:4] == [first, 28, first, min(first, 30)]
    assert days[13] == min(first, 29)  # February 2028


def test_what_falls_due_happens_at_its_own_time_and_in_order(
    here: DoubleWorld, controls: ControlClient, mailbox: Mailbox, amount: int
) -> None:
    customer = here.new_payer()
    subscription = here.subscribe(customer, amount)
    end = subscription["items"].data[0].current_period_end
    controls.advance_to(end + 10 * DAY)
    moments = [event["created"] for event in mailbox.events]
    assert moments == sorted(moments)
    by_type = {event["type"]: event["created"] for event in mailbox.events}
    assert by_type["invoice.created"] == end
    assert by_type["invoice.paid"] == end + HOUR
    assert controls.now >= end + 10 * DAY


def test_time_does_not_go_back(here: DoubleWorld, controls: ControlClient) -> None:
    with pytest.raises(ControlError):
        controls.advance(-5)
    here.v1.customers.create()
    with pytest.raises(ControlError):
        controls.set_clock(0)


def test_several_subscriptions_are_billed_each_in_its_own_rhythm(
    here: DoubleWorld, controls: ControlClient, amount: int
) -> None:
    customer = here.new_payer()
    first = here.subscribe(customer, amount)
    controls.advance(10 * DAY)
    second = here.subscribe(customer, amount)
    controls.advance_to(period_start(first.billing_cycle_anchor, "month", 1, 6) + 2 * HOUR)
    assert (len(here.invoices(first)), len(here.invoices(second))) == (7, 6)


def test_a_reset_anchor_begins_a_new_period_now(
    here: DoubleWorld, controls: ControlClient, amount: int
) -> None:
    subscription = here.subscribe(here.new_payer(), amount)
    controls.advance(5 * DAY)
    changed = here.v1.subscriptions.update(
        subscription.id, {"billing_cycle_anchor": {"type": "now"}, "proration_behavior": "none"}
    )
    assert abs(changed.billing_cycle_anchor - controls.now) < 60
    assert changed["items"].data[0].current_period_start == changed.billing_cycle_anchor
    assert [it.billing_reason for it in here.invoices(subscription)] == [
        "subscription_create",
        "subscription_update",
    ]


def test_events_are_kept_for_thirty_days(here: DoubleWorld, controls: ControlClient) -> None:
    here.v1.customers.create()
    (event,) = here.v1.events.list({"type": "customer.created"}).data
    controls.advance(31 * DAY)
    assert not here.v1.events.list({"type": "customer.created"}).data
    with pytest.raises(stripe.InvalidRequestError):
        here.v1.events.retrieve(event.id)
