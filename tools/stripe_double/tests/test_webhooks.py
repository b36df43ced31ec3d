"""Webhooks: signed, sent at least once, retried, with fault injection."""

import time

import pytest
import stripe

from accounts import DAY, HOUR, DoubleAccount
from openapi import response_checks
from stripe_double.client import ControlClient
from webhook_receiver import WebhookReceiver

_FIRST_PAYMENT = [
    "customer.subscription.created",
    "invoice.created",
    "payment_intent.created",
    "invoice.finalized",
    "charge.succeeded",
    "payment_intent.succeeded",
    "invoice_payment.paid",
    "invoice.paid",
    "invoice.payment_succeeded",
    "customer.subscription.updated",
]


def test_a_first_payment_sends_its_events_in_order_and_signed(
    account: DoubleAccount, controls: ControlClient, webhooks: WebhookReceiver, amount: int
) -> None:
    subscription = account.subscribe(account.create_paying_customer(), amount)
    assert controls.settle() == 0
    assert all(post.accepted for post in webhooks.posts)
    assert [kind for kind in webhooks.types if kind in _FIRST_PAYMENT] == _FIRST_PAYMENT
    paid = next(event for event in webhooks.events if event["type"] == "invoice.paid")
    assert (paid["api_version"], paid["livemode"], paid["pending_webhooks"]) == (stripe.api_version, False, 1)
    assert paid["data"]["object"]["amount_paid"] == amount
    assert paid["data"]["object"]["parent"]["subscription_details"]["subscription"] == subscription.id
    response_checks(strict=True).check_objects(webhooks.events, "webhook")


def test_webhooks_are_signed_with_the_real_time_or_with_the_accounts(
    account: DoubleAccount, controls: ControlClient, webhooks: WebhookReceiver
) -> None:
    controls.advance(3 * DAY)
    account.v1.customers.create()
    controls.settle()
    controls.signed_at("account")
    account.v1.customers.create()
    controls.settle()
    real, own = (int(str(post.signature).partition(",")[0].removeprefix("t=")) for post in webhooks.posts)
    assert abs(time.time() - real) < HOUR
    assert abs(controls.now - own) < HOUR


def test_a_failed_webhook_is_retried_until_it_is_accepted(
    account: DoubleAccount, controls: ControlClient, webhooks: WebhookReceiver
) -> None:
    webhooks.status_for = lambda post: 503 if len(webhooks.posts) < 4 else 200
    customer = account.v1.customers.create()
    assert controls.settle() == 1
    undelivered = account.v1.events.list({"delivery_success": False}).data
    assert [event.data.object["id"] for event in undelivered] == [customer.id]
    assert undelivered[0].pending_webhooks == 1
    controls.advance(HOUR)
    assert webhooks.types == ["customer.created"] * 4
    assert len({event["id"] for event in webhooks.events}) == 1
    assert not account.v1.events.list({"delivery_success": False}).data
    assert account.v1.events.retrieve(undelivered[0].id).pending_webhooks == 0


def test_a_webhook_is_given_up_after_three_days(
    account: DoubleAccount, controls: ControlClient, webhooks: WebhookReceiver
) -> None:
    webhooks.status_for = lambda post: 500
    account.v1.customers.create()
    controls.advance(4 * DAY)
    tries = len(webhooks.posts)
    assert tries > 5
    controls.advance(4 * DAY)
    assert len(webhooks.posts) == tries
    assert len(controls.deliveries("given_up")) == 1
    assert len(account.v1.events.list({"delivery_success": False}).data) == 1


def test_a_duplicated_webhook_is_the_same_event_several_times(
    account: DoubleAccount, controls: ControlClient, webhooks: WebhookReceiver
) -> None:
    controls.duplicate(2, types=["customer.created"])
    for _ in range(2):
        account.v1.customers.create()
    controls.settle()
    ids = [event["id"] for event in webhooks.events]
    assert (len(ids), ids.count(ids[0]), ids.count(ids[-1])) == (4, 3, 1)


def test_a_webhook_dropped_as_failed_is_retried(
    account: DoubleAccount, controls: ControlClient, webhooks: WebhookReceiver
) -> None:
    controls.drop(count=1)
    account.v1.customers.create()
    controls.settle()
    assert webhooks.posts == []
    assert len(account.v1.events.list({"delivery_success": False}).data) == 1
    controls.advance(HOUR)
    assert webhooks.types == ["customer.created"]


def test_a_webhook_dropped_as_delivered_is_sent_only_by_replay(
    account: DoubleAccount, controls: ControlClient, webhooks: WebhookReceiver
) -> None:
    controls.drop(count=None, reported_as="delivered")
    account.v1.customers.create()
    controls.advance(4 * DAY)
    assert webhooks.posts == []
    assert not account.v1.events.list({"delivery_success": False}).data
    controls.clear_faults()
    assert controls.replay() == 1
    controls.settle()
    assert webhooks.types == ["customer.created"]


