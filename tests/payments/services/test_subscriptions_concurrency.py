"""Many requests of one user at the same moment: one customer, one subscription, responses that agree."""

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from gateway.common.errors import DomainError
from payments.errors import BillingInProgress
from payments.models import BillingOperation, Subscription
from payments.services import customers
from tests.payments.payers import Payer
from tests.payments.stripe_accounts import DECLINES, DoubleAccount
from tests.threads import at_once
from users.models import User

pytestmark = pytest.mark.django_db(transaction=True)
SUBSCRIPTIONS = "/v1/subscriptions"


def _live(double: DoubleAccount, payer: Payer) -> list[str]:
    rows = double.v1.subscriptions.list({"customer": payer.customer.stripe_customer_id, "status": "all"})
    return [row.id for row in rows.data if row.status != "canceled"]


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("path", ["/v1/customers", SUBSCRIPTIONS])
def test_equal_requests_wait_for_the_one_that_stripe_is_processing(
    double: DoubleAccount, user: User, amount: int, path: str
) -> None:
    payer = Payer(double, user)
    call: Callable[[], Any] = partial(customers.ensure_customer, user=user, now=double.now())
    if path == SUBSCRIPTIONS:
        call = partial(payer.with_card().upsert, amount)
    double.controls.slow(2, method="POST", path=path)
    results = at_once([call] * 4)
    assert [result for result in results if isinstance(result, DomainError)] == []
    assert [result for result in results if result != results[0]] == []
    assert not BillingOperation.objects.exclude(status="done").exists()


def test_different_requests_succeed_or_get_409_and_one_of_them_is_in_force(
    double: DoubleAccount, payer: Payer, amount: int
) -> None:
    requests = [(amount + step, random.choice([True, False])) for step in range(16)]
    results = at_once([partial(payer.upsert, cost, cancels=cancels) for cost, cancels in requests])
    refusals = [result for result in results if isinstance(result, DomainError)]
    assert len(refusals) < len(results)
    assert {type(refusal) for refusal in refusals} <= {BillingInProgress}
    assert all(refusal.retry_after for refusal in refusals)
    made = Subscription.objects.get()
    subscription = double.v1.subscriptions.retrieve(made.stripe_subscription_id)
    (item,) = subscription["items"].data
    assert (made.amount_minor, made.cancels_at_period_end) == (
        item.price.unit_amount,
        subscription.cancel_at_period_end,
    )
    assert (made.amount_minor, made.cancels_at_period_end) in requests
    assert _live(double, payer) == [made.stripe_subscription_id]
    assert len(double.v1.invoices.list().data) == 1


def test_concurrent_creations_and_cancellations_leave_at_most_one_active_subscription(
    double: DoubleAccount, payer: Payer, amount: int
) -> None:
    calls = [partial(payer.upsert, amount), partial(payer.cancel, immediately=True)] * 8
    at_once(random.sample(calls, len(calls)))
    assert len(_live(double, payer)) <= 1
    stored = {row.stripe_subscription_id: row.status for row in Subscription.objects.all()}
    rows = double.v1.subscriptions.list({"customer": payer.customer.stripe_customer_id, "status": "all"})
    assert stored == {row.id: row.status for row in rows.data}
    assert not BillingOperation.objects.filter(status="pending").exists()


def test_concurrent_retries_pay_an_open_invoice_once(double: DoubleAccount, user: User, amount: int) -> None:
    payer = Payer(double, user).with_card(DECLINES)
    (refusal,) = at_once([partial(payer.upsert, amount)])
    assert isinstance(refusal, DomainError)
    (card,) = double.v1.payment_methods.list({"customer": payer.customer.stripe_customer_id}).data
    double.controls.change_card(card.id, decline_code=None)
    results = at_once([partial(payer.upsert, amount)] * 16)
    made = Subscription.objects.get()
    assert [result for result in results if result != made] == []
    assert made.status == "active"
    charges = [charge for charge in double.v1.charges.list().data if charge.status == "succeeded"]
    assert [charge.amount for charge in charges] == [amount]
