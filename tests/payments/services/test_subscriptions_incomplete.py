"""upsertSubscription while the first payment has not succeeded."""

import pytest

from payments.errors import AuthenticationRequired, CardDeclined
from payments.models import BillingOperation, Subscription
from tests.payments.payers import Payer
from tests.payments.stripe_accounts import NEEDS_CONFIRMATION, VISA, DoubleAccount
from tests.payments.webhook_events import process_all_events
from users.models import User

pytestmark = pytest.mark.django_db
SUBSCRIPTIONS = "/v1/subscriptions"


def _accept_card(double: DoubleAccount, payer: Payer) -> None:
    (card,) = double.v1.payment_methods.list({"customer": payer.customer.stripe_customer_id}).data
    double.controls.change_card(card.id, decline_code=None)


def test_the_same_values_try_the_same_invoice_again(
    double: DoubleAccount, declined: Payer, amount: int
) -> None:
    first = declined.subscription
    with pytest.raises(CardDeclined):
        declined.upsert(amount)
    _accept_card(double, declined)
    running = declined.upsert(amount)
    assert (running.pk, running.status) == (first.pk, "active")
    assert len(double.posts(SUBSCRIPTIONS)) == 1
    (invoice,) = double.v1.invoices.list({"subscription": first.stripe_subscription_id}).data
    assert (invoice.status, invoice.amount_paid) == ("paid", amount)


@pytest.mark.parametrize("changes", [{"amount": 77}, {"currency": "eur"}, {"cancels": True}])
def test_other_values_cancel_it_and_create_a_new_one(
    double: DoubleAccount, declined: Payer, amount: int, changes: dict[str, int]
) -> None:
    first = declined.subscription
    _accept_card(double, declined)
    running = declined.upsert(
        amount + changes.get("amount", 0),
        str(changes.get("currency", "usd")),
        cancels=bool(changes.get("cancels", False)),
    )
    first.refresh_from_db()
    assert (first.status, running.status) == ("canceled", "active")
    assert running.amount_minor == amount + changes.get("amount", 0)
    assert running.cancels_at_period_end == bool(changes.get("cancels", False))
    (invoice,) = double.v1.invoices.list({"subscription": first.stripe_subscription_id}).data
    assert (invoice.status, invoice.amount_paid) == ("void", 0)


def test_another_card_pays_what_the_old_one_could_not(
    double: DoubleAccount, declined: Payer, amount: int
) -> None:
    declined.with_card(VISA)
    process_all_events(double)
    assert declined.subscription.status == "active"
    assert declined.payout.amount_minor == amount
    with double.frozen_log() as orders:
        assert declined.upsert(amount).status == "active"
    assert orders == []


@pytest.mark.parametrize("more", [0, 77])
def test_another_card_is_tried_at_once_before_its_webhook_arrives(
    double: DoubleAccount, declined: Payer, amount: int, more: int
) -> None:
    declined.with_card(VISA)
    assert declined.upsert(amount + more).status == "active"
    newest, _ = double.v1.payment_methods.list({"customer": declined.customer.stripe_customer_id}).data
    result = double.v1.customers.retrieve(declined.customer.stripe_customer_id)
    assert result.invoice_settings.default_payment_method == newest.id


def test_a_card_captured_after_cancelling_pays_the_next_subscription(
    double: DoubleAccount, declined: Payer, amount: int
) -> None:
    declined.cancel(immediately=True)
    declined.with_card(VISA)
    assert declined.upsert(amount).status == "active"


def test_the_newer_of_two_cards_pays_in_any_order_of_their_events(
    double: DoubleAccount, declined: Payer
) -> None:
    declined.with_card(VISA)
    process_all_events(double)
    result = double.v1.subscriptions.retrieve(declined.subscription.stripe_subscription_id)
    newest, older = double.v1.payment_methods.list({"customer": declined.customer.stripe_customer_id}).data
    assert (result.default_payment_method, older.card.last4) == (newest.id, "0341")
    first, _ = double.events("setup_intent.succeeded")
    double.controls.reissue(first.id)
    process_all_events(double)
    result = double.v1.subscriptions.retrieve(declined.subscription.stripe_subscription_id)
    assert result.default_payment_method == newest.id


def test_an_unconfirmed_payment_returns_the_same_client_secret_again(
    double: DoubleAccount, user: User, amount: int
) -> None:
    payer = Payer(double, user).with_card(NEEDS_CONFIRMATION)
    secrets = []
    for _ in range(2):
        with pytest.raises(AuthenticationRequired) as refusal:
            payer.upsert(amount)
        secrets.append(refusal.value.members["clientSecret"])
    assert secrets[0] == secrets[1]
    double.controls.authenticate(secrets[0].split("_secret_")[0], succeeds=False)
    with pytest.raises(AuthenticationRequired):
        payer.upsert(amount)
    assert Subscription.objects.count() == 1
    assert len(double.posts(SUBSCRIPTIONS)) == 1


def test_an_incomplete_subscription_can_be_cancelled_without_a_charge(
    double: DoubleAccount, declined: Payer
) -> None:
    ended = declined.cancel(immediately=False)
    assert ended.status == "canceled"
    assert ended.ended_at is not None
    process_all_events(double)
    assert declined.balance == 0
    assert not BillingOperation.objects.filter(status="pending").exists()


def test_an_incomplete_subscription_expires_and_the_next_one_is_new(
    double: DoubleAccount, declined: Payer, amount: int
) -> None:
    first = declined.subscription
    double.pass_time(24 * 3600)
    process_all_events(double)
    first.refresh_from_db()
    assert first.status == "incomplete_expired"
    _accept_card(double, declined)
    assert declined.upsert(amount).pk != first.pk