def test_a_delayed_webhook_is_sent_when_it_is_due(
    account: DoubleAccount, controls: ControlClient, webhooks: WebhookReceiver
) -> None:
    controls.delay(600)
    account.v1.customers.create()
    controls.settle()
    assert webhooks.posts == []
    controls.advance(700)
    assert webhooks.types == ["customer.created"]


@pytest.mark.parametrize("how", ["signature", "body", "secret", "old", "missing"])
def test_a_corrupted_webhook_is_not_accepted_and_its_retry_is(
    how: str, account: DoubleAccount, controls: ControlClient, webhooks: WebhookReceiver
) -> None:
    controls.corrupt(how)
    account.v1.customers.create()
    controls.settle()
    assert [post.accepted for post in webhooks.posts] == [False]
    controls.advance(60)
    assert [post.accepted for post in webhooks.posts] == [False, True]


def test_a_webhook_from_the_future_is_signed_with_a_later_time(
    account: DoubleAccount, controls: ControlClient, webhooks: WebhookReceiver
) -> None:
    controls.corrupt("future")
    for _ in range(2):
        account.v1.customers.create()
    controls.settle()
    times = [int(str(post.signature).split(",")[0].removeprefix("t=")) for post in webhooks.posts]
    assert times[0] > times[1] + 3000


@pytest.mark.parametrize(("how", "member"), [("livemode", True), ("api_version", "2020-08-27")])
def test_a_well_signed_webhook_can_be_of_another_account(
    how: str,
    member: object,
    account: DoubleAccount,
    controls: ControlClient,
    webhooks: WebhookReceiver,
) -> None:
    controls.corrupt(how)
    account.v1.customers.create()
    controls.settle()
    assert [(post.accepted, post.event[how]) for post in webhooks.posts] == [(True, member)]


def test_a_rolled_back_subscription_sends_no_webhooks(
    account: DoubleAccount, controls: ControlClient, webhooks: WebhookReceiver, amount: int
) -> None:
    customer = account.create_paying_customer("pm_card_chargeCustomerFail")
    controls.settle()
    webhooks.clear()
    with pytest.raises(stripe.CardError):
        account.subscribe(customer, amount, payment_behavior="error_if_incomplete")
    controls.settle()
    assert set(webhooks.types) == {"product.created"}


def test_held_webhooks_are_released_in_the_given_order(
    account: DoubleAccount, controls: ControlClient, webhooks: WebhookReceiver
) -> None:
    def held() -> list[str]:
        webhooks.clear()
        controls.hold()
        customers = [account.v1.customers.create().id for _ in range(5)]
        assert controls.settle() == 5
        assert webhooks.posts == []
        return customers

    def arrived() -> list[str]:
        assert controls.settle() == 0
        return [event["data"]["object"]["id"] for event in webhooks.events]

    customers = held()
    controls.release("reversed")
    assert arrived() == customers[::-1]
    customers = held()
    controls.release("shuffled", seed=7)
    assert sorted(arrived()) == sorted(customers)
    customers = held()
    events = [delivery["event"] for delivery in controls.deliveries()]
    controls.release([events[3], events[0]])
    assert arrived() == [customers[3], customers[0], customers[1], customers[2], customers[4]]


def test_a_reissued_event_has_another_id_and_the_same_content(
    account: DoubleAccount, controls: ControlClient, webhooks: WebhookReceiver
) -> None:
    account.v1.customers.create()
    controls.settle()
    again = controls.reissue(webhooks.events[0]["id"])
    controls.settle()
    first, second = webhooks.events
    assert second["id"] == again != first["id"]
    assert second["data"] == first["data"]


def test_the_endpoint_may_call_the_api_before_it_responds(
    account: DoubleAccount, controls: ControlClient, webhooks: WebhookReceiver
) -> None:
    customers = []

    def call_the_api(post: object) -> int:
        customers.append(account.v1.customers.list().data[0].id)
        return 200

    webhooks.status_for = call_the_api
    customer = account.v1.customers.create()
    controls.settle()
    assert customers == [customer.id]


def test_a_renewal_waits_for_its_webhook_for_up_to_72_hours(
    account: DoubleAccount, controls: ControlClient, webhooks: WebhookReceiver, amount: int
) -> None:
    subscription = account.subscribe(account.create_paying_customer(), amount)
    controls.settle()
    controls.drop(count=None)
    end = subscription["items"].data[0].current_period_end
    controls.advance_to(end + 71 * HOUR)
    assert account.invoices(subscription)[1].status == "draft"
    controls.advance_to(end + 73 * HOUR)
    assert account.invoices(subscription)[1].status == "paid"


def test_a_renewal_is_collected_an_hour_after_its_webhook_arrived_late(
    account: DoubleAccount, controls: ControlClient, webhooks: WebhookReceiver, amount: int
) -> None:
    subscription = account.subscribe(account.create_paying_customer(), amount)
    controls.settle()
    controls.hold(types=["invoice.created"])
    end = subscription["items"].data[0].current_period_end
    controls.advance_to(end + 10 * HOUR)
    controls.release()
    controls.settle()
    controls.advance(HOUR // 2)
    assert account.invoices(subscription)[1].status == "draft"
    controls.advance(HOUR)
    assert account.invoices(subscription)[1].status == "paid"
