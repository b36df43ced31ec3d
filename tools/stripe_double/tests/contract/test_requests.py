"""Errors, idempotency keys, lists and events."""

from collections.abc import Callable
from typing import Any, cast

import pytest
import stripe

from accounts import StripeAccount


def refusal(
    raised: pytest.ExceptionInfo[stripe.InvalidRequestError],
) -> tuple[int | None, str | None, str | None]:
    """Return status, code and parameter."""
    assert raised.value.error is not None
    return raised.value.http_status, raised.value.error.code, raised.value.error.param


def test_a_parameter_that_stripe_does_not_have_is_refused_by_name(stripe_client: stripe.StripeClient) -> None:
    with pytest.raises(stripe.InvalidRequestError) as raised:
        stripe_client.v1.customers.create(cast("Any", {"wallet": "0x1"}))
    assert refusal(raised) == (400, "parameter_unknown", "wallet")


def test_a_missing_parameter_is_refused_by_name(stripe_client: stripe.StripeClient) -> None:
    with pytest.raises(stripe.InvalidRequestError) as raised:
        stripe_client.v1.products.create(cast("Any", {"description": "no name"}))
    assert refusal(raised) == (400, "parameter_missing", "name")


def test_text_in_place_of_a_number_is_refused(account: StripeAccount) -> None:
    with pytest.raises(stripe.InvalidRequestError) as raised:
        account.v1.customers.create(cast("Any", {"balance": "much"}))
    assert refusal(raised) == (400, "parameter_invalid_integer", "balance")


def test_an_unknown_currency_is_refused(account: StripeAccount, amount: int) -> None:
    with pytest.raises(stripe.InvalidRequestError) as raised:
        account.subscribe(account.create_paying_customer(), amount, "zzz")
    assert "Invalid currency" in str(raised.value)


def test_a_wrong_key_is_refused(stripe_client: stripe.StripeClient) -> None:
    with pytest.raises(stripe.AuthenticationError) as raised:
        stripe_client.v1.customers.list(options={"api_key": "sk_test_somebodyelse"})
    assert raised.value.http_status == 401


def test_every_response_has_a_request_id_of_its_own(stripe_client: stripe.StripeClient) -> None:
    ids = {stripe_client.v1.customers.list().last_response.request_id for _ in range(3)}  # type: ignore[union-attr]
    assert len(ids) == 3
    assert all(str(identifier).startswith("req_") for identifier in ids)


def test_only_references_can_be_expanded(account: StripeAccount) -> None:
    customer = account.create_customer()
    with pytest.raises(stripe.InvalidRequestError) as raised:
        account.v1.customers.retrieve(customer.id, {"expand": ["nonsense"]})
    assert "cannot be expanded" in str(raised.value)


Key = Callable[[], str]


def test_the_same_key_gives_the_first_response_again(stripe_client: stripe.StripeClient, key: Key) -> None:
    idempotency_key = key()
    first, second = (
        stripe_client.v1.customers.create({"name": "One"}, {"idempotency_key": idempotency_key})
        for _ in range(2)
    )
    assert first.id == second.id
    assert second.last_response is not None
    assert second.last_response.headers["Idempotent-Replayed"] == "true"
    assert stripe_client.v1.customers.create({"name": "One"}, {"idempotency_key": key()}).id != first.id


def test_the_same_key_with_other_parameters_is_refused(stripe_client: stripe.StripeClient, key: Key) -> None:
    idempotency_key = key()
    stripe_client.v1.customers.create({"name": "One"}, {"idempotency_key": idempotency_key})
    with pytest.raises(stripe.IdempotencyError) as raised:
        stripe_client.v1.customers.create({"name": "Two"}, {"idempotency_key": idempotency_key})
    assert raised.value.http_status == 400
    with pytest.raises(stripe.IdempotencyError):
        stripe_client.v1.products.create({"name": "One"}, {"idempotency_key": idempotency_key})


