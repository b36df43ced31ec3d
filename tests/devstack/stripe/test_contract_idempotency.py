"""Idempotency keys: the first answer is the answer."""

from collections.abc import Callable
from typing import Any, cast

import pytest
import stripe

from tests.devstack.stripe.worlds import World

Key = Callable[[], str]


def test_the_same_key_gives_the_first_answer_again(stripe_client: stripe.StripeClient, key: Key) -> None:
    once = key()
    first, second = (
        stripe_client.v1.customers.create({"name": "One"}, {"idempotency_key": once}) for _ in range(2)
    )
    assert first.id == second.id
    assert second.last_response is not None
    assert second.last_response.headers["Idempotent-Replayed"] == "true"
    assert stripe_client.v1.customers.create({"name": "One"}, {"idempotency_key": key()}).id != first.id


def test_the_same_key_with_other_parameters_is_refused(stripe_client: stripe.StripeClient, key: Key) -> None:
    once = key()
    stripe_client.v1.customers.create({"name": "One"}, {"idempotency_key": once})
    with pytest.raises(stripe.IdempotencyError) as refused:
        stripe_client.v1.customers.create({"name": "Two"}, {"idempotency_key": once})
    assert refused.value.http_status == 400
    with pytest.raises(stripe.IdempotencyError):
        stripe_client.v1.products.create({"name": "One"}, {"idempotency_key": once})


def test_a_refusal_of_the_card_is_an_answer_too(world: World, amount: int, key: Key) -> None:
    customer, once = world.new_payer("pm_card_chargeCustomerFail"), key()
    invoice = world.subscribe(customer, amount).latest_invoice
    assert isinstance(invoice, stripe.Invoice)
    ids = set()
    for _ in range(2):
        with pytest.raises(stripe.CardError) as refused:
            world.v1.invoices.pay(str(invoice.id), {}, {"idempotency_key": once})
        assert refused.value.error is not None
        ids.add(refused.value.error.charge)
    assert len(ids) == 1


def test_a_request_that_was_malformed_does_not_use_its_key_up(
    stripe_client: stripe.StripeClient, key: Key
) -> None:
    once = key()
    with pytest.raises(stripe.InvalidRequestError):
        stripe_client.v1.products.create(cast("Any", {"description": "x"}), {"idempotency_key": once})
    assert stripe_client.v1.products.create({"name": "Now"}, {"idempotency_key": once}).name == "Now"
