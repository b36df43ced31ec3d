"""Faults of API responses."""

import secrets
from concurrent.futures import ThreadPoolExecutor

import pytest
import stripe

from accounts import DAY, DoubleAccount
from double_process import DoubleProcess
from stripe_double.client import ControlClient


@pytest.fixture
def retrying_client(double: DoubleProcess) -> stripe.StripeClient:
    """Return a client that tries three times."""
    return stripe.StripeClient(double.secret_key, base_addresses={"api": double.url}, max_network_retries=2)


def creation_keys(controls: ControlClient) -> list[str | None]:
    """Return the keys of the requests that created customers."""
    return [item.idempotency_key for item in controls.requests("POST", "/v1/customers")]


@pytest.mark.parametrize(
    ("status", "kind"),
    [(409, stripe.APIError), (429, stripe.RateLimitError), (500, stripe.APIError)],
)
def test_a_failing_request_does_nothing(
    status: int, kind: type[stripe.StripeError], account: DoubleAccount, controls: ControlClient
) -> None:
    controls.fail(status)
    with pytest.raises(kind) as raised:
        account.v1.customers.create({"name": "Nobody"})
    assert raised.value.http_status == status
    assert not account.v1.customers.list().data
    assert account.v1.customers.create({"name": "Somebody"}).name == "Somebody"


def test_a_fault_affects_only_matching_requests(account: DoubleAccount, controls: ControlClient) -> None:
    controls.fail(500, method="POST", path="/v1/products")
    account.v1.customers.create()
    account.v1.customers.list()
    with pytest.raises(stripe.APIError):
        account.create_product()


def test_a_retry_after_a_lost_response_creates_one_customer(
    retrying_client: stripe.StripeClient, account: DoubleAccount, controls: ControlClient
) -> None:
    controls.timeout_after_commit(method="POST")
    customer = retrying_client.v1.customers.create({"name": "Once"})
    assert [item.id for item in account.v1.customers.list().data] == [customer.id]
    assert len(set(creation_keys(controls))) == 1
    assert [item.status for item in controls.requests("POST")] == [0, 200]
    assert [item.replayed for item in controls.requests("POST")] == [False, True]


def test_an_error_after_commit_hides_the_response_that_the_key_replays(
    account: DoubleAccount, controls: ControlClient
) -> None:
    key = secrets.token_hex(8)
    controls.error_after_commit(method="POST")
    with pytest.raises(stripe.APIError):
        account.v1.customers.create({"name": "Hidden"}, {"idempotency_key": key})
    (customer,) = account.v1.customers.list().data
    assert account.v1.customers.create({"name": "Hidden"}, {"idempotency_key": key}).id == customer.id


def test_a_saved_error_is_replayed_for_a_day_although_the_work_was_done(
    account: DoubleAccount, controls: ControlClient
) -> None:
    key = secrets.token_hex(8)
    controls.error_after_commit(method="POST", saved=True)
    for _ in range(2):
        with pytest.raises(stripe.APIError):
            account.v1.customers.create({"name": "Hidden"}, {"idempotency_key": key})
    assert len(account.v1.customers.list().data) == 1
    controls.advance(DAY + 60)
    account.v1.customers.create({"name": "Hidden"}, {"idempotency_key": key})
    assert len(account.v1.customers.list().data) == 2


def test_two_concurrent_requests_with_one_key_are_a_conflict(
    account: DoubleAccount, controls: ControlClient
) -> None:
    keys: list[str] = []

    def create(key: str) -> int:
        try:
            account.v1.customers.create({"name": "Once"}, {"idempotency_key": key})
        except stripe.StripeError as raised:
            return raised.http_status or 0
        return 200

    def conflict() -> bool:
        controls.slow(3, method="POST")
        keys.append(secrets.token_hex(8))
        with ThreadPoolExecutor(2) as threads:
            return sorted(threads.map(create, keys[-1:] * 2)) == [200, 409]

    # On a busy machine the second request may arrive after the response to the first.
    assert any(conflict() for _ in range(20))
    assert len(account.v1.customers.list().data) == len(keys)


def test_concurrent_requests_with_different_keys_are_all_served(
    account: DoubleAccount, controls: ControlClient
) -> None:
    with ThreadPoolExecutor(16) as threads:
        customers = set(threads.map(lambda _: account.v1.customers.create().id, range(48)))
    assert len(customers) == 48
    assert len(set(creation_keys(controls))) == 48


def test_requests_are_logged_with_their_parameters(
    account: DoubleAccount, controls: ControlClient, amount: int
) -> None:
    account.subscribe(account.create_paying_customer(), amount)
    (entry,) = controls.requests("POST", "/v1/subscriptions")
    assert entry.status == 200
    assert entry.params["items"]["0"]["price_data"]["unit_amount"] == str(amount)
    controls.clear_requests()
    assert controls.requests() == []


def test_cleared_faults_are_not_injected(account: DoubleAccount, controls: ControlClient) -> None:
    controls.fail(500, count=None)
    with pytest.raises(stripe.APIError):
        account.v1.customers.create()
    controls.clear_faults()
    assert account.v1.customers.create().id
