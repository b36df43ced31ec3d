"""Webhooks: signed, at least once, again after failures, and disturbed on request."""

import pytest
import stripe

from devstack.stripe.client import ControlClient
from tests.devstack.stripe.mailbox import Mailbox
from tests.devstack.stripe.shapes import Shapes
from tests.devstack.stripe.worlds import DAY, HOUR, DoubleWorld

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


def test_a_first_payment_tells_its_story_in_signed_posts(
    here: DoubleWorld, controls: ControlClient, mailbox: Mailbox, amount: int
) -> None:
    subscription = here.subscribe(here.new_payer(), amount)
    assert controls.settle() == 0
    assert all(post.accepted for post in mailbox.posts)
    assert [kind for kind in mailbox.types if kind in _FIRST_PAYMENT] == _FIRST_PAYMENT
    paid = next(event for event in mailbox.events if event["type"] == "invoice.paid")
    assert (paid["api_version"], paid["livemode"], paid["pending_webhooks"]) == (stripe.api_version, False, 1)
    assert paid["data"]["object"]["amount_paid"] == amount
    assert paid["data"]["object"]["parent"]["subscription_details"]["subscription"] == subscription.id
    Shapes(strict=True).check_things(mailbox.events, "webhook")


def test_what_the_endpoint_refuses_comes_again_until_it_is_taken(
    here: DoubleWorld, controls: ControlClient, mailbox: Mailbox
) -> None:
    mailbox.answers = lambda post: 503 if len(mailbox.posts) < 4 else 200
    customer = here.v1.customers.create()
    assert controls.settle() == 1
    undelivered = here.v1.events.list({"delivery_success": False}).data
    assert [event.data.object["id"] for event in undelivered] == [customer.id]
    assert undelivered[0].pending_webhooks == 1
    controls.advance(HOUR)
    assert mailbox.types == ["customer.created"] * 4
    assert len({event["id"] for event in mailbox.events}) == 1
    assert not here.v1.events.list({"delivery_success": False}).data
    assert here.v1.events.retrieve(undelivered[0].id).pending_webhooks == 0


def test_an_endpoint_that_never_answers_well_is_given_up_after_three_days(
    here: DoubleWorld, controls: ControlClient, mailbox: Mailbox
) -> None:
    mailbox.answers = lambda post: 500
    here.v1.customers.create()
    controls.advance(4 * DAY)
    tries = len(mailbox.posts)
    assert tries > 5
    controls.advance(4 * DAY)
    assert len(mailbox.posts) == tries
    assert len(controls.deliveries("given_up")) == 1
    assert len(here.v1.events.list({"delivery_success": False}).data) == 1


def test_a_duplicated_delivery_is_the_same_event_several_times(
    here: DoubleWorld, controls: ControlClient, mailbox: Mailbox
) -> None:
    controls.duplicate(2, types=["customer.created"])
    for _ in range(2):
        here.v1.customers.create()
    controls.settle()
    ids = [event["id"] for event in mailbox.events]
    assert (len(ids), ids.count(ids[0]), ids.count(ids[-1])) == (4, 3, 1)


def test_a_dropped_delivery_that_stripe_knows_of_is_sent_again_later(
    here: DoubleWorld, controls: ControlClient, mailbox: Mailbox
) -> None:
    controls.drop(count=1)
    here.v1.customers.create()
    controls.settle()
    assert mailbox.posts == []
    assert len(here.v1.events.list({"delivery_success": False}).data) == 1
    controls.advance(HOUR)
    assert mailbox.types == ["customer.created"]


def test_a_dropped_delivery_that_stripe_believes_delivered_comes_only_by_replay(
    here: DoubleWorld, controls: ControlClient, mailbox: Mailbox
) -> None:
    controls.drop(count=None, reported_as="delivered")
    here.v1.customers.create()
    controls.advance(4 * DAY)
    assert mailbox.posts == []
    assert not here.v1.events.list({"delivery_success": False}).data
    controls.clear_faults()
    assert controls.replay() == 1
    controls.settle()
    assert mailbox.types == ["customer.created"]


def test_a_delayed_delivery_leaves_when_its_time_has_come(
    here: DoubleWorld, controls: ControlClient, mailbox: Mailbox
) -> None:
    controls.delay(600)
    here.v1.customers.create()
    controls.settle()
    assert mailbox.posts == []
    controls.advance(700)
    assert mailbox.types == ["customer.created"]


@pytest.mark.parametrize("how", ["signature", "body", "secret", "old", "missing"])
def test_a_spoilt_delivery_is_not_accepted_and_comes_well_the_next_time(
    how: str, here: DoubleWorld, controls: ControlClient, mailbox: Mailbox
) -> None:
    controls.corrupt(how)
    here.v1.customers.create()
    controls.settle()
    assert [post.accepted for post in mailbox.posts] == [False]
    controls.advance(60)
    assert [post.accepted for post in mailbox.posts] == [False, True]


