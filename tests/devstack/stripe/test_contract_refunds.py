"""Refunds, and disputes as Stripe's test cards begin them."""

import pytest
import stripe

from tests.devstack.stripe.worlds import World


def paid_intent(world: World, amount: int, card: str = "pm_card_visa") -> str:
    """Return the payment intent that paid a first invoice."""
    invoice = world.subscribe(world.new_payer(card), amount).latest_invoice
    assert isinstance(invoice, stripe.Invoice)
    assert invoice.payments is not None
    return str(invoice.payments.data[0].payment.payment_intent)


def charge_of(world: World, intent: str) -> stripe.Charge:
    """Return the charge of an intent."""
    charge = world.v1.payment_intents.retrieve(intent, {"expand": ["latest_charge"]}).latest_charge
    assert isinstance(charge, stripe.Charge)
    return charge


def test_partial_refunds_add_up_and_never_exceed_the_charge(world: World, amount: int) -> None:
    intent = paid_intent(world, amount)
    first = world.v1.refunds.create({"payment_intent": intent, "amount": 100})
    assert (first.status, first.amount, first.payment_intent) == ("succeeded", 100, intent)
    assert (charge_of(world, intent).amount_refunded, charge_of(world, intent).refunded) == (100, False)
    with pytest.raises(stripe.InvalidRequestError):
        world.v1.refunds.create({"payment_intent": intent, "amount": amount})
    rest = world.v1.refunds.create({"payment_intent": intent})
    assert rest.amount == amount - 100
    assert charge_of(world, intent).refunded
    with pytest.raises(stripe.InvalidRequestError) as refused:
        world.v1.refunds.create({"payment_intent": intent})
    assert refused.value.code == "charge_already_refunded"
    listed = world.v1.refunds.list({"payment_intent": intent}).data
    assert [item.id for item in listed] == [rest.id, first.id]


def test_a_refund_leaves_the_invoice_paid(world: World, amount: int) -> None:
    customer = world.new_payer()
    subscription = world.subscribe(customer, amount)
    assert isinstance(subscription.latest_invoice, stripe.Invoice)
    assert subscription.latest_invoice.payments is not None
    intent = str(subscription.latest_invoice.payments.data[0].payment.payment_intent)
    world.v1.refunds.create({"payment_intent": intent})
    found = world.v1.invoices.retrieve(str(subscription.latest_invoice.id))
    assert (found.status, found.amount_paid) == ("paid", amount)


def test_a_refund_needs_something_to_refund(stripe_client: stripe.StripeClient) -> None:
    with pytest.raises(stripe.InvalidRequestError):
        stripe_client.v1.refunds.create({"amount": 100})
    with pytest.raises(stripe.InvalidRequestError) as refused:
        stripe_client.v1.refunds.create({"charge": "ch_neverwas"})
    assert refused.value.code == "resource_missing"
