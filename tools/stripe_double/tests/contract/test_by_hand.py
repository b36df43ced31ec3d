"""What staff do to a subscription by hand: quantities, further items and lines, coupons, pauses, ends, schedules."""

from typing import Any

import pytest
import stripe

from accounts import DAY, HOUR, StripeAccount, latest_invoice
from contract.test_updates import price_data


def _renew(account: StripeAccount, customer: stripe.Customer, subscription: stripe.Subscription) -> None:
    end = account.v1.subscriptions.retrieve(subscription.id)["items"].data[0].current_period_end
    account.pass_time(customer, end - account.now(customer) + 2 * HOUR)


def test_the_preview_is_the_next_invoice(account: StripeAccount, amount: int) -> None:
    customer = account.create_paying_customer()
    coupon = account.v1.coupons.create({"percent_off": 25, "duration": "forever"})
    subscription = account.subscribe(customer, amount)
    item = subscription["items"].data[0]
    account.v1.subscriptions.update(
        subscription.id,
        {
            "items": [{"id": item.id, "quantity": 3}, {"price_data": price_data(account, 700)}],
            "discounts": [{"coupon": coupon.id}],
            "proration_behavior": "none",
        },
    )
    account.v1.invoice_items.create(
        {"customer": customer.id, "amount": 900, "currency": "usd", "subscription": subscription.id}
    )
    preview = account.v1.invoices.create_preview({"subscription": subscription.id})
    assert len(account.invoices(subscription)) == 1
    _renew(account, customer, subscription)
    made = account.invoices(subscription)[-1]
    full = 3 * amount + 700 + 900
    assert abs(made.total - full * 3 / 4) <= 3
    assert [line.amount for line in made.lines.data] == [line.amount for line in preview.lines.data]
    assert (made.total, made.amount_due, made.amount_paid) == (
        preview.total,
        preview.amount_due,
        preview.amount_due,
    )
    assert sum(part.amount for part in made.total_discount_amounts or []) == full - made.total


def test_a_subscription_that_ends_with_its_period_has_no_next_invoice(account: StripeAccount) -> None:
    subscription = account.subscribe(account.create_paying_customer(), 900, cancel_at_period_end=True)
    with pytest.raises(stripe.InvalidRequestError) as refusal:
        account.v1.invoices.create_preview({"subscription": subscription.id})
    assert refusal.value.code == "invoice_upcoming_none"


def test_an_invoice_shows_ten_lines_and_lists_all(account: StripeAccount) -> None:
    customer = account.create_paying_customer()
    subscription = account.subscribe(customer, 900)
    for number in range(12):
        account.v1.invoice_items.create(
            {
                "customer": customer.id,
                "amount": 100 + number,
                "currency": "usd",
                "subscription": subscription.id,
            }
        )
    _renew(account, customer, subscription)
    made = account.invoices(subscription)[-1]
    assert (len(made.lines.data), made.lines.has_more) == (10, True)
    listed = list(account.v1.invoices.line_items.list(str(made.id), {"limit": 5}).auto_paging_iter())
    assert len(listed) == len({line.id for line in listed}) == 13
    assert sum(line.amount for line in listed) == made.total


def test_the_items_of_a_subscription_are_listed(account: StripeAccount) -> None:
    subscription = account.subscribe(account.create_paying_customer(), 900)
    items: Any = [{"price_data": price_data(account, 600 + number)} for number in range(11)]
    changed = account.v1.subscriptions.update(subscription.id, {"items": items, "proration_behavior": "none"})
    query: Any = {"subscription": subscription.id, "limit": 4}
    listed = list(account.v1.subscription_items.list(query).auto_paging_iter())
    assert len({item.id for item in listed}) == 12
    assert {item.id for item in changed["items"].data} <= {item.id for item in listed}


@pytest.mark.parametrize(
    ("behavior", "status"),
    [("void", "void"), ("mark_uncollectible", "uncollectible"), ("keep_as_draft", "draft")],
)
def test_a_paused_collection_leaves_the_subscription_active_and_collects_nothing(
    account: StripeAccount, behavior: Any, status: str
) -> None:
    customer = account.create_paying_customer()
    subscription = account.subscribe(customer, 900)
    paused = account.v1.subscriptions.update(subscription.id, {"pause_collection": {"behavior": behavior}})
    assert (paused.status, paused.pause_collection and paused.pause_collection.behavior) == (
        "active",
        behavior,
    )
    _renew(account, customer, subscription)
    made = account.invoices(subscription)[-1]
    assert (made.status, made.amount_paid) == (status, 0)
    resumed = account.v1.subscriptions.update(subscription.id, {"pause_collection": ""})
    assert (resumed.status, resumed.pause_collection) == ("active", None)


def test_a_subscription_ends_at_the_date_that_was_set(account: StripeAccount) -> None:
    customer = account.create_paying_customer()
    subscription = account.subscribe(customer, 900)
    ends_at = subscription["items"].data[0].current_period_end + 40 * DAY
    changed = account.v1.subscriptions.update(subscription.id, {"cancel_at": ends_at})
    assert (changed.cancel_at, changed.cancel_at_period_end) == (ends_at, False)
    _renew(account, customer, subscription)
    assert account.v1.subscriptions.retrieve(subscription.id).status == "active"
    account.pass_time(customer, ends_at - account.now(customer) + HOUR)
    assert account.v1.subscriptions.retrieve(subscription.id).status == "canceled"


def test_the_end_of_a_scheduled_subscription_belongs_to_its_schedule(account: StripeAccount) -> None:
    subscription = account.subscribe(account.create_paying_customer(), 900)
    schedule = account.v1.subscription_schedules.create({"from_subscription": subscription.id})
    assert account.v1.subscriptions.retrieve(subscription.id).schedule == schedule.id
    with pytest.raises(stripe.InvalidRequestError):
        account.v1.subscriptions.update(subscription.id, {"cancel_at_period_end": True})
    account.v1.subscription_schedules.release(schedule.id)
    released = account.v1.subscriptions.update(subscription.id, {"cancel_at_period_end": True})
    assert (released.schedule, released.cancel_at_period_end) == (None, True)


def test_a_coupon_of_everything_leaves_nothing_to_pay(account: StripeAccount) -> None:
    coupon = account.v1.coupons.create({"percent_off": 100, "duration": "once"})
    customer = account.create_paying_customer()
    subscription = account.subscribe(customer, 900, discounts=[{"coupon": coupon.id}])
    invoice = latest_invoice(subscription)
    assert (subscription.status, invoice.status, invoice.total, invoice.amount_paid) == (
        "active",
        "paid",
        0,
        0,
    )
    _renew(account, customer, subscription)
    assert account.invoices(subscription)[-1].amount_paid == 900
