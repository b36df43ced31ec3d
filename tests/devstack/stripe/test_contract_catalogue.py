"""Products, prices, charges and the plain reading and noting of everything else."""

import secrets
from typing import Any

import pytest
import stripe

from tests.devstack.stripe.worlds import World


def intent_of(subscription: stripe.Subscription) -> str:
    """Return the payment intent of the expanded first invoice."""
    invoice = subscription.latest_invoice
    assert isinstance(invoice, stripe.Invoice)
    assert invoice.payments is not None
    return str(invoice.payments.data[0].payment.payment_intent)


def test_a_product_may_have_an_id_of_ones_own_once(stripe_client: stripe.StripeClient) -> None:
    chosen: Any = {
        "id": f"credits_{secrets.token_hex(6)}",
        "name": "Credits",
        "url": "https://wallet.example",
    }
    products = stripe_client.v1.products
    assert products.create(chosen).id == chosen["id"] == products.retrieve(chosen["id"]).id
    with pytest.raises(stripe.InvalidRequestError) as refused:
        products.create(chosen)
    assert refused.value.code == "resource_already_exists"
    assert not products.update(chosen["id"], {"active": False}).active
    assert [item.id for item in products.list({"ids": [chosen["id"]]}).data] == [chosen["id"]]


def test_a_subscription_may_name_a_price_instead_of_its_data(world: World, amount: int) -> None:
    product = world.new_product()
    price = world.v1.prices.create(
        {"currency": "eur", "product": product.id, "unit_amount": amount, "recurring": {"interval": "month"}}
    )
    assert (price.type, price.recurring and price.recurring.interval) == ("recurring", "month")
    assert world.v1.prices.update(price.id, {"nickname": "small"}).nickname == "small"
    assert world.v1.prices.retrieve(price.id, {"expand": ["product"]}).product == product
    assert [item.id for item in world.v1.prices.list({"product": product.id}).data] == [price.id]
    subscription = world.subscribe(world.new_payer(), amount, items=[{"price": price.id, "quantity": 3}])
    assert subscription["items"].data[0].price.id == price.id
    assert [it.amount_paid for it in world.invoices(subscription)] == [3 * amount]


def test_an_amount_of_more_than_eight_digits_is_too_large(world: World) -> None:
    with pytest.raises(stripe.InvalidRequestError):
        world.subscribe(world.new_payer(), 100_000_000)


def test_a_charge_tells_what_was_paid_with_and_what_remains(world: World, amount: int) -> None:
    customer = world.new_payer()
    intent = intent_of(world.subscribe(customer, amount))
    (charge,) = world.v1.charges.list({"payment_intent": intent}).data
    assert (charge.amount, charge.paid, charge.status, charge.customer) == (
        amount,
        True,
        "succeeded",
        customer.id,
    )
    assert charge.payment_method_details is not None
    assert charge.payment_method_details.card is not None
    assert charge.payment_method_details.card.last4 == "4242"
    noted = world.v1.charges.update(charge.id, {"description": "first", "metadata": {"note": "1"}})
    assert (noted.description, noted.metadata.to_dict()) == ("first", {"note": "1"})
    refund = world.v1.refunds.create({"charge": charge.id, "amount": 70, "reason": "requested_by_customer"})
    found = world.v1.charges.retrieve(charge.id, {"expand": ["refunds", "balance_transaction"]})
    assert found.refunds is not None
    assert [item.id for item in found.refunds.data] == [refund.id]
    assert isinstance(found.balance_transaction, stripe.BalanceTransaction)
    assert found.balance_transaction.amount == amount
    kept = world.v1.refunds.update(refund.id, {"metadata": {"why": "asked"}})
    assert kept.metadata is not None
    assert kept.metadata["why"] == "asked"


def test_a_customer_shows_its_address_and_on_request_its_live_subscriptions(
    world: World, amount: int
) -> None:
    customer = world.new_payer()
    address: Any = {"city": "Zug", "country": "CH", "line1": "Bahnhofstrasse 1", "postal_code": "6300"}
    world.v1.customers.update(customer.id, {"address": address, "name": "Someone", "phone": "+41"})
    gone, alive = (world.subscribe(customer, amount).id for _ in range(2))
    world.v1.subscriptions.cancel(gone)
    found = world.v1.customers.retrieve(customer.id, {"expand": ["subscriptions"]})
    assert found.address is not None
    assert (found.address.city, found.address.country, found.name) == ("Zug", "CH", "Someone")
    assert found.subscriptions is not None
    assert [item.id for item in found.subscriptions.data] == [alive]


def test_everything_is_found_by_its_id_and_in_its_list(world: World, amount: int) -> None:
    customer = world.new_customer()
    setup = world.set_up(customer, "pm_card_mastercard")
    card = str(setup.payment_method)
    subscription = world.subscribe(customer, amount, default_payment_method=card)
    intent = intent_of(subscription)
    (payment,) = world.v1.invoice_payments.list({"invoice": str(world.invoices(subscription)[0].id)}).data
    assert world.v1.invoice_payments.retrieve(payment.id).payment.payment_intent == intent
    assert [item.id for item in world.v1.payment_intents.list({"customer": customer.id}).data] == [intent]
    assert [item.id for item in world.v1.setup_intents.list({"customer": customer.id}).data] == [setup.id]
    listed = world.v1.payment_methods.list({"customer": customer.id, "type": "card"}).data
    assert [item.id for item in listed] == [card]
    found = world.v1.payment_methods.retrieve(card)
    assert found.card is not None
    assert found.card.brand == "mastercard"


def test_notes_can_be_made_on_everything(world: World, amount: int) -> None:
    note: Any = {"metadata": {"note": secrets.token_hex(4)}}
    customer = world.new_customer()
    setup = world.set_up(customer, "pm_card_visa")
    subscription = world.subscribe(customer, amount, default_payment_method=setup.payment_method)
    noted: list[Any] = [
        world.v1.setup_intents.update(setup.id, note),
        world.v1.payment_methods.update(str(setup.payment_method), note),
        world.v1.subscriptions.update(subscription.id, note),
        world.v1.invoices.update(str(world.invoices(subscription)[0].id), note),
    ]
    assert [item.metadata.to_dict() for item in noted] == [note["metadata"]] * len(noted)


def test_an_empty_invoice_by_hand_is_a_draft_until_it_is_finalized(world: World) -> None:
    customer = world.new_payer()
    draft = world.v1.invoices.create({"customer": customer.id, "auto_advance": False, "currency": "usd"})
    assert (draft.status, draft.billing_reason, draft.parent) == ("draft", "manual", None)
    final = world.v1.invoices.finalize_invoice(str(draft.id))
    assert (final.status, final.amount_paid) == ("paid", 0)
    assert final.number