def test_a_letter_from_the_future_is_signed_with_a_time_to_come(
    here: DoubleWorld, controls: ControlClient, mailbox: Mailbox
) -> None:
    controls.corrupt("future")
    for _ in range(2):
        here.v1.customers.create()
    controls.settle()
    times = [int(str(post.signature).split(",")[0].removeprefix("t=")) for post in mailbox.posts]
    assert times[0] > times[1] + 3000


@pytest.mark.parametrize(("how", "member"), [("livemode", True), ("api_version", "2020-08-27")])
def test_a_well_signed_letter_can_be_meant_for_somebody_else(
    how: str, member: object, here: DoubleWorld, controls: ControlClient, mailbox: Mailbox
) -> None:
    controls.corrupt(how)
    here.v1.customers.create()
    controls.settle()
    assert [(post.accepted, post.event[how]) for post in mailbox.posts] == [(True, member)]


def test_what_is_taken_back_is_not_told(
    here: DoubleWorld, controls: ControlClient, mailbox: Mailbox, amount: int
) -> None:
    customer = here.new_payer("pm_card_chargeCustomerFail")
    controls.settle()
    mailbox.clear()
    with pytest.raises(stripe.CardError):
        here.subscribe(customer, amount, payment_behavior="error_if_incomplete")
    controls.settle()
    assert set(mailbox.types) == {"product.created"}


def test_held_deliveries_leave_in_the_wanted_order(
    here: DoubleWorld, controls: ControlClient, mailbox: Mailbox
) -> None:
    def held() -> list[str]:
        mailbox.clear()
        controls.hold()
        made = [here.v1.customers.create().id for _ in range(5)]
        assert controls.settle() == 5
        assert mailbox.posts == []
        return made

    def arrived() -> list[str]:
        assert controls.settle() == 0
        return [event["data"]["object"]["id"] for event in mailbox.events]

    made = held()
    controls.release("reversed")
    assert arrived() == made[::-1]
    made = held()
    controls.release("shuffled", seed=7)
    assert sorted(arrived()) == sorted(made)
    made = held()
    wanted = [delivery["event"] for delivery in controls.deliveries()]
    controls.release([wanted[3], wanted[0]])
    assert arrived() == [made[3], made[0], made[1], made[2], made[4]]


def test_a_reissued_event_has_another_id_and_the_same_content(
    here: DoubleWorld, controls: ControlClient, mailbox: Mailbox
) -> None:
    here.v1.customers.create()
    controls.settle()
    again = controls.reissue(mailbox.events[0]["id"])
    controls.settle()
    first, second = mailbox.events
    assert second["id"] == again != first["id"]
    assert second["data"] == first["data"]


def test_an_endpoint_made_through_the_api_gets_what_it_asked_for_under_its_own_secret(
    here: DoubleWorld, controls: ControlClient, mailbox: Mailbox
) -> None:
    controls.set_webhook_endpoint("http://127.0.0.1:9/nobody", mailbox.secret)
    made = here.v1.webhook_endpoints.create(
        {"url": mailbox.url, "enabled_events": ["product.created"], "api_version": "2026-10-28.endive"}
    )
    assert made.secret is not None
    secret, mailbox.secret = mailbox.secret, made.secret
    here.v1.customers.create()
    here.new_product()
    controls.settle()
    assert mailbox.types == ["product.created"]
    here.v1.webhook_endpoints.update(made.id, {"disabled": True})
    here.new_product()
    controls.settle()
    assert mailbox.types == ["product.created"]
    mailbox.secret = secret
    assert getattr(here.v1.webhook_endpoints.retrieve(made.id), "secret", None) is None


def test_the_endpoint_may_ask_the_api_before_it_answers(
    here: DoubleWorld, controls: ControlClient, mailbox: Mailbox
) -> None:
    found = []

    def ask(post: object) -> int:
        found.append(here.v1.customers.list().data[0].id)
        return 200

    mailbox.answers = ask
    customer = here.v1.customers.create()
    controls.settle()
    assert found == [customer.id]


def test_a_renewal_waits_for_its_webhook_for_up_to_72_hours(
    here: DoubleWorld, controls: ControlClient, mailbox: Mailbox, amount: int
) -> None:
    subscription = here.subscribe(here.new_payer(), amount)
    controls.settle()
    controls.drop(count=None)
    end = subscription["items"].data[0].current_period_end
    controls.advance_to(end + 71 * HOUR)
    assert here.invoices(subscription)[1].status == "draft"
    controls.advance_to(end + 73 * HOUR)
    assert here.invoices(subscription)[1].status == "paid"


def test_a_renewal_is_collected_an_hour_after_its_webhook_arrived_late(
    here: DoubleWorld, controls: ControlClient, mailbox: Mailbox, amount: int
) -> None:
    subscription = here.subscribe(here.new_payer(), amount)
    controls.settle()
    controls.hold(types=["invoice.created"])
    end = subscription["items"].data[0].current_period_end
    controls.advance_to(end + 10 * HOUR)
    controls.release()
    controls.settle()
    controls.advance(HOUR // 2)
    assert here.invoices(subscription)[1].status == "draft"
    controls.advance(HOUR)
    assert here.invoices(subscription)[1].status == "paid"
