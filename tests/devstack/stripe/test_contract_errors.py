"""Refusals of what does not have the shape of an operation."""

from typing import Any, cast

import pytest
import stripe

from tests.devstack.stripe.worlds import World


def refusal(
    refused: pytest.ExceptionInfo[stripe.InvalidRequestError],
) -> tuple[int | None, str | None, str | None]:
    """Return status, code and parameter."""
    assert refused.value.error is not None
    return refused.value.http_status, refused.value.error.code, refused.value.error.param


def test_a_parameter_that_stripe_does_not_have_is_refused_by_name(stripe_client: stripe.StripeClient) -> None:
    with pytest.raises(stripe.InvalidRequestError) as refused:
        stripe_client.v1.customers.create(cast("Any", {"wallet": "0x1"}))
    assert refusal(refused) == (400, "parameter_unknown", "wallet")


def test_a_missing_parameter_is_refused_by_name(stripe_client: stripe.StripeClient) -> None:
    with pytest.raises(stripe.InvalidRequestError) as refused:
        stripe_client.v1.products.create(cast("Any", {"description": "no name"}))
    assert refusal(refused) == (400, "parameter_missing", "name")


def test_text_where_a_number_is_meant_is_refused(world: World) -> None:
    with pytest.raises(stripe.InvalidRequestError) as refused:
        world.v1.customers.create(cast("Any", {"balance": "much"}))
    assert refusal(refused) == (400, "parameter_invalid_integer", "balance")


def test_a_currency_nobody_has_is_refused(world: World, amount: int) -> None:
    with pytest.raises(stripe.InvalidRequestError) as refused:
        world.subscribe(world.new_payer(), amount, "zzz")
    assert "Invalid currency" in str(refused.value)


def test_a_wrong_key_opens_nothing(stripe_client: stripe.StripeClient) -> None:
    with pytest.raises(stripe.AuthenticationError) as refused:
        stripe_client.v1.customers.list(options={"api_key": "sk_test_somebodyelse"})
    assert refused.value.http_status == 401


def test_every_answer_has_a_request_id_of_its_own(stripe_client: stripe.StripeClient) -> None:
    ids = {stripe_client.v1.customers.list().last_response.request_id for _ in range(3)}  # type: ignore[union-attr]
    assert len(ids) == 3
    assert all(str(identifier).startswith("req_") for identifier in ids)


def test_only_what_refers_to_something_can_be_expanded(world: World) -> None:
    customer = world.new_customer()
    with pytest.raises(stripe.InvalidRequestError) as refused:
        world.v1.customers.retrieve(customer.id, {"expand": ["nonsense"]})
    assert "cannot be expanded" in str(refused.value)