def test_a_card_error_is_replayed_too(account: StripeAccount, amount: int, key: Key) -> None:
    customer, idempotency_key = account.create_paying_customer("pm_card_chargeCustomerFail"), key()
    invoice = account.subscribe(customer, amount).latest_invoice
    assert isinstance(invoice, stripe.Invoice)
    ids = set()
    for _ in range(2):
        with pytest.raises(stripe.CardError) as raised:
            account.v1.invoices.pay(str(invoice.id), {}, {"idempotency_key": idempotency_key})
        assert raised.value.error is not None
        ids.add(raised.value.error.charge)
    assert len(ids) == 1


def test_a_request_with_invalid_parameters_does_not_use_its_key(
    stripe_client: stripe.StripeClient, key: Key
) -> None:
    idempotency_key = key()
    with pytest.raises(stripe.InvalidRequestError):
        stripe_client.v1.products.create(
            cast("Any", {"description": "x"}), {"idempotency_key": idempotency_key}
        )
    assert (
        stripe_client.v1.products.create({"name": "Now"}, {"idempotency_key": idempotency_key}).name == "Now"
    )


def test_pages_run_from_the_newest_to_the_oldest_and_back(account: StripeAccount, amount: int) -> None:
    customer = account.create_paying_customer()
    ids = [account.subscribe(customer, amount).id for _ in range(5)][::-1]
    first = account.v1.subscriptions.list({"customer": customer.id, "limit": 2})
    assert ([item.id for item in first.data], first.has_more) == (ids[:2], True)
    second = account.v1.subscriptions.list({"customer": customer.id, "limit": 2, "starting_after": ids[1]})
    assert ([item.id for item in second.data], second.has_more) == (ids[2:4], True)
    last = account.v1.subscriptions.list({"customer": customer.id, "limit": 2, "starting_after": ids[3]})
    assert ([item.id for item in last.data], last.has_more) == (ids[4:], False)
    back = account.v1.subscriptions.list({"customer": customer.id, "limit": 2, "ending_before": ids[3]})
    assert [item.id for item in back.data] == ids[1:3]
    assert [item.id for item in first.auto_paging_iter()] == ids


def test_a_page_has_at_most_a_hundred_and_its_cursor_must_exist(stripe_client: stripe.StripeClient) -> None:
    with pytest.raises(stripe.InvalidRequestError):
        stripe_client.v1.customers.list({"limit": 101})
    with pytest.raises(stripe.InvalidRequestError) as raised:
        stripe_client.v1.customers.list({"starting_after": "cus_neverwas"})
    assert raised.value.code == "resource_missing"


def test_an_event_names_its_type_and_request(account: StripeAccount) -> None:
    product = account.create_product()
    listed = account.v1.events.list({"types": ["product.created", "product.updated"], "limit": 20})
    event = next(item for item in listed.data if item.data.object["id"] == product.id)
    assert (event.type, event.api_version, event.livemode) == ("product.created", stripe.api_version, False)
    assert event.request is not None
    assert str(event.request.id).startswith("req_")
    assert account.v1.events.retrieve(event.id).data.object["name"] == product.name


def test_an_update_event_names_the_former_values(account: StripeAccount) -> None:
    customer = account.create_customer()
    account.v1.customers.update(customer.id, {"description": "Another"})
    listed = account.v1.events.list({"type": "customer.updated", "limit": 20})
    event = next(item for item in listed.data if item.data.object["id"] == customer.id)
    assert event.data.previous_attributes is not None
    assert event.data.previous_attributes["description"] is None
    assert event.data.object["description"] == "Another"


def test_invoices_are_filtered_by_status_and_subscription(account: StripeAccount, amount: int) -> None:
    customer = account.create_paying_customer()
    subscription = account.subscribe(customer, amount)
    account.subscribe(customer, amount)
    paid = account.v1.invoices.list(
        {"status": "paid", "customer": customer.id, "subscription": subscription.id}
    )
    assert [item.id for item in paid.data] == [getattr(subscription.latest_invoice, "id", None)]
    assert not account.v1.invoices.list({"status": "open", "customer": customer.id}).data
    created = paid.data[0].created
    assert not account.v1.invoices.list({"customer": customer.id, "created": {"gt": created + 100}}).data
