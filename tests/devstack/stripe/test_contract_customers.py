"""Customers: made, changed, found, deleted."""

import secrets

import pytest
import stripe

from tests.devstack.stripe.worlds import World


def test_a_customer_is_found_again_with_what_it_was_given(world: World) -> None:
    address = f"0x{secrets.token_hex(20)}"
    made = world.new_customer(email="someone@wallet.example", metadata={"address": address})
    found = world.v1.customers.retrieve(made.id)
    assert found.metadata is not None
    assert (found.email, found.metadata["address"], found.livemode) == (
        "someone@wallet.example",
        address,
        False,
    )
    assert made.id.startswith("cus_")


def test_metadata_is_merged_and_an_empty_value_takes_its_name_away(world: World) -> None:
    made = world.new_customer(metadata={"kept": "1", "gone": "2"})
    changed = world.v1.customers.update(made.id, {"metadata": {"gone": "", "new": "3"}})
    assert changed.metadata is not None
    assert changed.metadata.to_dict() == {"kept": "1", "new": "3"}


def test_a_deleted_customer_is_a_stub_that_nothing_can_be_made_for(world: World) -> None:
    made = world.new_customer()
    assert world.v1.customers.delete(made.id).deleted
    assert getattr(world.v1.customers.retrieve(made.id), "deleted", False)
    with pytest.raises(stripe.InvalidRequestError) as refused:
        world.v1.setup_intents.create({"customer": made.id})
    assert refused.value.code == "resource_missing"


def test_a_customer_that_never_was_is_missing(stripe_client: stripe.StripeClient) -> None:
    with pytest.raises(stripe.InvalidRequestError) as refused:
        stripe_client.v1.customers.retrieve("cus_neverwas")
    assert (refused.value.http_status, refused.value.code) == (404, "resource_missing")
    assert refused.value.error is not None
    assert refused.value.error.param == "id"


def test_a_default_card_of_somebody_else_is_refused(world: World) -> None:
    mine, theirs = world.new_customer(), world.new_customer()
    card = world.v1.payment_methods.attach("pm_card_visa", {"customer": theirs.id})
    with pytest.raises(stripe.InvalidRequestError):
        world.v1.customers.update(mine.id, {"invoice_settings": {"default_payment_method": card.id}})


def test_customers_are_found_by_email(world: World) -> None:
    email = f"{secrets.token_hex(8)}@wallet.example"
    made = world.new_customer(email=email)
    world.v1.customers.create({"email": "other@wallet.example"})
    if made.test_clock is None:  # Stripe does not list customers of test clocks here
        assert [item.id for item in world.v1.customers.list({"email": email}).data] == [made.id]
