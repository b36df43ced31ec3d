"""upsertSubscription where a renewal was not collected: the owner heals it alone."""

from collections.abc import Callable

import pytest

from payments.errors import AuthenticationRequired, CardDeclined, NoSubscription
from payments.models import Subscription
from payments.services import customers, standing
from tests.payments.payers import Payer
from tests.payments.stripe_accounts import NEEDS_CONFIRMATION, VISA, DoubleAccount
from tests.payments.webhook_events import process_all_events

pytestmark = pytest.mark.django_db
DAY = 86_400
Overdue = Callable[[str], Subscription]


@pytest.fixture
def overdue(double: DoubleAccount, payer: Payer, amount: int) -> Overdue:
    """Return a function that brings the subscription into a status; the card on file is declined from then on."""

    def become(status: str) -> Subscription:
        made = payer.upsert(amount)
        double.controls.after_retries("unpaid" if status == "unpaid" else "leave")
        double.decline_from_now(card_of(double, payer), "insufficient_funds")
        double.pass_time((65 if status == "unpaid" else 32) * DAY)
        process_all_events(double)
        made.refresh_from_db()
        assert made.status == status
        return made

    return become


def card_of(double: DoubleAccount, payer: Payer) -> str:
    """Return the newest card of the payer."""
    cards = double.v1.payment_methods.list({"customer": payer.customer.stripe_customer_id}).data
    return str(cards[0].id)


def charges(double: DoubleAccount) -> list[int]:
    """Return what was charged, the newest last."""
    rows = double.v1.charges.list().data
    return [row.amount for row in reversed(rows) if row.status == "succeeded"]


@pytest.mark.parametrize("status", ["past_due", "unpaid"])
def test_the_same_card_that_pays_again_makes_it_active_and_pays_out(
    double: DoubleAccount, payer: Payer, overdue: Overdue, amount: int, status: str
) -> None:
    made = overdue(status)
    payouts = len(payer.payouts)
    double.decline_from_now(card_of(double, payer), None)
    healed = payer.upsert(amount)
    assert (healed.pk, healed.status) == (made.pk, "active")
    process_all_events(double)
    assert len(payer.payouts) == payouts + 1
    assert charges(double) == [amount, amount]
    assert payer.upsert(amount).status == "active"
    assert charges(double) == [amount, amount]


@pytest.mark.parametrize("status", ["past_due", "unpaid"])
def test_a_declined_card_is_reported_with_its_reason_on_every_read_until_another_card_pays(
    double: DoubleAccount, payer: Payer, overdue: Overdue, amount: int, status: str
) -> None:
    overdue(status)
    for _ in range(2):
        with pytest.raises(CardDeclined) as refusal:
            payer.upsert(amount)
        assert refusal.value.members == {"declineCode": "insufficient_funds"}
    assert payer.subscription.status == status
    assert charges(double) == [amount]
    payer.with_card(VISA)
    assert payer.upsert(amount).status == "active"
    assert charges(double) == [amount, amount]


def test_an_off_session_decline_that_needs_confirmation_is_confirmed_by_the_owner(
    double: DoubleAccount, payer: Payer, overdue: Overdue, amount: int
) -> None:
    overdue("past_due")
    double.controls.off_session("decline")
    payer.with_card(NEEDS_CONFIRMATION)
    with pytest.raises(AuthenticationRequired) as refusal:
        payer.upsert(amount)
    intent = refusal.value.members["clientSecret"].split("_secret")[0]
    confirmation = {"payment_method": card_of(double, payer), "return_url": "https://wallet.example"}
    double.v1.payment_intents.confirm(intent, confirmation)
    double.confirm(intent)
    assert payer.upsert(amount).status == "active"
    assert charges(double) == [amount, amount]


def test_an_overdue_subscription_is_cancelled_at_once_without_a_charge(
    double: DoubleAccount, payer: Payer, overdue: Overdue, amount: int
) -> None:
    overdue("past_due")
    assert payer.cancel(immediately=True).status == "canceled"
    assert charges(double) == [amount]
    payer.with_card(VISA)
    assert payer.upsert(amount).status == "active"


def test_a_cancellation_with_a_date_at_stripe_is_seen_and_taken_back(
    double: DoubleAccount, payer: Payer, amount: int
) -> None:
    made = payer.upsert(amount)
    row = double.v1.subscriptions.retrieve(made.stripe_subscription_id)
    end = row["items"].data[0].current_period_end
    double.v1.subscriptions.update(made.stripe_subscription_id, {"cancel_at": end})
    process_all_events(double)
    made.refresh_from_db()
    assert made.cancels_at_period_end
    assert not double.v1.subscriptions.retrieve(made.stripe_subscription_id).cancel_at_period_end

    assert not payer.upsert(amount).cancels_at_period_end
    assert double.v1.subscriptions.retrieve(made.stripe_subscription_id).cancel_at is None
    assert payer.upsert(amount, cancels=True).cancels_at_period_end


def test_a_setup_intent_requests_cards_regardless_of_the_accounts_methods(
    double: DoubleAccount, payer: Payer
) -> None:
    secret = customers.setup_secret(user=payer.user, now=double.now())
    intent = double.v1.setup_intents.retrieve(secret.split("_secret")[0])
    assert (intent.payment_method_types, intent.automatic_payment_methods) == (["card"], None)


@pytest.mark.parametrize("status", ["past_due", "unpaid"])
def test_the_report_shows_the_open_amount_its_cause_and_the_action(
    double: DoubleAccount, payer: Payer, overdue: Overdue, amount: int, status: str
) -> None:
    made = overdue(status)

    def report() -> tuple[str, int | None, int | None, str, str]:
        current = standing.report(user=payer.user, now=double.now())
        return (
            current.subscription.status,
            current.paid_minor,
            current.open_minor,
            current.decline_code,
            current.next_step,
        )

    reason = "insufficient_funds" if status == "past_due" else ""
    assert report() == (status, None, amount, reason, "capture-card" if reason else "pay")
    payer.with_card(NEEDS_CONFIRMATION)
    with pytest.raises(AuthenticationRequired) as refusal:
        payer.upsert(amount)
    assert report() == (status, None, amount, "", "confirm")
    double.confirm(refusal.value.members["clientSecret"])
    process_all_events(double)
    assert report() == ("active", amount, 0, "", "nothing")
    assert charges(double) == [amount, amount]
    made.refresh_from_db()
    payer.cancel(immediately=True)
    assert report() == ("canceled", amount, 0, "", "subscribe")


def test_the_report_shows_when_a_new_amount_applies_and_changes_nothing(
    double: DoubleAccount, payer: Payer, amount: int
) -> None:
    payer.upsert(amount)
    process_all_events(double)
    payer.upsert(amount + 50)
    with double.frozen_log() as requests:
        report = standing.report(user=payer.user, now=double.now())
    assert {request.path for request in requests} == {"/v1/invoices/create_preview"}
    assert (report.paid_minor, report.next_minor) == (amount, amount + 50)
    payer.upsert(amount + 50, cancels=True)
    assert standing.report(user=payer.user, now=double.now()).next_minor is None


def test_a_user_who_never_subscribed_has_no_subscription_to_report(
    double: DoubleAccount, payer: Payer
) -> None:
    with pytest.raises(NoSubscription):
        standing.report(user=payer.user, now=double.now())
