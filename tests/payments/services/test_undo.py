"""Purchases that their payer undoes: refunded once, and nothing of them can be spent meanwhile."""

import random
import secrets
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from uuid import uuid4

import pgtrigger
import pytest
from pytest_django import Settings

from credits.errors import InsufficientCredits
from credits.models import CreditAccount, CreditHold, EntrySource
from credits.queries import balance_of
from credits.services import entries
from credits.services.reconciliation import find_differences
from gateway.common import clock
from payments.errors import BillingRefused, BillingUnavailable, UndoRefused, UnknownPurchase
from payments.models import AutoTopUp, Clawback, Payout, Purchase, Refund
from payments.services import deletion, events, purchases, refunds, undo
from payments.services.purchases import Order
from payments.tasks import resume_operations
from rewards.models import Progress
from tests.credits.holding import capture, place_hold
from tests.factories import UserFactory, make
from tests.fakes.billing import FakeBilling
from tests.payments.buying import buy, new_pack
from tests.payments.payers import Payer
from tests.payments.webhook_events import receive_event
from tests.sponsors.sponsorships import make_sponsor
from tests.staff import everything
from tests.threads import at_once
from users.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture
def payer(fake: FakeBilling, user: User) -> Payer:
    return Payer(fake, user).with_card()


@pytest.fixture
def purchase(payer: Payer) -> Purchase:
    """Return a purchase that was paid just now."""
    return buy(payer, new_pack())


def process(fake: FakeBilling) -> None:
    for event in fake.events:
        events.process(event_id=receive_event(event, now=fake.now()).pk, now=fake.now())


def undo_of(fake: FakeBilling, payer: Payer, purchase: Purchase, after: timedelta = timedelta(0)) -> Refund:
    return undo.undo(user=payer.user, purchase_id=purchase.pk, now=fake.now() + after)


def send(fake: FakeBilling, refund: Refund) -> Refund:
    return refunds.send(refund_id=str(refund.pk), now=fake.now())


def refused(reason: str, act: Callable[[], object]) -> None:
    """Assert that an undo is refused for this reason, and that no row changes."""
    before = everything()
    with pytest.raises(UndoRefused) as refusal:
        act()
    assert refusal.value.members["reason"] == reason
    assert everything() == before


def test_an_undone_purchase_returns_all_money_and_leaves_no_trace_in_the_balance(
    fake: FakeBilling, payer: Payer, purchase: Purchase
) -> None:
    (payout,) = payer.purchases
    refund = undo_of(fake, payer, purchase)
    assert balance_of(payer.user).available == 0
    assert undo_of(fake, payer, purchase) == refund
    assert send(fake, refund).status == send(fake, refund).status == "done"
    # The credits stay held until Stripe's event takes them back.
    assert (balance_of(payer.user).available, CreditHold.objects.get().status) == (0, "HELD")
    process(fake)
    assert fake.refunded(payout.stripe_payment_intent_id) == purchase.amount_minor
    assert fake.calls["create_refund"] == 1
    account = CreditAccount.objects.get()
    assert (account.balance, account.held, account.open_holds) == (0, 0, 0)
    assert Progress.objects.get().permanent_experience == 0
    assert Clawback.objects.get().credits == payout.credits
    assert find_differences() == []
    assert undo_of(fake, payer, purchase) == Refund.objects.get()


def test_what_is_held_cannot_be_spent_and_what_is_spent_cannot_be_undone(
    fake: FakeBilling, payer: Payer, purchase: Purchase
) -> None:
    (payout,) = payer.purchases
    spent = random.randint(1, payout.credits)
    call = place_hold(user=payer.user, credits=spent, key=secrets.token_hex(8)).hold
    undo_now = partial(undo_of, fake, payer, purchase)
    refused("spent", undo_now)
    capture(hold_id=call.pk, credits=spent)
    refused("spent", undo_now)

    # Credits are alike: others make up for the spent ones.
    entries.grant(user=payer.user, credits=spent, source=EntrySource.SURVEYS, key=secrets.token_hex(8))
    undo_now()
    with pytest.raises(InsufficientCredits):
        place_hold(user=payer.user, credits=1, key=secrets.token_hex(8))


@pytest.mark.django_db(transaction=True)
def test_of_a_call_and_an_undo_at_the_same_moment_one_gets_the_credits(
    fake: FakeBilling, payer: Payer, purchase: Purchase
) -> None:
    gave, key = payer.purchases[0].credits, secrets.token_hex(8)
    call = partial(place_hold, user=payer.user, credits=gave, key=key)
    rivals: list[Callable[[], object]] = [partial(undo_of, fake, payer, purchase), call]
    undone, called = at_once(rivals)
    outcomes = {isinstance(undone, UndoRefused), isinstance(called, InsufficientCredits)}
    assert outcomes == {True, False}
    assert CreditAccount.objects.get().held == gave
    assert Refund.objects.count() == (not isinstance(undone, UndoRefused))


