"""Lists and events: pages, order, filters."""

import pytest
import stripe

from tests.devstack.stripe.worlds import World


def test_pages_run_from_the_newest_to_the_oldest_and_back(world: World, amount: int) -> None:
    customer = world.new_payer()
    made = [world.subscribe(customer, amount).id for _ in range(5)][::-1]
    first = world.v1.subscriptions.list({"customer": customer.id, "limit": 2})
    assert ([item.id for item in first.data], first.has_more) == (made[:2], True)
    second = world.v1.subscriptions.list({"customer": customer.id, "limit": 2, "starting_after": made[1]})
    assert ([item.id for item in second.data], second.has_more) == (made[2:4], True)
    last = world.v1.subscriptions.list({"customer": customer.id, "limit": 2, "starting_after": made[3]})
    assert ([item.id for item in last.data], last.has_more) == (made[4:], False)
    back = world.v1.subscriptions.list({"customer": customer.id, "limit": 2, "ending_before": made[3]})
    assert [item.id for item in back.data] == made[1:3]
    assert [item.id for item in first.auto_paging_iter()] == made


def test_a_page_has_at_most_a_hundred_and_its_cursor_must_exist(stripe_client: stripe.StripeClient) -> None:
    with pytest.raises(stripe.InvalidRequestError):
        stripe_client.v1.customers.list({"limit": 101})
    with pytest.raises(stripe.InvalidRequestError) as refused:
        stripe_client.v1.customers.list({"starting_after": "cus_neverwas"})
    assert refused.value.code == "resource_missing"


def test_events_tell_what_happened_and_by_which_request(world: World) -> None:
    product = world.new_product()
    listed = world.v1.events.list({"types": ["product.created", "product.updated"], "limit": 20})
    event = next(item for item in listed.data if item.data.object["id"] == product.id)
    assert (event.type, event.api_version, event.livemode) == ("product.created", stripe.api_version, False)
    assert event.request is not None
    assert str(event.request.id).startswith("req_")
    assert world.v1.events.retrieve(event.id).data.object["name"] == product.name


def test_an_update_event_names_the_former_values(world: World) -> None:
    product = world.new_product()
    world.v1.products.update(product.id, {"description": "Another"})
    listed = world.v1.events.list({"type": "product.updated", "limit": 20})
    event = next(item for item in listed.data if item.data.object["id"] == product.id)
    assert event.data.previous_attributes is not None
    assert event.data.previous_attributes["description"] is None
    assert event.data.object["description"] == "Another"


def test_invoices_are_filtered_by_status_and_subscription(world: World, amount: int) -> None:
    customer = world.new_payer()
    subscription = world.subscribe(customer, amount)
    world.subscribe(customer, amount)
    paid = world.v1.invoices.list(
        {"status": "paid", "customer": customer.id, "subscription": subscription.id}
    )
    assert [item.id for item in paid.data] == [getattr(subscription.latest_invoice, "id", None)]
    assert not world.v1.invoices.list({"status": "open", "customer": customer.id}).data
    created = paid.data[0].created
    assert not world.v1.invoices.list({"customer": customer.id, "created": {"gt": created + 100}}).data
