"""Renewals: drafted, collected an hour later, refused, retried, given up."""

import pytest
import stripe

from tests.devstack.stripe.worlds import DAY, HOUR, World


def renew(world: World, customer: stripe.Customer, subscription: stripe.Subscription) -> None:
    """Let time pass until a few minutes after the present period."""
    end = world.v1.subscriptions.retrieve(subscription.id)["items"].data[0].current_period_end
    world.pass_time(customer, end - world.now(customer) + 300)


def fail_from_now_on(world: World, customer: stripe.Customer) -> None:
    """Make a card that is refused the customer's default."""
    card = world.v1.payment_methods.attach("pm_card_chargeCustomerFail", {"customer": customer.id})
    world.v1.customers.update(customer.id, {"invoice_settings": {"default_payment_method": card.id}})


def test_a_renewal_is_a_draft_for_an_hour_and_then_collected(world: World, amount: int) -> None:
    customer = world.new_payer()
    subscription = world.subscribe(customer, amount)
    old = subscription["items"].data[0]
    renew(world, customer, subscription)
    renewed = world.v1.subscriptions.retrieve(subscription.id, {"expand": ["latest_invoice"]})
    new, draft = renewed["items"].data[0], renewed.latest_invoice
    assert isinstance(draft, stripe.Invoice)
    assert (renewed.status, new.current_period_start) == ("active", old.current_period_end)
    assert (draft.status, draft.billing_reason, draft.amount_paid) == ("draft", "subscription_cycle", 0)
    assert (draft.period_start, draft.period_end) == (old.current_period_start, old.current_period_end)
    period = draft.lines.data[0].period
    assert (period.start, period.end) == (new.current_period_start, new.current_period_end)
    world.pass_time(customer, 2 * HOUR)
    paid = world.v1.invoices.retrieve(str(draft.id))
    assert (paid.status, paid.amount_paid) == ("paid", amount)


def test_a_refused_renewal_is_past_due_and_a_new_card_heals_it(world: World, amount: int) -> None:
    customer = world.new_payer()
    subscription = world.subscribe(customer, amount)
    fail_from_now_on(world, customer)
    renew(world, customer, subscription)
    world.pass_time(customer, 2 * HOUR)
    late = world.v1.subscriptions.retrieve(subscription.id, {"expand": ["latest_invoice"]})
    assert isinstance(late.latest_invoice, stripe.Invoice)
    assert (late.status, late.latest_invoice.status) == ("past_due", "open")
    assert late.latest_invoice.next_payment_attempt is not None
    card = world.v1.payment_methods.attach("pm_card_visa", {"customer": customer.id})
    world.v1.subscriptions.update(subscription.id, {"default_payment_method": card.id})
    world.v1.invoices.pay(str(late.latest_invoice.id))
    assert world.v1.subscriptions.retrieve(subscription.id).status == "active"


def test_what_was_too_little_is_collected_with_the_renewal(world: World) -> None:
    customer = world.new_payer()
    subscription = world.subscribe(customer, 30)
    renew(world, customer, subscription)
    world.pass_time(customer, 2 * HOUR)
    second = world.invoices(subscription)[1]
    assert (second.total, second.starting_balance, second.amount_due, second.amount_paid) == (30, 30, 60, 60)


def test_an_invoice_paid_out_of_band_collected_nothing_through_stripe(world: World, amount: int) -> None:
    customer = world.new_payer("pm_card_chargeCustomerFail")
    subscription = world.subscribe(customer, amount)
    paid = world.v1.invoices.pay(str(world.invoices(subscription)[0].id), {"paid_out_of_band": True})
    assert (paid.status, paid.amount_remaining) == ("paid", 0)
    assert paid.amount_paid - (paid.amount_paid_off_stripe or 0) == 0
    assert world.v1.subscriptions.retrieve(subscription.id).status == "active"


def test_a_void_invoice_cannot_be_paid(world: World, amount: int) -> None:
    customer = world.new_payer()
    subscription = world.subscribe(customer, amount)
    fail_from_now_on(world, customer)
    renew(world, customer, subscription)
    world.pass_time(customer, 2 * HOUR)
    open_invoice = world.invoices(subscription)[1]
    assert world.v1.invoices.void_invoice(str(open_invoice.id)).status == "void"
    with pytest.raises(stripe.InvalidRequestError):
        world.v1.invoices.pay(str(open_invoice.id))


def test_a_paid_invoice_is_not_paid_again(world: World, amount: int) -> None:
    subscription = world.subscribe(world.new_payer(), amount)
    with pytest.raises(stripe.InvalidRequestError) as refused:
        world.v1.invoices.pay(str(world.invoices(subscription)[0].id))
    assert "already paid" in str(refused.value)


def test_the_next_periods_follow_without_a_gap(world: World, amount: int) -> None:
    customer = world.new_payer()
    subscription = world.subscribe(customer, amount)
    for _ in range(2):
        renew(world, customer, subscription)
        world.pass_time(customer, DAY)
    periods = [
        (it.lines.data[0].period.start, it.lines.data[0].period.end) for it in world.invoices(subscription)
    ]
    assert [end for _, end in periods[:-1]] == [start for start, _ in periods[1:]]
