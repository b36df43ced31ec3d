"""upsertSubscription while the first payment has not succeeded."""

import pytest

from payments.errors import AuthenticationRequired, CardDeclined
from payments.models import BillingOperation, Subscription
from tests.payments.mail import deliver_all
from tests.payments.people import Payer
from tests.payments.worlds import ASKS, DECLINES, VISA, DoubleWorld
from users.models import User

pytestmark = pytest.mark.django_db
SUBSCRIPTIONS = "/v1/subscriptions"


@pytest.fixture
def declined(double: DoubleWorld, user: User, amount: int) -> Payer:
    """A user whose card was declined at the beginning."""
    payer = Payer(double, user).with_card(DECLINES)
    with pytest.raises(CardDeclined):
        payer.upsert(amount)
    return payer


def _accept_card(double: DoubleWorld, payer: Payer) -> None:
    (card,) = double.v1.payment_methods.list({"customer": payer.customer.stripe_customer_id}).data
    double.controls.change_card(card.id, decline_code=None)


def test_the_same_values_try_the_same_invoice_again(
    double: DoubleWorld, declined: Payer, amount: int
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
def test_other_values_end_it_and_begin_anew(
    double: DoubleWorld, declined: Payer, amount: int, changes: dict[str, int]
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
    double: DoubleWorld, declined: Payer, amount: int
) -> None:
    declined.with_card(VISA)
    deliver_all(double)
    assert declined.subscription.status == "active"
    assert declined.payout.amount_minor == amount
    with double.frozen_log() as orders:
        assert declined.upsert(amount).status == "active"
    assert orders == []


@pytest.mark.parametrize("more", [0, 77])
def test_another_card_is_tried_at_once_though_nobody_told_of_it(
    double: DoubleWorld, declined: Payer, amount: int, more: int
) -> None:
    declined.with_card(VISA)
    assert declined.upsert(amount + more).status == "active"
    newest, _ = double.v1.payment_methods.list({"customer": declined.customer.stripe_customer_id}).data
    told = double.v1.customers.retrieve(declined.customer.stripe_customer_id)
    assert told.invoice_settings.default_payment_method == newest.id


def test_a_card_captured_after_giving_up_pays_the_next_beginning(
    double: DoubleWorld, declined: Payer, amount: int
) -> None:
    declined.cancel(immediately=True)
    declined.with_card(VISA)
    assert declined.upsert(amount).status == "active"


def test_of_two_cards_the_newer_one_pays_in_whatever_order_they_are_told(
    double: DoubleWorld, declined: Payer
) -> None:
    declined.with_card(VISA)
    deliver_all(double)
    told = double.v1.subscriptions.retrieve(declined.subscription.stripe_subscription_id)
    newest, older = double.v1.payment_methods.list({"customer": declined.customer.stripe_customer_id}).data
    assert (told.default_payment_method, older.card.last4) == (newest.id, "0341")
    first, _ = double.events("setup_intent.succeeded")
    double.controls.reissue(first.id)
    deliver_all(double)
    told = double.v1.subscriptions.retrieve(declined.subscription.stripe_subscription_id)
    assert told.default_payment_method == newest.id


def test_a_holder_who_does_not_confirm_is_asked_again(double: DoubleWorld, user: User, amount: int) -> None:
    payer = Payer(double, user).with_card(ASKS)
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


def test_it_may_be_given_up_and_nothing_was_paid(double: DoubleWorld, declined: Payer) -> None:
    ended = declined.cancel(immediately=False)
    assert ended.status == "canceled"
    assert ended.ended_at is not None
    deliver_all(double)
    assert declined.balance == 0
    assert not BillingOperation.objects.filter(status="pending").exists()


def test_left_alone_it_expires_and_the_next_one_is_new(
    double: DoubleWorld, declined: Payer, amount: int
) -> None:
    first = declined.subscription
    double.pass_time(24 * 3600)
    deliver_all(double)
    first.refresh_from_db()
    assert first.status == "incomplete_expired"
    _accept_card(double, declined)
    assert declined.upsert(amount).pk != first.pk
