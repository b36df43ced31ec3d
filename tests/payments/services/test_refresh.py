"""The nightly refresh stores what no webhook told, and one subscription holds up no other."""

import secrets

import pytest

from payments.models import Payout, Subscription
from payments.services import synchronisation
from payments.stripe import get_billing_client
from tests.factories import UserFactory
from tests.payments.dashboard import Clerk
from tests.payments.faults import fault_injection
from tests.payments.payers import Payer
from tests.payments.stripe_accounts import DoubleAccount

pytestmark = pytest.mark.django_db
DAY = 86_400


def test_the_refresh_finds_a_subscription_that_only_stripe_has(
    double: DoubleAccount, running: Payer, clerk: Clerk, amount: int
) -> None:
    known = running.subscription.stripe_subscription_id
    hats = clerk.subscribe(running, 700, product=f"hats-{secrets.token_hex(4)}")
    clerk.change(hats, {"price_data": clerk.price(amount)}, proration_behavior="none")
    assert synchronisation.refresh_subscriptions(now=double.now()) == 2
    rows = Subscription.objects.values_list("stripe_subscription_id", "amount_minor")
    assert dict(rows)[hats] == amount
    assert dict(rows).keys() == {known, hats}


def test_the_refresh_finds_every_change_without_a_webhook(
    double: DoubleAccount, running: Payer, clerk: Clerk
) -> None:
    clerk.change(
        running.subscription.stripe_subscription_id,
        pause_collection={"behavior": "void"},
        cancel_at=int(double.now().timestamp()) + DAY,
    )
    synchronisation.refresh_subscriptions(now=double.now())
    row = running.subscription
    assert (row.is_resting, row.cancels_at is not None) == (True, True)
    assert Payout.objects.count() == 1


def test_a_refusal_of_stripe_does_not_delay_other_subscriptions_active_only_here(
    double: DoubleAccount, running: Payer, amount: int
) -> None:
    other = Payer(double, UserFactory.create()).with_card()
    other.upsert(amount)
    ids = sorted(Subscription.objects.values_list("stripe_subscription_id", flat=True))
    for identifier in ids:
        double.v1.subscriptions.cancel(identifier)
    with fault_injection() as client:
        client.hide(ids[0])
        assert synchronisation.refresh_subscriptions(now=double.now()) == 1
    rows = Subscription.objects.order_by("stripe_subscription_id").values_list("status", flat=True)
    assert list(rows) == ["active", "canceled"]


def test_the_refresh_leaves_a_customer_of_another_service_alone(
    double: DoubleAccount, rates: dict[str, int], amount: int
) -> None:
    foreign = double.v1.customers.create({}).id
    double.capture(foreign)
    client = get_billing_client()
    client.has_payment_method(customer_id=foreign)
    client.create_subscription(
        customer_id=foreign,
        amount_minor=amount,
        currency="usd",
        cancels_at_period_end=False,
        key=secrets.token_hex(8),
    )
    assert synchronisation.refresh_subscriptions(now=double.now()) == 0
    assert not Subscription.objects.exists()
