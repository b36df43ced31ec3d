"""Changes: another amount, the end of the period and back, the end at once."""

from typing import Any

import pytest
import stripe

from tests.devstack.stripe.worlds import DAY, HOUR, World


def price_data(world: World, amount: int, currency: str = "usd") -> Any:
    """Return the data of a monthly price."""
    rhythm = {"interval": "month"}
    return {
        "currency": currency,
        "product": world.new_product().id,
        "unit_amount": amount,
        "recurring": rhythm,
    }


def test_a_changed_amount_without_proration_is_billed_from_the_next_period(world: World, amount: int) -> None:
    customer = world.new_payer()
    subscription = world.subscribe(customer, amount)
    item = subscription["items"].data[0]
    changed = world.v1.subscriptions.update(
        subscription.id,
        {
            "items": [{"id": item.id, "price_data": price_data(world, amount + 100)}],
            "proration_behavior": "none",
        },
    )
    assert [(it.id, it.price.unit_amount) for it in changed["items"].data] == [(item.id, amount + 100)]
    assert len(world.invoices(subscription)) == 1
    world.pass_time(customer, item.current_period_end - world.now(customer) + 2 * HOUR)
    invoices = world.invoices(subscription)
    assert [it.amount_paid for it in invoices] == [amount, amount + 100]
    assert [it.billing_reason for it in invoices] == ["subscription_create", "subscription_cycle"]


def test_an_entry_without_an_item_id_adds_a_second_item(world: World, amount: int) -> None:
    subscription = world.subscribe(world.new_payer(), amount)
    changed = world.v1.subscriptions.update(
        subscription.id, {"items": [{"price_data": price_data(world, amount)}], "proration_behavior": "none"}
    )
    assert len(changed["items"].data) == 2


def test_an_item_of_another_subscription_is_refused(world: World, amount: int) -> None:
    customer = world.new_payer()
    mine, other = (world.subscribe(customer, amount) for _ in range(2))
    entry: Any = {"id": other["items"].data[0].id, "price_data": price_data(world, amount + 1)}
    with pytest.raises(stripe.InvalidRequestError):
        world.v1.subscriptions.update(mine.id, {"items": [entry]})


def test_another_currency_is_refused(world: World, amount: int) -> None:
    subscription = world.subscribe(world.new_payer(), amount)
    entry: Any = {"id": subscription["items"].data[0].id, "price_data": price_data(world, amount, "eur")}
    with pytest.raises(stripe.InvalidRequestError):
        world.v1.subscriptions.update(subscription.id, {"items": [entry]})


def test_by_default_a_change_is_prorated_onto_the_next_invoice(world: World) -> None:
    customer = world.new_payer()
    subscription = world.subscribe(customer, 3000)
    item = subscription["items"].data[0]
    world.pass_time(customer, 10 * DAY)
    entry: Any = {"id": item.id, "price_data": price_data(world, 6000)}
    world.v1.subscriptions.update(subscription.id, {"items": [entry]})
    assert len(world.invoices(subscription)) == 1
    world.pass_time(customer, item.current_period_end - world.now(customer) + 2 * HOUR)
    lines = world.invoices(subscription)[1].lines.data
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


def test_an_immediate_proration_is_invoiced_and_collected_at_once(world: World) -> None:
    customer = world.new_payer()
    subscription = world.subscribe(customer, 3000)
    entry: Any = {"id": subscription["items"].data[0].id, "price_data": price_data(world, 9000)}
    changed = world.v1.subscriptions.update(
        subscription.id,
        {"items": [entry], "proration_behavior": "always_invoice", "expand": ["latest_invoice"]},
    )
    assert isinstance(changed.latest_invoice, stripe.Invoice)
    assert (changed.latest_invoice.billing_reason, changed.latest_invoice.status) == (
        "subscription_update",
        "paid",
    )
    assert 5900 <= changed.latest_invoice.amount_paid <= 6000


def test_ending_with_the_period_can_be_taken_back(world: World, amount: int) -> None:
    subscription = world.subscribe(world.new_payer(), amount)
    end = subscription["items"].data[0].current_period_end
    ending = world.v1.subscriptions.update(subscription.id, {"cancel_at_period_end": True})
    assert (ending.status, ending.cancel_at_period_end, ending.cancel_at) == ("active", True, end)
    assert ending.canceled_at is not None
    resumed = world.v1.subscriptions.update(subscription.id, {"cancel_at_period_end": False})
    assert (resumed.cancel_at_period_end, resumed.cancel_at, resumed.canceled_at) == (False, None, None)


def test_a_subscription_that_ends_with_its_period_is_not_billed_again(world: World, amount: int) -> None:
    customer = world.new_payer()
    subscription = world.subscribe(customer, amount, cancel_at_period_end=True)
    end = subscription["items"].data[0].current_period_end
    world.pass_time(customer, end - world.now(customer) - HOUR)
    assert world.v1.subscriptions.retrieve(subscription.id).status == "active"
    world.pass_time(customer, 3 * HOUR)
    ended = world.v1.subscriptions.retrieve(subscription.id)
    assert (ended.status, ended.ended_at) == ("canceled", end)
    assert len(world.invoices(subscription)) == 1


def test_cancelling_ends_at_once_and_only_once(world: World, amount: int) -> None:
    subscription = world.subscribe(world.new_payer(), amount)
    ended = world.v1.subscriptions.cancel(subscription.id)
    assert ended.status == "canceled"
    assert ended.ended_at == ended.canceled_at
    assert ended.cancellation_details is not None
    assert ended.cancellation_details.reason == "cancellation_requested"
    with pytest.raises(stripe.InvalidRequestError) as refused:
        world.v1.subscriptions.cancel(subscription.id)
    assert refused.value.code == "resource_missing"


def test_a_cancelled_subscription_changes_nothing_but_its_notes(world: World, amount: int) -> None:
    subscription = world.subscribe(world.new_payer(), amount)
    world.v1.subscriptions.cancel(subscription.id)
    with pytest.raises(stripe.InvalidRequestError):
        world.v1.subscriptions.update(subscription.id, {"cancel_at_period_end": True})
    noted = world.v1.subscriptions.update(subscription.id, {"metadata": {"why": "moved"}})
    assert noted.metadata["why"] == "moved"


def test_another_currency_may_follow_once_the_first_subscription_has_ended(world: World, amount: int) -> None:
    customer = world.new_payer()
    first = world.subscribe(customer, amount, "usd")
    world.v1.subscriptions.cancel(first.id)
    assert world.subscribe(customer, amount, "eur").status == "active"


def test_cancelled_subscriptions_are_listed_only_on_request(world: World, amount: int) -> None:
    customer = world.new_payer()
    gone, alive = (world.subscribe(customer, amount) for _ in range(2))
    world.v1.subscriptions.cancel(gone.id)

    def listed(**status: Any) -> set[str]:
        wanted: Any = {"customer": customer.id, **status}
        return {item.id for item in world.v1.subscriptions.list(wanted).data}

    assert listed() == {alive.id}
    assert listed(status="all") == {alive.id, gone.id}
    assert listed(status="canceled") == {gone.id}
    assert listed(status="active") == {alive.id}
