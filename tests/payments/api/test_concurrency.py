"""Many requests of one user at the same moment, through the whole of HTTP: one of each, and responses that agree."""

import json
from functools import partial
from typing import Any

import pytest

from payments.models import BillingOperation, Customer, Subscription
from tests.payments.api.conftest import cancel, upsert
from tests.payments.api.spec import CANCEL, CUSTOMER, UPSERT, as_specified
from tests.payments.payers import Payer
from tests.payments.stripe_accounts import DoubleAccount
from tests.relay.api.conftest import ApiResponse, Wallet
from tests.threads import at_once

pytestmark = pytest.mark.django_db(transaction=True)
MANY = 16


@pytest.fixture(autouse=True)
def _no_rate(settings: Any) -> None:
    settings.BILLING_RATE = "100000/minute"


def _answers(calls: list[Any]) -> list[ApiResponse]:
    return [result for result in at_once(calls) if isinstance(result, ApiResponse)]


def _distinct(answers: list[ApiResponse], path: str) -> list[dict[str, Any]]:
    bodies = {json.dumps(as_specified(response, path), sort_keys=True) for response in answers}
    return [json.loads(text) for text in bodies]


def test_many_concurrent_requests_create_one_customer(double: DoubleAccount, wallet: Wallet) -> None:
    results = _answers([partial(wallet.send, "post", CUSTOMER)] * MANY)
    assert len(results) == MANY
    (body,) = _distinct(results, CUSTOMER)
    (made,) = double.v1.customers.list({"limit": 100}).data
    assert made.id == body["paymentsCustomerId"] == Customer.objects.get().stripe_customer_id
    assert not BillingOperation.objects.exclude(status="done").exists()


def test_many_concurrent_requests_create_one_subscription(
    double: DoubleAccount, payer: Payer, wallet: Wallet, amount: int
) -> None:
    results = _answers([partial(upsert, wallet, amount)] * MANY)
    assert len(results) == MANY
    (body,) = _distinct(results, UPSERT)
    (made,) = double.v1.subscriptions.list({"status": "all", "limit": 100}).data
    assert made.id == body["subscriptionId"] == Subscription.objects.get().stripe_subscription_id
    assert len(made["items"].data) == 1
    charges = [charge.amount for charge in double.v1.charges.list({"limit": 100}).data]
    assert charges == [amount]
    assert len(double.v1.invoices.list().data) == 1
    assert Customer.objects.count() == len(double.v1.customers.list().data) == 1
    assert not BillingOperation.objects.exclude(status="done").exists()


def test_many_concurrent_requests_cancel_one_subscription(
    double: DoubleAccount, payer: Payer, wallet: Wallet, amount: int
) -> None:
    as_specified(upsert(wallet, amount), UPSERT)
    responses = _answers([partial(cancel, wallet, immediately=True)] * MANY)
    assert len(responses) == MANY
    successes = [response for response in responses if response.status == 200]
    assert _distinct(successes, CANCEL)[0]["cancelledInstantly"] is True
    # Who comes after the end finds nothing to cancel.
    assert {response.status for response in responses} <= {200, 404}
    assert Subscription.objects.get().status == "canceled"
    assert double.v1.refunds.list().data == []