@pytest.mark.django_db(transaction=True)
def test_undone_many_times_at_once_a_purchase_is_refunded_once(
    fake: FakeBilling, payer: Payer, purchase: Purchase
) -> None:
    made = at_once([partial(undo_of, fake, payer, purchase) for _ in range(6)])
    assert made == [Refund.objects.get()] * 6
    assert CreditAccount.objects.get().open_holds == 1


def test_after_its_time_a_purchase_is_only_refunded_by_support(
    fake: FakeBilling, payer: Payer, purchase: Purchase, settings: Settings
) -> None:
    settings.PURCHASE_UNDO_MINUTES = minutes = random.randint(2, 100)
    refused("too-late", lambda: undo_of(fake, payer, purchase, timedelta(minutes=minutes)))
    settings.PURCHASE_UNDO_MINUTES = 0
    refused("not-undoable", lambda: undo_of(fake, payer, purchase))
    settings.PURCHASE_UNDO_MINUTES = minutes
    undo_of(fake, payer, purchase, timedelta(minutes=minutes - 1))


def test_other_peoples_purchases_and_those_that_a_top_up_made_are_not_undone(
    fake: FakeBilling, payer: Payer, purchase: Purchase
) -> None:
    before = everything()
    for user, purchase_id in ((UserFactory.create(), purchase.pk), (payer.user, uuid4())):
        with pytest.raises(UnknownPurchase):
            undo.undo(user=user, purchase_id=purchase_id, now=fake.now())
    assert everything() == before
    terms = {"threshold": 1, "amount_minor": 1, "currency": "usd", "monthly_limit_minor": 1, "consent": "yes"}
    top_up = AutoTopUp.objects.create(user=payer.user, pack=new_pack(), consented_at=fake.now(), **terms)
    Purchase.objects.update(top_up=top_up)
    refused("not-undoable", lambda: undo_of(fake, payer, purchase))


def test_a_purchase_for_a_sponsor_is_not_undone_by_who_paid_it(fake: FakeBilling, payer: Payer) -> None:
    pack, sponsor = new_pack(), make_sponsor(0)
    order = Order(pack.amount_minor, pack.currency, pack, sponsor=sponsor)
    key = secrets.token_hex(8)
    purchase = purchases.buy(user=payer.user, order=order, key=key, now=fake.now())
    entries.grant(
        user=payer.user,
        credits=payer.purchases[0].credits,
        source=EntrySource.SURVEYS,
        key=secrets.token_hex(8),
    )
    refused("not-undoable", lambda: undo_of(fake, payer, purchase))


def test_a_purchase_that_no_card_paid_is_not_undone(
    fake: FakeBilling, payer: Payer, purchase: Purchase
) -> None:
    with pgtrigger.ignore("payments.Payout:only_returns_change"):
        Payout.objects.update(stripe_payment_intent_id="")
    refused("not-undoable", lambda: undo_of(fake, payer, purchase))


def test_a_purchase_that_staff_are_refunding_is_not_undone_as_well(
    fake: FakeBilling, payer: Payer, purchase: Purchase
) -> None:
    by_staff = make(Refund, payout=payer.purchases[0], status="pending")
    refused("returned", lambda: undo_of(fake, payer, purchase))
    Refund.objects.filter(pk=by_staff.pk).update(status="refused", outcome="x", finished_at=fake.now())
    assert undo_of(fake, payer, purchase).status == "pending"


def test_a_fourth_purchase_within_thirty_days_stays(fake: FakeBilling, payer: Payer) -> None:
    for _ in range(3):
        refund = undo_of(fake, payer, buy(payer, new_pack()))
        send(fake, refund)
        process(fake)
    fourth = buy(payer, new_pack())
    refused("too-often", lambda: undo_of(fake, payer, fourth))
    Refund.objects.update(created_at=fake.now() - timedelta(days=30, seconds=1))
    undo_of(fake, payer, fourth)


def test_refunds_by_staff_or_to_others_and_those_that_stripe_refused_do_not_count(
    fake: FakeBilling, payer: Payer, purchase: Purchase
) -> None:
    done = {"status": "done", "outcome": "re_1", "created_at": fake.now(), "finished_at": fake.now()}
    for _ in range(3):
        make(Refund, payout=payer.purchases[0], **done)
        make(Refund, approval=None, hold=make(CreditHold), **done)
        failed = {"payout": payer.purchases[0], "hold": make(CreditHold), **done, "status": "refused"}
        make(Refund, approval=None, **failed)
    assert undo_of(fake, payer, purchase).status == "pending"


@pytest.mark.django_db(transaction=True)
def test_purchases_undone_at_once_are_counted_one_after_the_other(fake: FakeBilling, payer: Payer) -> None:
    bought = [buy(payer, new_pack()) for _ in range(5)]
    outcomes = at_once([partial(undo_of, fake, payer, purchase) for purchase in bought])
    assert sum(isinstance(outcome, UndoRefused) for outcome in outcomes) == 2
    assert Refund.objects.count() == CreditAccount.objects.get().open_holds == 3


