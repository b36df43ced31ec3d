"""Products, charges, refunds, and what every resource has."""

import secrets
from typing import Any

import pytest
import stripe

from accounts import StripeAccount


def test_a_product_may_have_an_id_of_the_callers_choice(stripe_client: stripe.StripeClient) -> None:
    chosen: Any = {
        "id": f"credits_{secrets.token_hex(6)}",
        "name": "Credits",
        "url": "https://wallet.example",
    }
    products = stripe_client.v1.products
    assert products.create(chosen).id == chosen["id"]
    with pytest.raises(stripe.InvalidRequestError) as raised:
        products.create(chosen)
    assert raised.value.code == "resource_already_exists"


def test_a_subscription_may_name_a_price(account: StripeAccount, amount: int) -> None:
    price = account.subscribe(account.create_paying_customer(), amount)["items"].data[0].price
    assert (price.type, price.recurring and price.recurring.interval) == ("recurring", "month")
    subscription = account.subscribe(
        account.create_paying_customer(), amount, items=[{"price": price.id, "quantity": 3}]
    )
    assert subscription["items"].data[0].price.id == price.id
    assert [item.amount_paid for item in account.invoices(subscription)] == [3 * amount]


def test_an_amount_of_more_than_eight_digits_is_too_large(account: StripeAccount) -> None:
    with pytest.raises(stripe.InvalidRequestError):
        account.subscribe(account.create_paying_customer(), 100_000_000)


def test_a_charge_has_its_card_its_refunds_and_its_balance_transaction(
    account: StripeAccount, amount: int
) -> None:
    customer = account.create_paying_customer()
    intent = account.payment_intent_of(account.subscribe(customer, amount))
    (charge,) = account.v1.charges.list({"payment_intent": intent}).data
    assert (charge.amount, charge.paid, charge.status, charge.customer) == (
        amount,
        True,
        "succeeded",
        customer.id,
    )
    assert charge.payment_method_details is not None
    assert charge.payment_method_details.card is not None
    assert charge.payment_method_details.card.last4 == "4242"
    refund = account.v1.refunds.create({"charge": charge.id, "amount": 70, "reason": "requested_by_customer"})
    expanded = account.v1.charges.retrieve(charge.id, {"expand": ["refunds", "balance_transaction"]})
    assert expanded.refunds is not None
    assert [item.id for item in expanded.refunds.data] == [refund.id]
    assert isinstance(expanded.balance_transaction, stripe.BalanceTransaction)
    assert expanded.balance_transaction.amount == amount


def test_a_customer_has_an_address_and_expands_its_live_subscriptions(
    account: StripeAccount, amount: int
) -> None:
    customer = account.create_paying_customer()
    address: Any = {"city": "Zug", "country": "CH", "line1": "Bahnhofstrasse 1", "postal_code": "6300"}
    account.v1.customers.update(customer.id, {"address": address, "name": "Someone", "phone": "+41"})
    canceled, active = (account.subscribe(customer, amount).id for _ in range(2))
    account.v1.subscriptions.cancel(canceled)
    expanded = account.v1.customers.retrieve(customer.id, {"expand": ["subscriptions"]})
    assert expanded.address is not None
    assert (expanded.address.city, expanded.address.country, expanded.name) == ("Zug", "CH", "Someone")
    assert expanded.subscriptions is not None
    assert [item.id for item in expanded.subscriptions.data] == [active]


def test_resources_are_retrieved_and_listed(account: StripeAccount, amount: int) -> None:
    customer = account.create_customer()
    setup = account.set_up_card(customer, "pm_card_mastercard")
    card = str(setup.payment_method)
    subscription = account.subscribe(customer, amount, default_payment_method=card)
    intent = account.payment_intent_of(subscription)
    (payment,) = account.v1.invoice_payments.list({"invoice": str(account.invoices(subscription)[0].id)}).data
    assert account.v1.invoice_payments.retrieve(payment.id).payment.payment_intent == intent
    assert [item.id for item in account.v1.payment_intents.list({"customer": customer.id}).data] == [intent]
    listed = account.v1.payment_methods.list({"customer": customer.id, "type": "card"}).data
    assert [item.id for item in listed] == [card]
    method = account.v1.payment_methods.retrieve(card)
    assert method.card is not None
    assert method.card.brand == "mastercard"


def pay_first_invoice(account: StripeAccount, amount: int) -> str:
    """Return the payment intent of a paid first invoice."""
    return account.payment_intent_of(account.subscribe(account.create_paying_customer(), amount))


def charge_of(account: StripeAccount, intent: str) -> stripe.Charge:
    """Return the charge of an intent."""
    charge = account.v1.payment_intents.retrieve(intent, {"expand": ["latest_charge"]}).latest_charge
    assert isinstance(charge, stripe.Charge)
    return charge


def test_partial_refunds_add_up_and_never_exceed_the_charge(account: StripeAccount, amount: int) -> None:
    intent = pay_first_invoice(account, amount)
    first = account.v1.refunds.create({"payment_intent": intent, "amount": 100})
    assert (first.status, first.amount, first.payment_intent) == ("succeeded", 100, intent)
    assert (charge_of(account, intent).amount_refunded, charge_of(account, intent).refunded) == (100, False)
    with pytest.raises(stripe.InvalidRequestError):
        account.v1.refunds.create({"payment_intent": intent, "amount": amount})
    rest = account.v1.refunds.create({"payment_intent": intent})
    assert rest.amount == amount - 100
    assert charge_of(account, intent).refunded
    with pytest.raises(stripe.InvalidRequestError) as raised:
        account.v1.refunds.create({"payment_intent": intent})
    assert raised.value.code == "charge_already_refunded"
    listed = account.v1.refunds.list({"payment_intent": intent}).data
    assert [item.id for item in listed] == [rest.id, first.id]


def test_a_refund_leaves_the_invoice_paid(account: StripeAccount, amount: int) -> None:
    customer = account.create_paying_customer()
    subscription = account.subscribe(customer, amount)
    assert isinstance(subscription.latest_invoice, stripe.Invoice)
    assert subscription.latest_invoice.payments is not None
    intent = str(subscription.latest_invoice.payments.data[0].payment.payment_intent)
    account.v1.refunds.create({"payment_intent": intent})
    invoice = account.v1.invoices.retrieve(str(subscription.latest_invoice.id))
    assert (invoice.status, invoice.amount_paid) == ("paid", amount)


def test_a_refund_needs_a_charge(stripe_client: stripe.StripeClient) -> None:
    with pytest.raises(stripe.InvalidRequestError):
        stripe_client.v1.refunds.create({"amount": 100})
    with pytest.raises(stripe.InvalidRequestError) as raised:
        stripe_client.v1.refunds.create({"charge": "ch_neverwas"})
    assert raised.value.code == "resource_missing"
