"""upsertSubscription for a user without a running subscription."""

import secrets

import pytest
from django.conf import settings

from payments.errors import (
    AmountTooLarge,
    AmountTooSmall,
    AuthenticationRequired,
    BillingInProgress,
    CardDeclined,
    CurrencyNotSupported,
    PaymentMethodRequired,
)
from payments.models import BillingOperation, Subscription
from payments.stripe import get_billing_client
from tests.payments.conftest import Refused
from tests.payments.payers import Payer
from tests.payments.stripe_accounts import DECLINES, NEEDS_CONFIRMATION, DoubleAccount
from users.models import User

pytestmark = pytest.mark.django_db
SUBSCRIPTIONS = "/v1/subscriptions"


def test_a_new_subscription_is_stored_as_stripe_answers_it(
    double: DoubleAccount, payer: Payer, amount: int
) -> None:
    made = payer.upsert(amount, "eur")
    subscription = double.v1.subscriptions.retrieve(made.stripe_subscription_id)
    (item,) = subscription["items"].data
    assert (made.status, made.amount_minor, made.currency) == ("active", amount, "eur")
    assert (made.stripe_item_id, made.cancels_at_period_end, made.ended_at) == (item.id, False, None)
    assert int(made.current_period_start.timestamp()) == item.current_period_start
    assert int(made.current_period_end.timestamp()) == item.current_period_end
    assert (item.price.unit_amount, item.price.currency) == (amount, "eur")
    assert item.price.recurring.interval == "month"


def test_the_parameters_that_stripe_gets_for_a_new_subscription(
    double: DoubleAccount, payer: Payer, amount: int
) -> None:
    payer.upsert(amount, cancels=True)
    (order,) = double.posts(SUBSCRIPTIONS)
    operation = BillingOperation.objects.get(kind="create-subscription")
    assert order.idempotency_key == str(operation.pk)
    (item,) = order.params["items"].values()
    assert item["price_data"]["product"] == settings.STRIPE_PRODUCT_ID
    assert order.params["payment_behavior"] == "allow_incomplete"
    assert order.params["billing_mode"] == {"type": "flexible"}
    assert order.params["cancel_at_period_end"] == "true"
    assert order.params["metadata"] == {"operation": str(operation.pk)}
    assert (operation.status, operation.outcome) == ("done", payer.subscription.stripe_subscription_id)


def test_a_new_subscription_can_end_with_its_first_period(
    double: DoubleAccount, payer: Payer, amount: int
) -> None:
    assert payer.upsert(amount, cancels=True).cancels_at_period_end
    double.pass_time(32 * 86_400)
    subscription = double.v1.subscriptions.retrieve(payer.subscription.stripe_subscription_id)
    assert (subscription.status, subscription.ended_at) == (
        "canceled",
        payer.subscription.current_period_end.timestamp(),
    )


def test_without_a_card_no_subscription_is_created(
    double: DoubleAccount, user: User, amount: int, refused: Refused
) -> None:
    payer = Payer(double, user)
    assert payer.customer
    with refused(PaymentMethodRequired):
        payer.upsert(amount)


def test_a_declined_card_is_reported_with_its_reason_and_leaves_an_incomplete_subscription(
    double: DoubleAccount, user: User, amount: int
) -> None:
    payer = Payer(double, user).with_card(DECLINES)
    with pytest.raises(CardDeclined) as refusal:
        payer.upsert(amount)
    assert refusal.value.members == {"declineCode": "generic_decline"}
    assert payer.subscription.status == "incomplete"
    assert payer.balance == 0


def test_the_wallet_confirms_a_card_that_needs_it_and_the_subscription_becomes_active(
    double: DoubleAccount, user: User, amount: int
) -> None:
    payer = Payer(double, user).with_card(NEEDS_CONFIRMATION)
    with pytest.raises(AuthenticationRequired) as refusal:
        payer.upsert(amount)
    secret = refusal.value.members["clientSecret"]
    double.confirm(secret)
    running = payer.upsert(amount)
    assert (running.status, running.amount_minor) == ("active", amount)
    assert len(double.posts(SUBSCRIPTIONS)) == 1
    assert secret.split("_secret_")[0].startswith("pi_")


@pytest.mark.parametrize(("currency", "least"), [("usd", 50), ("eur", 50), ("gbp", 30), ("chf", 50)])
def test_the_minimum_of_a_currency_is_sold_and_a_cent_less_is_not(
    payer: Payer, refused: Refused, currency: str, least: int
) -> None:
    with refused(AmountTooSmall) as refusal:
        payer.upsert(least - 1, currency)
    assert refusal.value.members == {"minimum": least}
    assert payer.upsert(least, currency).status == "active"


def test_more_than_the_maximum_is_not_sold(payer: Payer, refused: Refused) -> None:
    most = settings.BILLING_MAX_AMOUNT_MINOR
    with refused(AmountTooLarge) as refusal:
        payer.upsert(most + 1)
    assert refusal.value.members == {"maximum": most}


def test_an_unsupported_currency_is_refused_with_the_supported_ones(payer: Payer, refused: Refused) -> None:
    for currency in ("jpy", "aud", "xxx"):
        with refused(CurrencyNotSupported) as refusal:
            payer.upsert(5_000, currency)
        assert refusal.value.members == {"supported": settings.BILLING_CURRENCIES}


def test_while_another_change_is_running_no_subscription_is_created(
    double: DoubleAccount, payer: Payer, amount: int, refused: Refused
) -> None:
    BillingOperation.objects.create(
        user=payer.user, kind="create-subscription", parameters={"other": "one"}, created_at=double.now()
    )
    # Making the captured card the default does not change a subscription.
    assert get_billing_client().has_payment_method(customer_id=payer.customer.stripe_customer_id)
    with refused(BillingInProgress) as refusal:
        payer.upsert(amount)
    assert refusal.value.retry_after == 2


def test_after_a_cancellation_a_new_subscription_is_created(
    double: DoubleAccount, payer: Payer, amount: int
) -> None:
    first = payer.upsert(amount)
    payer.cancel(immediately=True)
    second = payer.upsert(amount + 1, "eur" if secrets.randbelow(2) else "gbp")
    assert second.stripe_subscription_id != first.stripe_subscription_id
    assert Subscription.objects.live().get() == second
    assert Subscription.objects.count() == 2
