"""Customers and their cards: created, changed, set up, attached, declined."""

import secrets
from typing import Any

import pytest
import stripe

from accounts import StripeAccount


def test_a_customer_is_retrieved_as_it_was_created(account: StripeAccount) -> None:
    address = f"0x{secrets.token_hex(20)}"
    created = account.create_customer(email="someone@wallet.example", metadata={"address": address})
    retrieved = account.v1.customers.retrieve(created.id)
    assert retrieved.metadata is not None
    assert (retrieved.email, retrieved.metadata["address"], retrieved.livemode) == (
        "someone@wallet.example",
        address,
        False,
    )
    assert created.id.startswith("cus_")


def test_metadata_is_merged_and_an_empty_value_removes_its_key(account: StripeAccount) -> None:
    customer = account.create_customer(metadata={"kept": "1", "gone": "2"})
    updated = account.v1.customers.update(customer.id, {"metadata": {"gone": "", "new": "3"}})
    assert updated.metadata is not None
    assert updated.metadata.to_dict() == {"kept": "1", "new": "3"}


def test_a_deleted_customer_is_a_stub_that_nothing_can_be_created_for(account: StripeAccount) -> None:
    customer = account.create_customer()
    assert account.v1.customers.delete(customer.id).deleted
    assert getattr(account.v1.customers.retrieve(customer.id), "deleted", False)
    with pytest.raises(stripe.InvalidRequestError) as raised:
        account.v1.setup_intents.create({"customer": customer.id})
    assert raised.value.code == "resource_missing"


def test_an_unknown_customer_is_missing(stripe_client: stripe.StripeClient) -> None:
    with pytest.raises(stripe.InvalidRequestError) as raised:
        stripe_client.v1.customers.retrieve("cus_neverwas")
    assert (raised.value.http_status, raised.value.code) == (404, "resource_missing")
    assert raised.value.error is not None
    assert raised.value.error.param == "id"


def test_a_default_card_of_another_customer_is_refused(account: StripeAccount) -> None:
    customer, other_customer = account.create_customer(), account.create_customer()
    card = account.v1.payment_methods.attach("pm_card_visa", {"customer": other_customer.id})
    with pytest.raises(stripe.InvalidRequestError):
        account.v1.customers.update(customer.id, {"invoice_settings": {"default_payment_method": card.id}})


def test_customers_are_found_by_email(account: StripeAccount) -> None:
    email = f"{secrets.token_hex(8)}@wallet.example"
    customer = account.create_customer(email=email)
    account.v1.customers.create({"email": "other@wallet.example"})
    if customer.test_clock is None:  # Stripe does not list customers of test clocks here
        assert [item.id for item in account.v1.customers.list({"email": email}).data] == [customer.id]


def test_a_confirmed_setup_attaches_the_card_to_the_customer(account: StripeAccount) -> None:
    customer = account.create_customer()
    intent = account.set_up_card(customer, "pm_card_visa")
    assert (intent.status, intent.customer, intent.usage) == ("succeeded", customer.id, "off_session")
    cards = account.v1.customers.payment_methods.list(customer.id, {"type": "card"}).data
    assert [card.id for card in cards] == [intent.payment_method]
    assert cards[0].card is not None
    assert (cards[0].card.brand, cards[0].card.last4) == ("visa", "4242")


def test_the_client_secret_begins_with_the_intent_it_belongs_to(account: StripeAccount) -> None:
    customer = account.create_customer()
    intent = account.v1.setup_intents.create({"customer": customer.id})
    assert intent.client_secret is not None
    assert intent.client_secret.startswith(f"{intent.id}_secret_")
    assert intent.status == "requires_payment_method"


def test_a_setup_that_may_redirect_needs_a_return_url(account: StripeAccount) -> None:
    intent = account.v1.setup_intents.create({"automatic_payment_methods": {"enabled": True}})
    with pytest.raises(stripe.InvalidRequestError) as raised:
        account.v1.setup_intents.confirm(intent.id, {"payment_method": "pm_card_visa"})
    assert "return_url" in str(raised.value)
    never: Any = {"enabled": True, "allow_redirects": "never"}
    without_redirects = account.v1.setup_intents.create({"automatic_payment_methods": never})
    assert (
        account.v1.setup_intents.confirm(without_redirects.id, {"payment_method": "pm_card_visa"}).status
        == "succeeded"
    )


