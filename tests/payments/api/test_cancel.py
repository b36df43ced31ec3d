"""DELETE cancelSubscription on the wire: parameters in the body, in the query, in both and in neither."""

from typing import Any

import pytest

from payments.models import Subscription
from tests.payments.api.conftest import NothingHappens, cancel, delete, upsert
from tests.payments.api.spec import CANCEL, UPSERT, as_specified
from tests.payments.payers import Payer
from tests.payments.stripe_accounts import DECLINES, DoubleAccount
from tests.relay.api.conftest import Wallet
from tests.relay.api.test_execute import assert_problem
from users.models import User

pytestmark = pytest.mark.django_db
AT_ONCE, LATER = {"cancelImmediately": True}, {"cancelImmediately": False}


@pytest.fixture
def running(payer: Payer, wallet: Wallet, amount: int) -> Payer:
    """A user with an active subscription."""
    as_specified(upsert(wallet, amount), UPSERT)
    return payer


WAYS: dict[str, tuple[Any, str, bool]] = {
    "at once by body": (AT_ONCE, "", True),
    "later by body": (LATER, "", False),
    "at once by query": (None, "?cancelImmediately=true", True),
    "later by query": (None, "?cancelImmediately=false", False),
    "by query with an empty body": ({}, "?cancelImmediately=true", True),
    "by query with other members": ({"reason": "moving"}, "?cancelImmediately=false", False),
    "at once by both": (AT_ONCE, "?cancelImmediately=true", True),
    "later by both": (LATER, "?cancelImmediately=false", False),
    "said twice in the query": (None, "?cancelImmediately=true&cancelImmediately=true", True),
}


@pytest.mark.parametrize(("way", "slash"), [*((way, "") for way in WAYS), ("at once by body", "/")])
def test_the_subscription_ends_as_requested(
    double: DoubleAccount, running: Payer, wallet: Wallet, way: str, slash: str
) -> None:
    body, query, at_once = WAYS[way]
    body = as_specified(delete(wallet, body, slash + query), CANCEL)
    assert body == {
        "success": True,
        "customerIdCancelledFor": running.customer.stripe_customer_id,
        "cancelledInstantly": at_once,
    }
    subscription = double.v1.subscriptions.retrieve(running.subscription.stripe_subscription_id)
    assert (subscription.status, subscription.cancel_at_period_end) == (
        ("canceled", False) if at_once else ("active", True)
    )
    assert (running.subscription.ended_at is not None) == at_once


FAULTS: dict[str, tuple[Any, str]] = {
    "neither": (None, ""),
    "an empty body": ({}, ""),
    "another member": ({"immediately": True}, ""),
    "null": ({"cancelImmediately": None}, ""),
    "text": ({"cancelImmediately": "true"}, ""),
    "a number": ({"cancelImmediately": 1}, ""),
    "a number that the query agrees with": ({"cancelImmediately": 1}, "?cancelImmediately=true"),
    "text that the query agrees with": ({"cancelImmediately": "true"}, "?cancelImmediately=true"),
    "a list": ({"cancelImmediately": [True]}, ""),
    "another spelling": (None, "?cancelImmediately=True"),
    "a digit": (None, "?cancelImmediately=1"),
    "an empty query": (None, "?cancelImmediately="),
    "a body against the query": (AT_ONCE, "?cancelImmediately=false"),
    "a query against the body": (LATER, "?cancelImmediately=true"),
    "a query against itself": (None, "?cancelImmediately=true&cancelImmediately=false"),
}


def test_a_missing_or_contradictory_choice_ends_nothing(
    running: Payer, wallet: Wallet, nothing_happens: NothingHappens
) -> None:
    with nothing_happens():
        results = {name: delete(wallet, *fault) for name, fault in FAULTS.items()}
    assert {name: response.status for name, response in results.items()} == dict.fromkeys(FAULTS, 400)
    for name, response in results.items():
        members = assert_problem(response, 400, "invalid-request")
        assert [fault["pointer"] for fault in members["errors"]] == ["/cancelImmediately"], name


@pytest.mark.parametrize("query", ["", "?cancelImmediately=true"])
def test_a_body_that_is_not_an_object_is_refused_despite_a_query(
    running: Payer, wallet: Wallet, nothing_happens: NothingHappens, query: str
) -> None:
    with nothing_happens():
        for body in ("[]", "null", "true", '"cancelImmediately"', "{", "[true]"):
            assert_problem(delete(wallet, body, query), 400, "invalid-request")


def test_a_repeated_cancellation_at_period_end_gets_the_same_response(
    double: DoubleAccount, running: Payer, wallet: Wallet
) -> None:
    first = as_specified(cancel(wallet, immediately=False), CANCEL)
    with double.frozen_log() as orders:
        assert as_specified(cancel(wallet, immediately=False), CANCEL) == first
    assert orders == []
    assert as_specified(cancel(wallet, immediately=True), CANCEL)["cancelledInstantly"] is True


@pytest.mark.parametrize("immediately", [True, False])
def test_without_a_running_subscription_there_is_none_to_cancel(
    running: Payer, wallet: Wallet, nothing_happens: NothingHappens, immediately: bool
) -> None:
    as_specified(cancel(wallet, immediately=True), CANCEL)
    with nothing_happens():
        assert_problem(cancel(wallet, immediately), 404, "no-subscription")


@pytest.mark.parametrize("immediately", [True, False])
def test_cancelling_creates_no_customer(
    double: DoubleAccount, wallet: Wallet, nothing_happens: NothingHappens, immediately: bool
) -> None:
    with nothing_happens():
        assert_problem(cancel(wallet, immediately), 404, "no-subscription")
    assert double.controls.requests() == []


def test_an_unpaid_subscription_ends_at_once_and_the_response_shows_it(
    double: DoubleAccount, user: User, wallet: Wallet, amount: int
) -> None:
    Payer(double, user).with_card(DECLINES)
    assert_problem(upsert(wallet, amount), 402, "card-declined")
    assert as_specified(cancel(wallet, immediately=False), CANCEL)["cancelledInstantly"] is True
    assert Subscription.objects.get().status == "canceled"


def test_after_a_cancellation_another_subscription_can_be_created(
    double: DoubleAccount, running: Payer, wallet: Wallet
) -> None:
    first = running.subscription.stripe_subscription_id
    as_specified(cancel(wallet, immediately=True), CANCEL)
    second = as_specified(upsert(wallet, 1200, currency="eur"), UPSERT)
    assert second["subscriptionId"] != first
    assert second["subscriptionAmount"] == "€12.00"
