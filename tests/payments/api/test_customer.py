"""POST createCustomer and GET getSetupIntent on the wire."""

import pytest
from django.test import Client
from pytest_django import Settings

from payments.models import BillingOperation, Customer
from tests.factories import UserFactory
from tests.fakes.billing import FakeBilling
from tests.payments.api.conftest import NothingHappens
from tests.payments.api.spec import CUSTOMER, SETUP_INTENT, as_specified
from tests.payments.api.test_self_service import BACK, CARD_PAGE
from tests.payments.rows import all_rows
from tests.payments.stripe_accounts import DoubleAccount
from tests.relay.api.conftest import Wallet, network_address, wallet_of
from tests.relay.api.test_execute import assert_problem
from users.models import User

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("slash", ["", "/"])
def test_the_response_has_the_customer_and_its_profile_address(
    double: DoubleAccount, wallet: Wallet, user: User, slash: str
) -> None:
    body = as_specified(wallet.send("post", CUSTOMER + slash), CUSTOMER)
    (made,) = double.v1.customers.list().data
    assert body == {"walletAddress": user.profile_address, "paymentsCustomerId": made.id}
    assert made.metadata["address"] == user.profile_address


def test_a_repeat_returns_the_same_customer_and_creates_none(
    double: DoubleAccount, wallet: Wallet, nothing_happens: NothingHappens
) -> None:
    first = as_specified(wallet.send("post", CUSTOMER), CUSTOMER)
    with nothing_happens():
        assert as_specified(wallet.send("post", CUSTOMER), CUSTOMER) == first


@pytest.mark.parametrize(
    ("content_type", "body", "status", "code"),
    [
        ("text/plain", b"please", 415, "unsupported-media-type"),
        ("application/x-www-form-urlencoded", b"a=1", 415, "unsupported-media-type"),
        ("application/json", b"{", 400, "invalid-request"),
        ("application/json", b"\xff", 400, "invalid-request"),
        ("application/json", b" " * 300_000, 413, "request-too-large"),
        ("text/plain", b"a" * 300_000, 415, "unsupported-media-type"),
    ],
)
def test_a_body_that_is_not_json_creates_nothing(
    fake: FakeBilling, wallet: Wallet, content_type: str, body: bytes, status: int, code: str
) -> None:
    before = all_rows()
    response = wallet.send("post", CUSTOMER, data=body, content_type=content_type)
    assert_problem(response, status, code)
    assert all_rows() == before
    assert not fake.calls


@pytest.mark.parametrize(
    ("content_type", "body"),
    [("application/json", b"{}"), ("application/json; charset=utf-8", b"[1]"), ("text/plain", b"")],
)
def test_json_or_nothing_may_be_posted(
    double: DoubleAccount, wallet: Wallet, content_type: str, body: bytes
) -> None:
    as_specified(wallet.send("post", CUSTOMER, data=body, content_type=content_type), CUSTOMER)


def test_each_user_has_a_customer_of_their_own(double: DoubleAccount, wallet: Wallet) -> None:
    other = wallet_of(UserFactory.create())
    first, second = (payer_wallet.send("post", CUSTOMER).body for payer_wallet in (wallet, other))
    assert first["paymentsCustomerId"] != second["paymentsCustomerId"]
    assert first["walletAddress"] != second["walletAddress"]


@pytest.mark.parametrize("slash", ["", "/"])
def test_a_setup_intents_secret_is_new_and_not_stored(
    double: DoubleAccount, wallet: Wallet, slash: str
) -> None:
    responses = [wallet.send("get", SETUP_INTENT + slash) for _ in range(2)]
    secrets = [as_specified(response, SETUP_INTENT)["clientSecret"] for response in responses]
    assert len(set(secrets)) == 2
    assert {response.headers["Cache-Control"] for response in responses} == {"no-store"}
    for secret in secrets:
        intent = double.v1.setup_intents.retrieve(secret.split("_secret_")[0])
        assert (intent.client_secret, intent.customer) == (secret, Customer.objects.get().stripe_customer_id)
    assert not any(secret in str(all_rows()) for secret in secrets)


@pytest.mark.parametrize(("method", "path"), [("post", CUSTOMER), ("get", SETUP_INTENT)])
def test_an_unreachable_stripe_is_a_503_and_a_repeat_finishes_the_operation(
    fake: FakeBilling, wallet: Wallet, method: str, path: str
) -> None:
    with fake.away():
        response = wallet.send(method, path)
    assert_problem(response, 503, "billing-unavailable")
    assert response.headers["Retry-After"] == "5"
    assert not Customer.objects.exists()
    as_specified(wallet.send(method, path), path)
    assert BillingOperation.objects.get().status == "done"


def test_a_head_request_creates_no_setup_intent(
    double: DoubleAccount, wallet: Wallet, nothing_happens: NothingHappens
) -> None:
    headers = {"Authorization": f"Bearer {wallet.token}"}
    with nothing_happens():
        response = Client(REMOTE_ADDR=wallet.address).head(SETUP_INTENT, headers=headers)
    assert response.status_code == 405


def test_setup_intents_and_card_pages_are_limited_per_user_and_day(
    double: DoubleAccount, wallet: Wallet, settings: Settings, nothing_happens: NothingHappens
) -> None:
    settings.CARD_CAPTURE_RATE = "2/day"
    as_specified(wallet.send("get", SETUP_INTENT), SETUP_INTENT)
    assert wallet.post(CARD_PAGE, BACK).status == 200
    with nothing_happens():
        # From another network, too.
        for caller in (wallet, Wallet(wallet.token, network_address())):
            response = caller.send("get", SETUP_INTENT)
            assert_problem(response, 429, "too-many-requests")
            assert 3600 < int(response.headers["Retry-After"]) <= 86_401
            assert_problem(caller.post(CARD_PAGE, BACK), 429, "too-many-requests")
    # What tests no card is not limited so, and other users have their own.
    as_specified(wallet.send("post", CUSTOMER), CUSTOMER)
    as_specified(wallet_of(UserFactory.create()).send("get", SETUP_INTENT), SETUP_INTENT)


def test_all_users_of_one_network_get_no_more_setup_intents_than_its_share(
    double: DoubleAccount, settings: Settings, nothing_happens: NothingHappens
) -> None:
    settings.CARD_CAPTURE_NETWORK_RATE = "3/day"
    machine = network_address().removesuffix("::1")
    callers = [Wallet(wallet_of(UserFactory.create()).token, f"{machine}::{host:x}") for host in range(1, 5)]
    for caller in callers[:3]:
        as_specified(caller.send("get", SETUP_INTENT), SETUP_INTENT)
    with nothing_happens():
        assert_problem(callers[3].send("get", SETUP_INTENT), 429, "too-many-requests")
