"""Cards: set up as a browser does it, attached, refused, confirmed by their holder."""

from typing import Any

import pytest
import stripe

from tests.devstack.stripe.worlds import World


def test_a_confirmed_setup_attaches_the_card_to_the_customer(world: World) -> None:
    customer = world.new_customer()
    intent = world.set_up(customer, "pm_card_visa")
    assert (intent.status, intent.customer, intent.usage) == ("succeeded", customer.id, "off_session")
    cards = world.v1.customers.payment_methods.list(customer.id, {"type": "card"}).data
    assert [card.id for card in cards] == [intent.payment_method]
    assert cards[0].card is not None
    assert (cards[0].card.brand, cards[0].card.last4) == ("visa", "4242")


def test_the_client_secret_begins_with_the_intent_it_belongs_to(world: World) -> None:
    customer = world.new_customer()
    intent = world.v1.setup_intents.create({"customer": customer.id})
    assert intent.client_secret is not None
    assert intent.client_secret.startswith(f"{intent.id}_secret_")
    assert intent.status == "requires_payment_method"


def test_a_setup_that_may_redirect_needs_an_address_to_return_to(world: World) -> None:
    intent = world.v1.setup_intents.create({"automatic_payment_methods": {"enabled": True}})
    with pytest.raises(stripe.InvalidRequestError) as refused:
        world.v1.setup_intents.confirm(intent.id, {"payment_method": "pm_card_visa"})
    assert "return_url" in str(refused.value)
    never: Any = {"enabled": True, "allow_redirects": "never"}
    quiet = world.v1.setup_intents.create({"automatic_payment_methods": never})
    assert world.v1.setup_intents.confirm(quiet.id, {"payment_method": "pm_card_visa"}).status == "succeeded"


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
def test_a_refused_card_is_not_set_up_and_the_refusal_is_kept(
    world: World, card: str, code: str, decline_code: str
) -> None:
    customer = world.new_customer()
    with pytest.raises(stripe.CardError) as refused:
        world.set_up(customer, card)
    error = refused.value.error
    assert error is not None
    assert (refused.value.http_status, error.type, error.code) == (402, "card_error", code)
    assert error.decline_code in (decline_code, None)
    assert error.setup_intent is not None
    kept = world.v1.setup_intents.retrieve(error.setup_intent.id)
    assert (kept.status, kept.payment_method) == ("requires_payment_method", None)
    assert kept.last_setup_error is not None
    assert kept.last_setup_error.code == code
    assert not world.v1.customers.payment_methods.list(customer.id).data


def test_a_refused_card_cannot_be_attached_but_one_that_fails_later_can(world: World) -> None:
    customer = world.new_customer()
    with pytest.raises(stripe.CardError) as refused:
        world.v1.payment_methods.attach("pm_card_visa_chargeDeclined", {"customer": customer.id})
    assert refused.value.code == "card_declined"
    card = world.v1.payment_methods.attach("pm_card_chargeCustomerFail", {"customer": customer.id})
    assert card.customer == customer.id


def test_a_card_whose_bank_asks_waits_for_its_holder(world: World) -> None:
    intent = world.set_up(world.new_customer(), "pm_card_authenticationRequired")
    assert intent.status == "requires_action"
    assert intent.next_action is not None
    assert intent.next_action.type == "redirect_to_url"
    assert intent.next_action.redirect_to_url is not None
    assert intent.next_action.redirect_to_url.return_url == "https://wallet.example/back"


def test_a_finished_setup_is_not_confirmed_again(world: World) -> None:
    intent = world.set_up(world.new_customer(), "pm_card_visa")
    with pytest.raises(stripe.InvalidRequestError) as refused:
        world.v1.setup_intents.confirm(intent.id, {"payment_method": "pm_card_visa"})
    assert refused.value.code == "setup_intent_unexpected_state"


def test_every_use_of_a_test_card_makes_a_card_of_its_own(world: World) -> None:
    customer = world.new_customer()
    first, second = (
        world.v1.payment_methods.attach("pm_card_visa", {"customer": customer.id}) for _ in range(2)
    )
    assert first.id != second.id


def test_a_card_of_one_customer_cannot_be_attached_to_another(world: World) -> None:
    card = world.v1.payment_methods.attach("pm_card_visa", {"customer": world.new_customer().id})
    with pytest.raises(stripe.InvalidRequestError):
        world.v1.payment_methods.attach(card.id, {"customer": world.new_customer().id})


def test_a_detached_card_is_no_longer_the_default(world: World) -> None:
    customer = world.new_payer()
    card = str(customer.invoice_settings and customer.invoice_settings.default_payment_method)
    assert world.v1.payment_methods.detach(card).customer is None
    found = world.v1.customers.retrieve(customer.id)
    assert found.invoice_settings is not None
    assert found.invoice_settings.default_payment_method is None