def test_a_part_that_is_disputed_frees_nothing_of_what_is_being_refunded(
    fake: FakeBilling, payer: Payer, purchase: Purchase
) -> None:
    (payout,) = payer.purchases
    undo_of(fake, payer, purchase)
    fake.dispute(payout.stripe_payment_intent_id, payout.charged_minor - 1)
    process(fake)
    assert CreditHold.objects.get().status == "HELD"
    assert balance_of(payer.user).available <= 0


@pytest.mark.parametrize("is_processed", [True, False])
def test_a_disputed_purchase_is_not_refunded_as_well(
    fake: FakeBilling, payer: Payer, purchase: Purchase, is_processed: bool
) -> None:
    (payout,) = payer.purchases
    if is_processed:
        fake.dispute(payout.stripe_payment_intent_id)
        process(fake)
        refused("returned", lambda: undo_of(fake, payer, purchase))
        return
    # The dispute is opened while the refund is on its way.
    refund = undo_of(fake, payer, purchase)
    fake.dispute(payout.stripe_payment_intent_id)
    with pytest.raises(BillingRefused):
        send(fake, refund)
    process(fake)
    account = CreditAccount.objects.get()
    assert (account.balance, account.held) == (0, 0)
    assert fake.refunded(payout.stripe_payment_intent_id) == 0


def test_events_before_the_response_take_the_credits_back_once(
    fake: FakeBilling, payer: Payer, purchase: Purchase
) -> None:
    refund = undo_of(fake, payer, purchase)
    with fake.away(), pytest.raises(BillingUnavailable):
        send(fake, refund)
    # Stripe has made the refund, but its response was lost.
    (payout,) = payer.purchases
    fake.create_refund(
        payment_intent_id=payout.stripe_payment_intent_id,
        amount_minor=payout.charged_minor,
        key=str(refund.pk),
    )
    process(fake)
    account = CreditAccount.objects.get()
    assert (account.balance, account.held) == (0, 0)
    assert refunds.send_pending(now=fake.now()) == 1
    process(fake)
    assert (CreditAccount.objects.get().balance, Clawback.objects.count()) == (0, 1)
    assert fake.refunded(payout.stripe_payment_intent_id) == payout.charged_minor


def test_if_stripe_refuses_the_refund_the_credits_are_free_again(
    fake: FakeBilling, payer: Payer, purchase: Purchase
) -> None:
    (payout,) = payer.purchases
    refund = undo_of(fake, payer, purchase)
    assert undo.release_forgotten(now=fake.now() + timedelta(days=9)) == 0
    fake.refund(payout.stripe_payment_intent_id, 1)
    with pytest.raises(BillingRefused):
        send(fake, refund)
    refund.refresh_from_db()
    assert refund.status == "refused"
    assert balance_of(payer.user).available == payout.credits
    process(fake)
    refused("returned", lambda: undo_of(fake, payer, purchase))


def test_credits_of_a_refund_that_returned_nothing_are_free_after_two_days(
    fake: FakeBilling, payer: Payer, purchase: Purchase
) -> None:
    refund = undo_of(fake, payer, purchase)
    Refund.objects.update(status="done", outcome="re_1", finished_at=fake.now())
    days = timedelta(days=2)
    assert undo.release_forgotten(now=fake.now() + days) == 0
    # The task of each minute releases it.
    Refund.objects.update(finished_at=clock.now() - days - timedelta(seconds=1))
    resume_operations()
    assert balance_of(payer.user).available == Payout.objects.get(refunds=refund).credits


def test_an_undo_is_offered_only_where_it_would_be_made(
    fake: FakeBilling, payer: Payer, purchase: Purchase
) -> None:
    def is_offered(after: timedelta = timedelta(0)) -> bool:
        return undo.is_undoable(purchase, Payout.objects.get(), now=fake.now() + after)

    (payout,) = payer.purchases
    assert is_offered()
    assert not is_offered(timedelta(hours=1))
    entries.grant(
        user=payer.user, credits=payout.credits, source=EntrySource.SURVEYS, key=secrets.token_hex(8)
    )
    assert is_offered()
    fake.dispute(payout.stripe_payment_intent_id, 1)
    process(fake)
    assert not is_offered()


def test_an_account_is_not_deleted_while_an_undone_purchase_waits(
    fake: FakeBilling, payer: Payer, purchase: Purchase
) -> None:
    refund = undo_of(fake, payer, purchase)
    assert deletion.reason_to_wait(payer.user) == "a change at Stripe is in progress"
    send(fake, refund)
    process(fake)
    assert deletion.reason_to_wait(payer.user) == "a customer is left at Stripe"
