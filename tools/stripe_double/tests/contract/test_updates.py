"""Updates of a subscription: its amount, its end, its cancellation."""

from typing import Any

import pytest
import stripe

from accounts import DAY, HOUR, StripeAccount


def price_data(account: StripeAccount, amount: int, currency: str = "usd") -> Any:
    """Return the data of a monthly price."""
    recurring = {"interval": "month"}
    return {
        "currency": currency,
        "product": account.create_product().id,
        "unit_amount": amount,
        "recurring": recurring,
    }


def test_a_changed_amount_without_proration_is_billed_from_the_next_period(
    account: StripeAccount, amount: int
) -> None:
    customer = account.create_paying_customer()
    subscription = account.subscribe(customer, amount)
    item = subscription["items"].data[0]
    changed = account.v1.subscriptions.update(
        subscription.id,
        {
            "items": [{"id": item.id, "price_data": price_data(account, amount + 100)}],
            "proration_behavior": "none",
        },
    )
    assert [(item.id, item.price.unit_amount) for item in changed["items"].data] == [(item.id, amount + 100)]
    assert len(account.invoices(subscription)) == 1
    account.pass_time(customer, item.current_period_end - account.now(customer) + 2 * HOUR)
    invoices = account.invoices(subscription)
    assert [item.amount_paid for item in invoices] == [amount, amount + 100]
    assert [item.billing_reason for item in invoices] == ["subscription_create", "subscription_cycle"]


def test_an_item_of_another_subscription_is_refused(account: StripeAccount, amount: int) -> None:
    customer = account.create_paying_customer()
    first, second = (account.subscribe(customer, amount) for _ in range(2))
    entry: Any = {"id": second["items"].data[0].id, "price_data": price_data(account, amount + 1)}
    with pytest.raises(stripe.InvalidRequestError):
        account.v1.subscriptions.update(first.id, {"items": [entry]})


def test_another_currency_is_refused(account: StripeAccount, amount: int) -> None:
    subscription = account.subscribe(account.create_paying_customer(), amount)
    entry: Any = {"id": subscription["items"].data[0].id, "price_data": price_data(account, amount, "eur")}
    with pytest.raises(stripe.InvalidRequestError):
        account.v1.subscriptions.update(subscription.id, {"items": [entry]})


def test_by_default_a_change_is_prorated_onto_the_next_invoice(account: StripeAccount) -> None:
    customer = account.create_paying_customer()
    subscription = account.subscribe(customer, 3000)
    item = subscription["items"].data[0]
    account.pass_time(customer, 10 * DAY)
    entry: Any = {"id": item.id, "price_data": price_data(account, 6000)}
    account.v1.subscriptions.update(subscription.id, {"items": [entry]})
    assert len(account.invoices(subscription)) == 1
    account.pass_time(customer, item.current_period_end - account.now(customer) + 2 * HOUR)
    lines = account.invoices(subscription)[1].lines.data
    prorated = {
        line.amount
        for line in lines
        if line.parent
        and line.parent.subscription_item_details
        and line.parent.subscription_item_details.proration
    }
    assert len(lines) == 3
    assert min(prorated) < 0 < max(prorated)
    assert abs(max(prorated) + 2 * min(prorated)) <= 2


def test_an_immediate_proration_is_invoiced_and_collected_at_once(account: StripeAccount) -> None:
    customer = account.create_paying_customer()
    subscription = account.subscribe(customer, 3000)
    entry: Any = {"id": subscription["items"].data[0].id, "price_data": price_data(account, 9000)}
    changed = account.v1.subscriptions.update(
        subscription.id,
        {"items": [entry], "proration_behavior": "always_invoice", "expand": ["latest_invoice"]},
    )
    assert isinstance(changed.latest_invoice, stripe.Invoice)
    assert (changed.latest_invoice.billing_reason, changed.latest_invoice.status) == (
        "subscription_update",
        "paid",
    )
    assert 5900 <= changed.latest_invoice.amount_paid <= 6000


def test_a_cancellation_at_period_end_can_be_undone(account: StripeAccount, amount: int) -> None:
    subscription = account.subscribe(account.create_paying_customer(), amount)
    end = subscription["items"].data[0].current_period_end
    ending = account.v1.subscriptions.update(subscription.id, {"cancel_at_period_end": True})
    assert (ending.status, ending.cancel_at_period_end, ending.cancel_at) == ("active", True, end)
    assert ending.canceled_at is not None
    resumed = account.v1.subscriptions.update(subscription.id, {"cancel_at_period_end": False})
    assert (resumed.cancel_at_period_end, resumed.cancel_at, resumed.canceled_at) == (False, None, None)


def test_a_subscription_that_is_canceled_at_period_end_is_not_billed_again(
    account: StripeAccount, amount: int
) -> None:
    customer = account.create_paying_customer()
    subscription = account.subscribe(customer, amount, cancel_at_period_end=True)
    end = subscription["items"].data[0].current_period_end
    account.pass_time(customer, end - account.now(customer) - HOUR)
    assert account.v1.subscriptions.retrieve(subscription.id).status == "active"
    account.pass_time(customer, 3 * HOUR)
    ended = account.v1.subscriptions.retrieve(subscription.id)
    assert (ended.status, ended.ended_at) == ("canceled", end)
    assert len(account.invoices(subscription)) == 1


def test_a_subscription_is_canceled_at_once_and_only_once(account: StripeAccount, amount: int) -> None:
    subscription = account.subscribe(account.create_paying_customer(), amount)
    ended = account.v1.subscriptions.cancel(subscription.id)
    assert ended.status == "canceled"
    assert ended.ended_at == ended.canceled_at
    assert ended.cancellation_details is not None
    assert ended.cancellation_details.reason == "cancellation_requested"
    with pytest.raises(stripe.InvalidRequestError) as raised:
        account.v1.subscriptions.cancel(subscription.id)
    assert raised.value.code == "resource_missing"


def test_a_canceled_subscription_updates_only_its_metadata(account: StripeAccount, amount: int) -> None:
    subscription = account.subscribe(account.create_paying_customer(), amount)
    account.v1.subscriptions.cancel(subscription.id)
    with pytest.raises(stripe.InvalidRequestError):
        account.v1.subscriptions.update(subscription.id, {"cancel_at_period_end": True})
    noted = account.v1.subscriptions.update(subscription.id, {"metadata": {"why": "moved"}})
    assert noted.metadata["why"] == "moved"


def test_another_currency_may_follow_once_the_first_subscription_has_ended(
    account: StripeAccount, amount: int
) -> None:
    customer = account.create_paying_customer()
    first = account.subscribe(customer, amount, "usd")
    account.v1.subscriptions.cancel(first.id)
    assert account.subscribe(customer, amount, "eur").status == "active"


def test_canceled_subscriptions_are_listed_only_on_request(account: StripeAccount, amount: int) -> None:
    customer = account.create_paying_customer()
    canceled, active = (account.subscribe(customer, amount) for _ in range(2))
    account.v1.subscriptions.cancel(canceled.id)

    def listed(**status: Any) -> set[str]:
        params: Any = {"customer": customer.id, **status}
        return {item.id for item in account.v1.subscriptions.list(params).data}

    assert listed() == {active.id}
    assert listed(status="all") == {active.id, canceled.id}
    assert listed(status="canceled") == {canceled.id}
    assert listed(status="active") == {active.id}
