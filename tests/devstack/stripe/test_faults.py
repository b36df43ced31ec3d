"""How the double misbehaves towards the API's clients, and what stays true then."""

import secrets
from concurrent.futures import ThreadPoolExecutor

import pytest
import stripe

from devstack.services.stripe_double import StripeDouble
from devstack.stripe.client import ControlClient
from tests.devstack.stripe.worlds import DAY, DoubleWorld


@pytest.fixture
def patient(double: StripeDouble) -> stripe.StripeClient:
    """Return a client that tries three times."""
    return stripe.StripeClient(double.secret_key, base_addresses={"api": double.url}, max_network_retries=2)


def creations(controls: ControlClient) -> list[str | None]:
    """Return the keys of the requests that created customers."""
    return [item.idempotency_key for item in controls.requests("POST", "/v1/customers")]


@pytest.mark.parametrize(
    ("status", "kind"),
    [(409, stripe.APIError), (429, stripe.RateLimitError), (500, stripe.APIError)],
)
def test_a_failing_request_does_nothing(
    status: int, kind: type[stripe.StripeError], here: DoubleWorld, controls: ControlClient
) -> None:
    controls.fail(status)
    with pytest.raises(kind) as failed:
        here.v1.customers.create({"name": "Nobody"})
    assert failed.value.http_status == status
    assert not here.v1.customers.list().data
    assert here.v1.customers.create({"name": "Somebody"}).name == "Somebody"


def test_a_fault_meets_only_the_requests_it_is_meant_for(here: DoubleWorld, controls: ControlClient) -> None:
    controls.fail(500, method="POST", path="/v1/products")
    here.v1.customers.create()
    here.v1.products.list()
    with pytest.raises(stripe.APIError):
        here.new_product()


def test_a_client_that_tries_again_gets_one_customer_after_a_lost_answer(
    patient: stripe.StripeClient, here: DoubleWorld, controls: ControlClient
) -> None:
    controls.timeout_after_commit(method="POST")
    customer = patient.v1.customers.create({"name": "Once"})
    assert [item.id for item in here.v1.customers.list().data] == [customer.id]
    assert len(set(creations(controls))) == 1
    assert [item.status for item in controls.requests("POST")] == [0, 200]
    assert [item.replayed for item in controls.requests("POST")] == [False, True]


def test_an_error_after_the_work_hides_an_answer_that_the_key_still_gives(
    here: DoubleWorld, controls: ControlClient
) -> None:
    key = secrets.token_hex(8)
    controls.error_after_commit(method="POST")
    with pytest.raises(stripe.APIError):
        here.v1.customers.create({"name": "Hidden"}, {"idempotency_key": key})
    (made,) = here.v1.customers.list().data
    assert here.v1.customers.create({"name": "Hidden"}, {"idempotency_key": key}).id == made.id


def test_a_saved_error_is_the_answer_for_a_day_although_the_work_was_done(
    here: DoubleWorld, controls: ControlClient
) -> None:
    key = secrets.token_hex(8)
    controls.error_after_commit(method="POST", saved=True)
    for _ in range(2):
        with pytest.raises(stripe.APIError):
            here.v1.customers.create({"name": "Hidden"}, {"idempotency_key": key})
    assert len(here.v1.customers.list().data) == 1
    controls.advance(DAY + 60)
    here.v1.customers.create({"name": "Hidden"}, {"idempotency_key": key})
    assert len(here.v1.customers.list().data) == 2


def test_two_requests_with_one_key_at_once_are_a_conflict(here: DoubleWorld, controls: ControlClient) -> None:
    key = secrets.token_hex(8)
    controls.slow(4, method="POST")

    def create(_: int) -> int:
        try:
            here.v1.customers.create({"name": "Once"}, {"idempotency_key": key})
        except stripe.StripeError as refused:
            return refused.http_status or 0
        return 200

    with ThreadPoolExecutor(2) as threads:
        assert sorted(threads.map(create, range(2))) == [200, 409]
    assert len(here.v1.customers.list().data) == 1


def test_many_at_once_with_keys_of_their_own_are_all_served(
    here: DoubleWorld, controls: ControlClient
) -> None:
    with ThreadPoolExecutor(16) as threads:
        made = set(threads.map(lambda _: here.v1.customers.create().id, range(48)))
    assert len(made) == 48
    assert len(set(creations(controls))) == 48


def test_the_log_tells_what_was_asked(here: DoubleWorld, controls: ControlClient, amount: int) -> None:
    here.subscribe(here.new_payer(), amount)
    (entry,) = controls.requests("POST", "/v1/subscriptions")
    assert entry.status == 200
    assert entry.params["items"]["0"]["price_data"]["unit_amount"] == str(amount)
    controls.clear_requests()
    assert controls.requests() == []


def test_behaving_again_takes_back_what_was_still_to_come(here: DoubleWorld, controls: ControlClient) -> None:
    controls.fail(500, count=None)
    with pytest.raises(stripe.APIError):
        here.v1.customers.create()
    controls.clear_faults()
    assert here.v1.customers.create().id
