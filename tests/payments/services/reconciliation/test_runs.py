"""Runs of the reconciliation: over the wire, repaired, one at a time, and stored."""

import secrets
from datetime import timedelta

import pytest
from django.db import connection

from credits.models import CreditEntry, ReconciliationRun
from payments.errors import BillingUnavailable, CardDeclined
from payments.models import Clawback, Customer, Payout, PayoutRate, Subscription
from payments.services import reconciliation
from payments.stripe import get_billing_client
from tests.database import erase, rewrite
from tests.factories import UserFactory
from tests.fakes.billing import FakeBilling
from tests.payments.faults import fault_injection, once
from tests.payments.payers import Payer
from tests.payments.rows import all_rows, final_rows
from tests.payments.stripe_accounts import DECLINES, DoubleAccount
from tests.payments.webhook_events import process_all_events, process_events
from tests.threads import at_once
from users.models import User

pytestmark = pytest.mark.django_db
HOUR, DAY = timedelta(hours=1), 86_400


def _rules(run: ReconciliationRun | None) -> list[str]:
    assert run is not None
    return [finding["rule"] for finding in run.findings]


@pytest.fixture
def subscriber(fake: FakeBilling, user: User, amount: int) -> Payer:
    """A user whose first month is paid out."""
    payer = Payer(fake, user).with_card()
    payer.upsert(amount)
    process_events(fake.events, now=fake.now())
    return payer