@pytest.mark.parametrize(
    ("card", "code", "decline_code"),
    [
        ("pm_card_visa_chargeDeclined", "card_declined", "generic_decline"),
        ("pm_card_visa_chargeDeclinedInsufficientFunds", "card_declined", "insufficient_funds"),
        ("pm_card_visa_chargeDeclinedLostCard", "card_declined", "lost_card"),
        ("pm_card_chargeDeclinedExpiredCard", "expired_card", "expired_card"),
        ("pm_card_chargeDeclinedProcessingError", "processing_error", "processing_error"),
    ],
)
def test_a_declined_card_is_not_set_up_and_the_error_is_recorded(
    account: StripeAccount, card: str, code: str, decline_code: str
) -> None:
    customer = account.create_customer()
    with pytest.raises(stripe.CardError) as raised:
        account.set_up_card(customer, card)
    error = raised.value.error
    assert error is not None
    assert (raised.value.http_status, error.type, error.code) == (402, "card_error", code)
    assert error.decline_code in (decline_code, None)
    assert error.setup_intent is not None
    intent = account.v1.setup_intents.retrieve(error.setup_intent.id)
    assert (intent.status, intent.payment_method) == ("requires_payment_method", None)
    assert intent.last_setup_error is not None
    assert intent.last_setup_error.code == code
    assert not account.v1.customers.payment_methods.list(customer.id).data


def test_a_declined_card_cannot_be_attached_but_one_that_fails_later_can(account: StripeAccount) -> None:
    customer = account.create_customer()
    with pytest.raises(stripe.CardError) as raised:
        account.v1.payment_methods.attach("pm_card_visa_chargeDeclined", {"customer": customer.id})
    assert raised.value.code == "card_declined"
    card = account.v1.payment_methods.attach("pm_card_chargeCustomerFail", {"customer": customer.id})
    assert card.customer == customer.id


def test_a_card_that_requires_authentication_has_a_next_action(account: StripeAccount) -> None:
    intent = account.set_up_card(account.create_customer(), "pm_card_authenticationRequired")
    assert intent.status == "requires_action"
    assert intent.next_action is not None
    assert intent.next_action.type == "redirect_to_url"
    assert intent.next_action.redirect_to_url is not None
    assert intent.next_action.redirect_to_url.return_url == "https://wallet.example/back"


def test_a_finished_setup_is_not_confirmed_again(account: StripeAccount) -> None:
    intent = account.set_up_card(account.create_customer(), "pm_card_visa")
    with pytest.raises(stripe.InvalidRequestError) as raised:
        account.v1.setup_intents.confirm(intent.id, {"payment_method": "pm_card_visa"})
    assert raised.value.code == "setup_intent_unexpected_state"


def test_every_use_of_a_test_card_creates_a_payment_method(account: StripeAccount) -> None:
    customer = account.create_customer()
    first, second = (
        account.v1.payment_methods.attach("pm_card_visa", {"customer": customer.id}) for _ in range(2)
    )
    assert first.id != second.id


def test_a_card_of_one_customer_cannot_be_attached_to_another(account: StripeAccount) -> None:
    card = account.v1.payment_methods.attach("pm_card_visa", {"customer": account.create_customer().id})
    with pytest.raises(stripe.InvalidRequestError):
        account.v1.payment_methods.attach(card.id, {"customer": account.create_customer().id})


def test_a_detached_card_is_no_longer_the_default(account: StripeAccount) -> None:
    customer = account.create_paying_customer()
    card = str(customer.invoice_settings and customer.invoice_settings.default_payment_method)
    assert account.v1.payment_methods.detach(card).customer is None
    updated = account.v1.customers.retrieve(customer.id)
    assert updated.invoice_settings is not None
    assert updated.invoice_settings.default_payment_method is None
