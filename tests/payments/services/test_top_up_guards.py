"""Automatic top-up buys for its own user alone, within its own limit, and leaves what others do alone."""

from dataclasses import replace
from datetime import timedelta

import pytest

from gateway.common.errors import InvalidRequest
from payments.models import AutoTopUp, CreditPack, Purchase
from payments.services import top_ups
from payments.services.top_ups import Terms
from tests.factories import UserFactory
from tests.payments.buying import buy, new_pack
from tests.payments.faults import fault_injection, killed_after, once
from tests.payments.payers import Payer
from tests.payments.stripe_accounts import DECLINES, VISA, DoubleAccount
from tests.payments.topping_up import AGAIN, PRICE, Consent, consent, pack, run
from tests.threads import at_once

__all__ = ["consent", "pack"]
pytestmark = pytest.mark.django_db


def _open_by_hand(payer: Payer, pack: CreditPack) -> Purchase:
    """Begin a purchase whose process dies before it is paid."""
    with killed_after("create_purchase"):
        buy(payer, pack)
    return Purchase.objects.get(top_up=None, status="open")


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("impatient")
def test_of_many_concurrent_consents_the_last_one_is_in_force(
    double: DoubleAccount, consent: Consent
) -> None:
    given = at_once([consent] * 8)
    assert all(isinstance(one, AutoTopUp) for one in given)
    assert AutoTopUp.objects.filter(withdrawn_at=None).count() == 1
    assert AutoTopUp.objects.count() == 8


def test_a_consent_that_was_withdrawn_keeps_its_time(
    double: DoubleAccount, payer: Payer, consent: Consent
) -> None:
    consent()
    first = double.now() - timedelta(days=2)
    top_ups.withdraw(user=payer.user, now=first)
    top_ups.withdraw(user=payer.user, now=first + timedelta(days=1))
    consent()
    assert list(AutoTopUp.objects.order_by("pk").values_list("withdrawn_at", flat=True)) == [first, None]


def test_purchases_of_others_and_manual_purchases_do_not_use_the_limit(
    double: DoubleAccount, payer: Payer, pack: CreditPack, consent: Consent
) -> None:
    other = Payer(double, UserFactory.create()).with_card()
    consent(by=other)
    assert run(double) == 1
    top_ups.withdraw(user=other.user, now=double.now())
    buy(payer, pack)
    consent(limit=PRICE)
    assert run(double, after=AGAIN) == 1
    assert Purchase.objects.filter(user=payer.user, top_up__isnull=False, status="paid").count() == 1


def test_the_limit_may_be_spent_whole_and_in_its_own_currency(
    double: DoubleAccount, payer: Payer, consent: Consent
) -> None:
    consent(limit=2 * PRICE)
    now = double.now().replace(day=1)
    assert [top_ups.run(now=now + number * AGAIN) for number in range(3)] == [1, 1, 0]
    euros = new_pack(amount=PRICE, bonus=0, currency="eur")
    consent(of=euros, limit=PRICE)
    assert [top_ups.run(now=now + number * AGAIN) for number in range(3, 5)] == [1, 0]


def test_a_failed_payment_does_not_use_the_limit(
    double: DoubleAccount, payer: Payer, consent: Consent
) -> None:
    consent(limit=PRICE)
    double.capture(payer.customer.stripe_customer_id, DECLINES)
    assert run(double) == 0
    assert Purchase.objects.get().status == "void"
    double.capture(payer.customer.stripe_customer_id, VISA)
    consent(limit=PRICE)
    assert run(double, after=AGAIN) == 1


def test_during_a_manual_purchase_no_top_up_is_bought_and_it_stays_unchanged(
    double: DoubleAccount,
    payer: Payer,
    pack: CreditPack,
    consent: Consent,
    caplog: pytest.LogCaptureFixture,
) -> None:
    by_hand = _open_by_hand(payer, pack)
    consent()
    for after in (timedelta(0), timedelta(minutes=5), AGAIN + timedelta(minutes=5)):
        assert run(double, after=after) == 0
    (left,) = Purchase.objects.all()
    assert (left.pk, left.status) == (by_hand.pk, "open")
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []
    assert AutoTopUp.objects.get().paused_at is None


def test_a_second_worker_leaves_a_purchase_in_progress_to_the_first(
    double: DoubleAccount, payer: Payer, consent: Consent
) -> None:
    consent()
    others: list[int] = []
    with fault_injection() as client:
        client.after["create_purchase"] = once(lambda: others.append(run(double)))
        assert run(double) == 1
        assert client.calls["pay_invoice"] == 1
    assert others == [0]


def test_a_consent_that_changed_between_choice_and_purchase_buys_nothing(
    double: DoubleAccount, payer: Payer, consent: Consent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row is chosen by one statement and claimed by another."""
    consent()
    due = list(top_ups._due(double.now()))
    top_ups.withdraw(user=payer.user, now=double.now())
    monkeypatch.setattr(top_ups, "_due", lambda now: due)
    assert run(double) == 0
    assert not Purchase.objects.exists()


def test_a_threshold_above_the_credits_of_the_pack_is_refused_with_the_most_that_fits(
    double: DoubleAccount, payer: Payer, pack: CreditPack, rates: dict[str, int]
) -> None:
    gives = PRICE * rates["usd"] // 100
    terms = Terms(gives + 1, pack.code, 10**6, "Buy this pack.")
    with pytest.raises(InvalidRequest) as refused:
        top_ups.consent(user=payer.user, terms=terms, now=double.now())
    (fault,) = refused.value.members["errors"]
    assert fault["pointer"] == "/threshold"
    assert f"{gives:,} credits" in fault["detail"]
    assert not AutoTopUp.objects.exists()
    fitting = replace(terms, threshold=gives)
    top_ups.consent(user=payer.user, terms=fitting, now=double.now())
    assert [run(double, after=AGAIN * number) for number in range(5)] == [1, 0, 0, 0, 0]