class TestOverTheWire:
    def test_months_of_the_real_flow_are_clean(
        self, double: DoubleAccount, payer: Payer, amount: int
    ) -> None:
        other = Payer(double, UserFactory.create()).with_card()
        payer.upsert(amount)
        other.upsert(amount + 100)
        process_all_events(double)
        double.refund(payer.payout.stripe_payment_intent_id, amount // 3)
        double.reinstate(double.dispute(other.payout.stripe_payment_intent_id))
        process_all_events(double)
        double.pass_time(35 * DAY)
        process_all_events(double)
        other.cancel(immediately=True)
        payer.upsert(2 * amount)
        process_all_events(double)
        assert len(payer.payouts) == len(other.payouts) == 2
        run = reconciliation.reconcile(now=double.now() + HOUR)
        assert _rules(run) == []
        assert run is not None
        assert (run.counts["customers"], run.counts["invoices"], run.counts["subscriptions"]) == (2, 4, 1)
        assert run.counts["payments refunded or disputed"] == 2

    def test_a_declined_card_and_an_expired_unpaid_subscription_are_not_differences(
        self, double: DoubleAccount, user: User, amount: int
    ) -> None:
        payer = Payer(double, user).with_card(DECLINES)
        with pytest.raises(CardDeclined):
            payer.upsert(amount)
        process_all_events(double)
        assert _rules(reconciliation.reconcile(now=double.now() + HOUR)) == []
        double.pass_time(25 * 3600)
        process_all_events(double)
        assert payer.subscription.status == "incomplete_expired"
        assert list(get_billing_client().live_subscriptions()) == []
        assert _rules(reconciliation.reconcile(now=double.now() + HOUR)) == []

    def test_another_deployments_customer_for_the_same_profile_is_not_a_difference(
        self, double: DoubleAccount, payer: Payer
    ) -> None:
        metadata = {"user": str(payer.user.pk + 1), "address": payer.user.profile_address or ""}
        made = double.v1.customers.create({"metadata": metadata})
        assert _rules(reconciliation.reconcile(now=double.now() + HOUR)) == []
        double.v1.customers.update(made.id, {"metadata": {"user": str(payer.user.pk)}})
        assert _rules(reconciliation.reconcile(now=double.now() + HOUR)) == ["customer-missing"]

    def test_lost_objects_are_found_and_repaired(
        self, double: DoubleAccount, payer: Payer, amount: int
    ) -> None:
        payer.upsert(amount)
        process_all_events(double)
        double.pass_time(32 * DAY)
        double.refund(payer.payout.stripe_payment_intent_id, amount // 4)
        run = reconciliation.reconcile(now=double.now() + HOUR)
        assert sorted(_rules(run)) == ["clawback-sum", "payout-missing", "subscription-differs"]
        repaired = reconciliation.reconcile(now=double.now() + HOUR, repair=True)
        assert _rules(repaired) == []
        assert repaired is not None
        assert repaired.counts["repaired"] == 2
        before = final_rows(), payer.balance
        assert len(payer.payouts) == 2
        process_all_events(double)
        assert (final_rows(), payer.balance) == before

    def test_more_than_a_page_is_read(self, double: DoubleAccount, rates: dict[str, int]) -> None:
        made = [double.v1.customers.create({"description": str(number)}).id for number in range(101)]
        users = [UserFactory.create() for _ in range(2)]
        for user, identifier in zip(users, (made[0], made[-1]), strict=True):
            Customer.objects.create(user=user, stripe_customer_id=identifier)
        assert _rules(reconciliation.reconcile(now=double.now() + HOUR)) == ["customer-differs"] * 2


class TestWhatIsNotMissedYet:
    def test_a_payment_of_just_now_may_be_on_its_way(
        self, fake: FakeBilling, user: User, amount: int
    ) -> None:
        payer = Payer(fake, user).with_card()
        payer.upsert(amount)
        for minutes, rules in ((15, []), (14, ["payout-missing"])):
            run = reconciliation.reconcile(now=fake.now() + timedelta(minutes=14, seconds=1), minutes=minutes)
            assert _rules(run) == rules

    def test_a_webhook_between_two_reads_leaves_no_difference(
        self, fake: FakeBilling, subscriber: Payer
    ) -> None:
        fake.refund(subscriber.payout.stripe_payment_intent_id)
        last_event = fake.events[-1]

        def second_read() -> None:
            if client.calls["customers"] == 2:
                assert not Clawback.objects.exists()
                process_events([last_event], now=fake.now())

        with fault_injection() as client:
            client.before["customers"] = second_read
            run = reconciliation.reconcile(now=fake.now() + HOUR)
        assert client.calls["customers"] == 2
        assert _rules(run) == []
        assert Clawback.objects.exists()

    def test_objects_created_between_two_reads_are_left_to_the_next_run(
        self, fake: FakeBilling, subscriber: Payer
    ) -> None:
        lost = fake.refund(subscriber.payout.stripe_payment_intent_id, 200)
        subscription_id = subscriber.subscription.stripe_subscription_id

        def second_read() -> None:
            if client.calls["customers"] == 2:
                fake.fail_refund(lost)
                fake.refund(subscriber.payout.stripe_payment_intent_id, 300)
                fake.cancel_subscription(subscription_id=subscription_id, key=secrets.token_hex(8))

        with fault_injection() as client:
            client.before["customers"] = second_read
            run = reconciliation.reconcile(now=fake.now() + HOUR)
        assert _rules(run) == ["clawback-sum"]
        assert run is not None
        # Known since the first look, last_event as the second one saw it.
        assert run.findings[0]["wanted"].startswith("300 refunded")
        assert sorted(_rules(reconciliation.reconcile(now=fake.now() + HOUR))) == [
            "clawback-sum",
            "subscription-differs",
        ]

    def test_an_amount_below_one_credit_is_reported_but_not_as_a_missing_payout(
        self, fake: FakeBilling, user: User
    ) -> None:
        rewrite(PayoutRate.objects.filter(currency="usd"), credits_per_major_unit=1)
        payer = Payer(fake, user).with_card()
        payer.upsert(99)
        process_events(fake.events, now=fake.now())
        assert not Payout.objects.exists()
        assert _rules(reconciliation.reconcile(now=fake.now() + HOUR)) == ["invoice-without-payout"]

    def test_an_invoice_before_the_window_is_not_compared(
        self, fake: FakeBilling, user: User, amount: int
    ) -> None:
        payer = Payer(fake, user).with_card()
        payer.upsert(amount)
        payer.cancel(immediately=True)
        fake.pass_time(10 * DAY)
        assert _rules(reconciliation.reconcile(now=fake.now(), days=11)) == ["payout-missing"]
        assert _rules(reconciliation.reconcile(now=fake.now(), days=9)) == []

    def test_a_payout_of_the_window_is_compared_even_if_its_invoice_is_older(
        self, fake: FakeBilling, user: User, amount: int
    ) -> None:
        payer = Payer(fake, user).with_card()
        payer.upsert(amount)
        payer.cancel(immediately=True)
        fake.pass_time(10 * DAY)
        process_events(fake.events, now=fake.now())
        fake.calls.clear()
        assert _rules(reconciliation.reconcile(now=fake.now(), days=9)) == []
        assert fake.calls["retrieve_invoice"] == 1

    def test_old_refunds_are_found_for_any_window(self, fake: FakeBilling, subscriber: Payer) -> None:
        subscriber.cancel(immediately=True)
        fake.refund(subscriber.payout.stripe_payment_intent_id)
        fake.pass_time(150 * DAY)
        assert _rules(reconciliation.reconcile(now=fake.now(), days=1)) == ["clawback-sum"]


class TestRepairing:
    def test_only_payouts_and_clawbacks_are_made_up_for(self, fake: FakeBilling, subscriber: Payer) -> None:
        Subscription.objects.update(amount_minor=1)
        before = all_rows()
        run = reconciliation.reconcile(now=fake.now() + HOUR, repair=True)
        assert _rules(run) == ["subscription-differs"]
        assert run is not None
        assert run.counts["repaired"] == 0
        assert all_rows() == before

    def test_a_payout_that_cannot_be_made_stays_a_finding(
        self, fake: FakeBilling, user: User, amount: int
    ) -> None:
        erase(PayoutRate.objects.filter(currency="usd"))
        payer = Payer(fake, user).with_card()
        payer.upsert(amount)
        run = reconciliation.reconcile(now=fake.now() + HOUR, repair=True)
        assert _rules(run) == ["payout-missing"]
        assert run is not None
        assert run.findings[0]["have"] == "no payout, because no rate is in force"
        assert not CreditEntry.objects.exists()

    def test_without_the_repair_option_nothing_is_changed(self, fake: FakeBilling, subscriber: Payer) -> None:
        fake.refund(subscriber.payout.stripe_payment_intent_id)
        before = all_rows()
        assert _rules(reconciliation.reconcile(now=fake.now() + HOUR)) == ["clawback-sum"]
        assert all_rows() == before


class TestRuns:
    def test_an_old_payout_is_compared_again_every_45_nights(
        self, fake: FakeBilling, subscriber: Payer
    ) -> None:
        payout = subscriber.payout
        rewrite(Payout.objects.filter(pk=payout.pk), amount_minor=payout.amount_minor + 1)
        fake.refund(payout.stripe_payment_intent_id)
        found = {}
        for days in range(200, 290):
            now = fake.now() + timedelta(days=days)
            found[now.toordinal() % 45] = _rules(reconciliation.reconcile(now=now))
        turn = payout.pk % 45
        assert sorted(found.pop(turn)) == ["clawback-sum", "payout-amount", "payout-credits"]
        assert set(map(tuple, found.values())) == {()}

    def test_an_aborted_run_stays_unfinished(self, fake: FakeBilling, subscriber: Payer) -> None:
        with fault_injection() as client:
            client.before["refunded_or_disputed_since"] = _away
            with pytest.raises(BillingUnavailable):
                reconciliation.reconcile(now=fake.now() + HOUR)
        run = ReconciliationRun.objects.get()
        assert (run.finished_at, run.findings) == (None, [])

    def test_no_request_is_sent_inside_a_transaction(self, fake: FakeBilling, subscriber: Payer) -> None:
        fake.refund(subscriber.payout.stripe_payment_intent_id)
        depth = len(connection.savepoint_ids)
        deeper: list[str] = []
        with fault_injection() as client:
            for method in ("customers", "live_subscriptions", "paid_invoices_since", "returned_money"):
                client.before[method] = lambda: deeper.extend(connection.savepoint_ids[depth:])
            reconciliation.reconcile(now=fake.now() + HOUR, repair=True)
        assert client.calls["returned_money"] >= 3
        assert deeper == []


@pytest.mark.django_db(transaction=True)
def test_two_concurrent_runs_are_one(fake: FakeBilling, subscriber: Payer) -> None:
    with fault_injection() as client:
        results: list[object] = []
        client.before["customers"] = once(
            lambda: results.extend(at_once([lambda: reconciliation.reconcile(now=fake.now() + HOUR)]))
        )
        run = reconciliation.reconcile(now=fake.now() + HOUR)
    assert results == [None]
    assert [row.pk for row in ReconciliationRun.objects.all()] == [run.pk if run else secrets.token_hex(4)]


def _away() -> None:
    raise BillingUnavailable("Stripe does not respond.", retry_after=5)
