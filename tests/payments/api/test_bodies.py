"""Bodies of upsertSubscription that break the documentation: each fault at its place, and nothing happens."""

from typing import Any

import pytest

from tests.fakes.billing import FakeBilling
from tests.payments.api.spec import UPSERT
from tests.payments.rows import all_rows
from tests.relay.api.conftest import Wallet
from tests.relay.api.test_bodies import MISSING, NO_BODIES, with_member
from tests.relay.api.test_execute import assert_problem

pytestmark = pytest.mark.django_db
GOOD: dict[str, Any] = {"subscriptionCost": 2550, "currency": "usd", "cancelAtEndOfBillingPeriod": False}
FAULTS: dict[str, list[Any]] = {
    "subscriptionCost": [
        *(MISSING, None, "", "2550", "25.50", "$25.50", "0x9f6"),
        *(25.5, 1e30, 2550.000001, True, False, [], {}, [2550], {"amount": 2550}),
        *(0, -1, -2550, -(2**63), 1 - 10**4300),
    ],
    "currency": [
        *("", "us", "usdd", "us ", " usd", "usd\n", "us\0", "u5d", "$", "ÚSD", "\uff55\uff53\uff44"),
        *(5, True, [], {}, ["usd"]),
    ],
    "cancelAtEndOfBillingPeriod": ["", "true", "false", "yes", 0, 1, 1.0, [], {}, [True]],
}


@pytest.mark.parametrize("pointer", FAULTS)
def test_each_fault_is_named_by_its_pointer(fake: FakeBilling, wallet: Wallet, pointer: str) -> None:
    before = all_rows()
    for value in FAULTS[pointer]:
        response = wallet.post(UPSERT, with_member(GOOD, pointer, value))
        members = assert_problem(response, 400, "invalid-request")
        assert [fault["pointer"] for fault in members["errors"]] == [f"/{pointer}"], value
    assert all_rows() == before
    assert not fake.calls


@pytest.mark.parametrize("currency", ["$", "üsd", 5, "us", "dollars"])
def test_the_error_for_an_invalid_currency_has_an_example(
    fake: FakeBilling, wallet: Wallet, currency: Any
) -> None:
    response = wallet.post(UPSERT, {**GOOD, "currency": currency})
    (fault,) = assert_problem(response, 400, "invalid-request")["errors"]
    assert fault["detail"] == "Send three letters, such as usd."


def test_null_equals_an_omitted_member(fake: FakeBilling, wallet: Wallet) -> None:
    body = {"subscriptionCost": 2550, "currency": None, "cancelAtEndOfBillingPeriod": None}
    # The body is taken, and only the card is missing.
    assert_problem(wallet.post(UPSERT, body), 402, "payment-method-required")


def test_all_errors_are_returned_at_once(fake: FakeBilling, wallet: Wallet) -> None:
    body = {"subscriptionCost": "2550", "currency": 840, "cancelAtEndOfBillingPeriod": "no"}
    members = assert_problem(wallet.post(UPSERT, body), 400, "invalid-request")
    assert {fault["pointer"] for fault in members["errors"]} == {f"/{name}" for name in GOOD}
    assert not fake.calls


@pytest.mark.parametrize("name", NO_BODIES)
def test_a_body_that_is_not_an_object_is_refused(fake: FakeBilling, wallet: Wallet, name: str) -> None:
    before = all_rows()
    assert_problem(wallet.post(UPSERT, NO_BODIES[name]), 400, "invalid-request")
    assert all_rows() == before
    assert not fake.calls
