"""Sessions of hosted pages, hosted invoices, tax, test clocks, and archived or deleted objects."""

import secrets
import time
from typing import Any

import pytest
import stripe

from accounts import DAY, StripeAccount, latest_invoice


def test_a_finalized_invoice_has_a_page_and_a_pdf(account: StripeAccount, amount: int) -> None:
    (invoice,) = account.invoices(account.subscribe(account.create_paying_customer(), amount))
    assert str(invoice.hosted_invoice_url).startswith("http")
    assert str(invoice.invoice_pdf).startswith("http")
    assert invoice.number


def test_a_portal_session_has_an_address_of_its_own(account: StripeAccount) -> None:
    customer, back = account.create_customer(), "https://wallet.example/back"
    if not account.v1.billing_portal.configurations.list({"is_default": True, "active": True}).data:
        pytest.fail("Save the settings of the customer portal once at Stripe's dashboard.")
    sessions = [
        account.v1.billing_portal.sessions.create({"customer": customer.id, "return_url": back})
        for _ in range(2)
    ]
    assert len({session.url for session in sessions}) == 2
    assert {(session.customer, session.return_url) for session in sessions} == {(customer.id, back)}


def test_checkout_in_setup_mode_has_a_page_and_a_setup_intent(account: StripeAccount) -> None:
    customer = account.create_customer()
    wanted: Any = {
        "mode": "setup",
        "customer": customer.id,
        "payment_method_types": ["card"],
        "success_url": "https://wallet.example/done",
        "cancel_url": "https://wallet.example/back",
    }
    session = account.v1.checkout.sessions.create(wanted)
    assert (session.status, session.mode, session.customer) == ("open", "setup", customer.id)
    assert str(session.url).startswith("http")
    intent = account.v1.setup_intents.retrieve(str(session.setup_intent))
    assert (intent.customer, intent.status) == (customer.id, "requires_payment_method")


@pytest.mark.parametrize("behaviour", ["inclusive", "exclusive"])
def test_automatic_tax_needs_a_place_and_shows_on_lines_and_invoice(
    account: StripeAccount, amount: int, behaviour: Any
) -> None:
    customer = account.create_paying_customer()
    price = {
        "currency": "usd",
        "product": account.create_product().id,
        "unit_amount": amount,
        "tax_behavior": behaviour,
        "recurring": {"interval": "month"},
    }
    wanted: Any = {"items": [{"price_data": price}], "automatic_tax": {"enabled": True}}
    with pytest.raises(stripe.InvalidRequestError) as raised:
        account.subscribe(customer, amount, **wanted)
    assert raised.value.code == "customer_tax_location_invalid"
    address: Any = {"country": "DE", "postal_code": "10115"}
    account.v1.customers.update(customer.id, {"address": address})
    invoice = latest_invoice(account.subscribe(customer, amount, **wanted))
    tax = sum(item.amount for item in invoice.total_taxes or [])
    assert invoice.automatic_tax.enabled
    assert invoice.total - tax == invoice.total_excluding_tax
    assert invoice.total == (amount if behaviour == "inclusive" else amount + tax)
    assert invoice.amount_paid == invoice.total
    assert tax == sum(item.amount for line in invoice.lines.data for item in line.taxes or [])


def test_an_archived_product_is_not_sold_and_existing_subscriptions_continue(
    account: StripeAccount, amount: int
) -> None:
    customer = account.create_paying_customer()
    subscription = account.subscribe(customer, amount)
    product = str(subscription["items"].data[0].price.product)
    assert not account.v1.products.update(product, {"active": False}).active
    price = {"currency": "usd", "product": product, "unit_amount": amount, "recurring": {"interval": "month"}}
    with pytest.raises(stripe.InvalidRequestError):
        account.subscribe(customer, amount, items=[{"price_data": price}])
    assert account.v1.subscriptions.retrieve(subscription.id).status == "active"
    account.v1.products.update(product, {"active": True})
    assert account.subscribe(customer, amount, items=[{"price_data": price}]).status == "active"


def test_a_deleted_product_is_missing_and_may_be_created_again(account: StripeAccount) -> None:
    chosen: Any = {"id": f"credits_{secrets.token_hex(6)}", "name": "Credits"}
    account.v1.products.create(chosen)
    assert account.v1.products.delete(chosen["id"]).deleted
    with pytest.raises(stripe.InvalidRequestError) as raised:
        account.v1.products.retrieve(chosen["id"])
    assert raised.value.code == "resource_missing"
    assert account.v1.products.create(chosen).active


def test_a_deleted_customer_has_no_cards_and_no_active_subscription(
    account: StripeAccount, amount: int
) -> None:
    customer = account.create_paying_customer()
    subscription = account.subscribe(customer, amount)
    account.v1.customers.delete(customer.id)
    assert account.v1.subscriptions.retrieve(subscription.id).status == "canceled"
    with pytest.raises(stripe.InvalidRequestError):
        account.v1.customers.payment_methods.list(customer.id)
    with pytest.raises(stripe.InvalidRequestError):
        account.subscribe(customer, amount)


def test_a_test_clock_advances_by_itself_and_takes_its_customers_along(
    account: StripeAccount, amount: int
) -> None:
    clocks = account.v1.test_helpers.test_clocks
    clock = clocks.create({"frozen_time": int(time.time()), "name": "contract"})
    customer = account.v1.customers.create({"test_clock": clock.id})
    assert customer.test_clock == clock.id
    card = account.v1.payment_methods.attach("pm_card_visa", {"customer": customer.id})
    account.v1.customers.update(customer.id, {"invoice_settings": {"default_payment_method": card.id}})
    subscription = account.subscribe(customer, amount)
    target = clocks.retrieve(clock.id).frozen_time + 33 * DAY
    assert clocks.advance(clock.id, {"frozen_time": target}).status == "advancing"
    deadline = time.monotonic() + 120
    while clocks.retrieve(clock.id).status == "advancing" and time.monotonic() < deadline:
        time.sleep(0.05)
    assert clocks.retrieve(clock.id).status == "ready"
    assert [invoice.status for invoice in account.invoices(subscription)] == ["paid", "paid"]
    assert clocks.delete(clock.id).deleted
