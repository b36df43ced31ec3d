"""What staff do to invoices and subscriptions at Stripe's dashboard: every cent pays out or is found, once."""

import random
import secrets
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from devstack.ports import free_port
from payments.errors import BillingRefused, BillingUnavailable
from payments.models import PayoutRate, Refund, StripeEvent
from payments.services import refunds, standing
from payments.services.reconciliation import repairs
from payments.services.reconciliation.findings import Rule
from payments.stripe import set_billing_client
from rewards.queries import current_rewards
from tests.database import rewrite
from tests.payments.dashboard import Clerk
from tests.payments.faults import fault_injection
from tests.payments.payers import Payer
from tests.payments.reconciling import findings
from tests.payments.stripe_accounts import DoubleAccount
from tests.payments.webhook_events import process_all_events
from tests.staff import member

pytestmark = pytest.mark.django_db
DAY = 86_400
HOUR = 3_600


def _item(payer: Payer) -> str:
    return payer.subscription.stripe_item_id


def _id(payer: Payer) -> str:
    return payer.subscription.stripe_subscription_id


def _renew(double: DoubleAccount, payer: Payer) -> None:
    end = payer.subscription.current_period_end
    double.controls.advance_to(int(end.timestamp()) + 2 * HOUR)
    process_all_events(double)


def _findings(double: DoubleAccount) -> list[dict[str, Any]]:
    assert not StripeEvent.objects.exclude(status="processed").exists()
    return findings(double)


def _rules(double: DoubleAccount) -> list[object]:
    return [finding["rule"] for finding in _findings(double)]


def _next_cost(double: DoubleAccount, payer: Payer) -> int | None:
    return standing.report(user=payer.user, now=double.now()).next_minor


class TestInvoices:
    def test_the_period_is_found_on_the_second_page_of_lines(
        self, double: DoubleAccount, running: Payer, clerk: Clerk, amount: int, rates: dict[str, int]
    ) -> None:
        for number in range(5):
            clerk.change(_id(running), {"id": _item(running), "quantity": 2 + number % 2})
        clerk.change(_id(running), {"id": _item(running), "quantity": 1})
        promised = _next_cost(double, running)
        _renew(double, running)
        invoice = double.v1.invoices.retrieve(running.payout.stripe_invoice_id)
        assert (invoice.lines.has_more, len(running.payouts)) == (True, 2)
        assert invoice.amount_paid == promised == running.payout.amount_minor
        assert running.payout.period_start == running.payouts[0].period_end
        assert running.payout.credits == invoice.amount_paid * rates["usd"] // 100
        assert _rules(double) == []

    def test_a_line_of_our_product_is_paid_out_with_the_month_and_an_amount_alone_is_not(
        self, double: DoubleAccount, running: Payer, clerk: Clerk, amount: int, settings: Any
    ) -> None:
        clerk.add_line(running, 900)
        clerk.add_line(running, 700, product=settings.STRIPE_PRODUCT_ID)
        assert _next_cost(double, running) == amount + 1_600
        _renew(double, running)
        assert (running.payout.amount_minor, running.payout.other_minor) == (amount + 700, 900)
        assert double.v1.charges.list().data[0].amount == amount + 1_600
        assert _rules(double) == []


def test_a_payment_for_less_than_a_credit_is_found(double: DoubleAccount, payer: Payer, clerk: Clerk) -> None:
    rewrite(PayoutRate.objects, credits_per_major_unit=1)
    cents = random.randint(50, 99)
    clerk.subscribe(payer, cents)
    process_all_events(double)
    (finding,) = _findings(double)
    assert (finding["rule"], finding["wanted"]) == (Rule.INVOICE_WITHOUT_PAYOUT, f"{cents} usd paid by card")
    assert payer.payouts == []


def test_a_payment_for_our_product_in_a_month_of_another_is_found(
    double: DoubleAccount, payer: Payer, clerk: Clerk, amount: int, settings: Any
) -> None:
    hats = clerk.subscribe(payer, 900, product=f"hats-{secrets.token_hex(4)}")
    clerk.add_line(payer, amount, subscription=hats, product=settings.STRIPE_PRODUCT_ID)
    end = double.v1.subscriptions.retrieve(hats)["items"].data[0].current_period_end
    double.controls.advance_to(end + 2 * HOUR)
    process_all_events(double)
    (finding,) = _findings(double)
    assert (finding["rule"], finding["wanted"]) == (
        Rule.INVOICE_WITHOUT_PAYOUT,
        f"{amount} usd paid by card",
    )
    assert payer.payouts == []


def test_a_pause_that_ends_before_the_renewal_promises_what_it_charges(
    double: DoubleAccount, running: Payer, amount: int
) -> None:
    resumes_at = int(running.subscription.current_period_end.timestamp()) - DAY
    pause = {"behavior": "void", "resumes_at": resumes_at}
    double.v1.subscriptions.update(_id(running), {"pause_collection": pause})
    process_all_events(double)
    assert _next_cost(double, running) == amount
    _renew(double, running)
    assert [payout.amount_minor for payout in running.payouts] == [amount, amount]


class TestSeveralPayments:
    @pytest.fixture
    def part_paid(self, double: DoubleAccount, running: Payer, amount: int) -> str:
        """Return the open invoice of a month, of which a part was paid."""
        (card,) = double.v1.payment_methods.list({"customer": running.customer.stripe_customer_id}).data
        double.decline_from_now(card.id, "insufficient_funds")
        _renew(double, running)
        double.decline_from_now(card.id, None)
        (invoice,) = double.v1.invoices.list({"status": "open"}).data
        double.controls.pay_invoice_part(invoice.id, amount // 3)
        return str(invoice.id)

    @pytest.fixture
    def payments(self, double: DoubleAccount, part_paid: str) -> list[str]:
        """Return the payments of a month that was paid in two parts, the smaller one first."""
        double.v1.invoices.pay(part_paid)
        process_all_events(double)
        rows = double.v1.invoice_payments.list({"invoice": part_paid, "status": "paid"}).data
        return [str(row.payment.payment_intent) for row in sorted(rows, key=lambda row: row.amount_paid)]

    @pytest.mark.parametrize("ending", ["open", "void", "uncollectible"])
    def test_a_part_that_was_collected_is_found_until_the_rest_is(
        self, double: DoubleAccount, running: Payer, part_paid: str, ending: str, amount: int
    ) -> None:
        if ending == "void":
            double.v1.invoices.void_invoice(part_paid)
        if ending == "uncollectible":
            double.v1.invoices.mark_uncollectible(part_paid)
        process_all_events(double)

        (finding,) = _findings(double)

        assert (finding["rule"], finding["ids"]["invoice"]) == (Rule.INVOICE_WITHOUT_PAYOUT, part_paid)
        assert f"{amount // 3} usd" in finding["wanted"]
        if ending == "open":
            double.v1.invoices.pay(part_paid)
            process_all_events(double)
            assert _rules(double) == []
            assert running.payout.amount_minor == amount

    def test_a_part_paid_by_another_services_customer_is_not_a_finding(
        self, double: DoubleAccount, running: Payer, settings: Any
    ) -> None:
        foreign = double.v1.customers.create({"metadata": {"address": "0x1"}}).id
        double.capture(foreign)
        (card,) = double.v1.payment_methods.list({"customer": foreign}).data
        double.v1.customers.update(foreign, {"invoice_settings": {"default_payment_method": card.id}})
        double.decline_from_now(card.id, "insufficient_funds")
        double.controls.create_invoice(foreign, 900, product=settings.STRIPE_PRODUCT_ID)
        double.decline_from_now(card.id, None)
        (invoice,) = double.v1.invoices.list({"status": "open"}).data
        assert double.controls.pay_invoice_part(invoice.id, 300)["amount_paid"] == 300
        assert _rules(double) == []

    def test_a_free_month_beside_another_product_is_found_once_the_other_is_paid(
        self, double: DoubleAccount, payer: Payer, clerk: Clerk, amount: int
    ) -> None:
        process_all_events(double)
        (card,) = double.v1.payment_methods.list({"customer": payer.customer.stripe_customer_id}).data
        double.decline_from_now(card.id, "insufficient_funds")
        hats = {"price_data": clerk.price(amount, product=f"hats-{secrets.token_hex(4)}")}
        clerk.subscribe_to(payer, hats, {"price_data": clerk.price(0)})
        double.decline_from_now(card.id, None)
        (invoice,) = double.v1.invoices.list({"status": "open"}).data
        assert double.controls.pay_invoice_part(invoice.id, amount // 3)["amount_paid"] == amount // 3
        process_all_events(double)
        assert _findings(double) == []
        assert double.v1.invoices.pay(invoice.id).amount_paid == amount
        process_all_events(double)
        (finding,) = _findings(double)
        assert (finding["rule"], finding["wanted"]) == (Rule.INVOICE_WITHOUT_PAYOUT, "paid by card")
        assert payer.payouts == []

    def test_a_refund_of_any_payment_takes_its_part_back(
        self, double: DoubleAccount, running: Payer, payments: list[str], amount: int
    ) -> None:
        payout = running.payout
        assert (payout.amount_minor, set(payout.payment_ids())) == (amount, set(payments))
        first, second = random.sample(payments, 2)
        double.refund(first)
        process_all_events(double)
        returned = double.v1.refunds.list().data[0].amount
        assert payout.credits_taken_back() == payout.credits * returned // amount
        assert running.quota().total == payout.credits - payout.credits_taken_back()
        report = standing.report(user=running.user, now=double.now())
        assert report.paid_minor == amount - returned
        assert report.next_step == "nothing"
        double.dispute(second)
        # Its webhook is lost.
        assert repairs.claw_back_missed_money(now=double.now()) == 1
        assert payout.credits_taken_back() == payout.credits
        assert standing.report(user=running.user, now=double.now()).next_step == "disputed"
        assert _rules(double) == []

    def test_staff_refund_the_newest_payments_first_until_the_amount_is_reached(
        self, double: DoubleAccount, running: Payer, payments: list[str], amount: int, settings: Any
    ) -> None:
        smaller, larger = payments
        first, newest = running.payout.payment_ids()
        paid = {smaller: amount // 3, larger: amount - amount // 3}
        wanted = paid[newest] + random.randint(1, paid[first] - 1)
        limits = dict.fromkeys(("actor", "person", "day", "ceiling", "ceiling_day"), amount)
        settings.APPROVAL_LIMITS = {**settings.APPROVAL_LIMITS, "refunds": limits}
        shown = refunds.preview_of(payout=running.payout, amount_minor=wanted, now=double.now())
        refunds.request(preview=shown, actor=member("support"), reason="unhappy", key=secrets.token_hex(8))
        refund_id = str(Refund.objects.get().pk)
        with fault_injection() as client:
            client.before["create_refund"] = _away_after(1)
            with pytest.raises(BillingUnavailable):
                refunds.send(refund_id=refund_id, now=double.now())
        for _ in range(2):
            done = refunds.send(refund_id=refund_id, now=double.now())
        made = {row.payment_intent: row.amount for row in double.v1.refunds.list().data}
        assert made == {newest: paid[newest], first: wanted - paid[newest]}
        assert (done.status, len(done.outcome.split())) == ("done", 2)
        process_all_events(double)
        payout = running.payout
        assert payout.credits_taken_back() == payout.credits * wanted // amount
        assert _rules(double) == []

    def test_a_dispute_that_is_reinstated_in_part_gives_that_part_back(
        self, double: DoubleAccount, running: Payer, amount: int
    ) -> None:
        payout = running.payout
        dispute = double.dispute(payout.stripe_payment_intent_id)
        back = 0
        for reinstated in (amount // 2, amount - amount // 2):
            double.controls.reinstate_funds(dispute, reinstated)
            process_all_events(double)
            back += reinstated
            assert payout.credits_taken_back() == payout.credits * (amount - back) // amount


def _away_after(number: int) -> Callable[[], None]:
    """Return a function that does nothing for this number of calls, and then fails as if Stripe were down."""
    left = iter(range(number))

    def act() -> None:
        if next(left, None) is None:
            raise BillingUnavailable("Stripe does not respond.", retry_after=5)

    return act


class TestPrices:
    def test_the_next_cost_is_the_next_invoice_whatever_was_changed(
        self, double: DoubleAccount, running: Payer, clerk: Clerk, amount: int
    ) -> None:
        changes: list[dict[str, Any]] = [
            {"items": [{"id": _item(running), "quantity": 3}]},
            {"items": [{"price_data": clerk.price(3_000)}]},
            {"items": [{"price_data": clerk.price(1_100, product="hats")}]},
            {"discounts": [{"coupon": clerk.coupon(random.randint(1, 90))}]},
        ]
        for change in changes:
            clerk.change(
                _id(running), proration_behavior=random.choice(["none", "create_prorations"]), **change
            )
            process_all_events(double)
            double.pass_time(DAY)
        promised = _next_cost(double, running)
        _renew(double, running)
        assert double.v1.charges.list().data[0].amount == promised
        assert _rules(double) == []

    @pytest.mark.parametrize(
        ("ended", "resumed"),
        [
            ({"cancel_at_period_end": True}, {"cancel_at_period_end": False}),
            ({"pause_collection": {"behavior": "void"}}, {"pause_collection": ""}),
        ],
    )
    def test_a_plan_that_a_clerk_has_resumed_has_a_next_cost_before_an_event_arrives(
        self,
        double: DoubleAccount,
        running: Payer,
        clerk: Clerk,
        amount: int,
        ended: dict[str, Any],
        resumed: dict[str, Any],
    ) -> None:
        clerk.change(_id(running), **ended)
        process_all_events(double)
        assert _next_cost(double, running) is None
        clerk.change(_id(running), **resumed)
        assert _next_cost(double, running) == amount
        _renew(double, running)
        assert double.v1.charges.list().data[0].amount == amount

    def test_an_upsert_leaves_one_item_of_ours_with_quantity_one(
        self, double: DoubleAccount, running: Payer, clerk: Clerk, amount: int
    ) -> None:
        hats = {"price_data": clerk.price(1_100, product="hats")}
        ours = {"price_data": clerk.price(amount)}
        tripled = {"id": _item(running), "quantity": 3}
        clerk.change(_id(running), tripled, ours, hats, proration_behavior="none")
        if random.random() < 0.5:
            process_all_events(double)
        row = running.upsert(amount)
        assert row.amount_minor == amount
        items = {
            item.price.product: (item.price.unit_amount, item.quantity) for item in clerk.items(_id(running))
        }
        assert sorted(items.values()) == sorted([(amount, 1), (1_100, 1)])
        assert len(clerk.items(_id(running))) == 2
        assert _next_cost(double, running) == amount + 1_100
        # Stripe may keep a quantity that is not named.
        sent = double.posts(f"/v1/subscriptions/{_id(running)}")[-1]
        assert sent.params["items"]["0"]["quantity"] == "1"

    def test_an_upsert_to_the_sum_of_several_leaves_one_with_quantity_one(
        self, double: DoubleAccount, running: Payer, clerk: Clerk
    ) -> None:
        half = random.randint(500, 5_000)
        doubled = {"id": _item(running), "price_data": clerk.price(half), "quantity": 2}
        clerk.change(_id(running), doubled, proration_behavior="none")
        running.upsert(2 * half)
        (item,) = clerk.items(_id(running))
        assert (item.price.unit_amount, item.quantity) == (2 * half, 1)

    @pytest.mark.usefixtures("impatient")
    def test_while_stripe_is_down_the_last_known_price_is_shown_with_its_time(
        self, double: DoubleAccount, running: Payer, amount: int, settings: Any
    ) -> None:
        def without_stripe() -> standing.SubscriptionReport:
            set_billing_client(None)
            settings.STRIPE_API_BASE = f"http://127.0.0.1:{free_port()}"
            result = standing.report(user=running.user, now=double.now())
            settings.STRIPE_API_BASE = double.server.url
            set_billing_client(None)
            return result

        never = without_stripe()
        assert (never.next_minor, never.previewed_at, never.paid_minor) == (None, None, amount)
        asked_at = double.now()
        known = standing.report(user=running.user, now=asked_at)
        assert (known.next_minor, known.previewed_at) == (amount, asked_at)
        double.pass_time(DAY)
        away = without_stripe()
        assert (away.next_minor, away.previewed_at, away.open_minor) == (amount, known.previewed_at, 0)
        assert away.next_step == "nothing"
        running.cancel(immediately=False)
        assert without_stripe().next_minor is None
        # The price that was previewed for other terms is not told.
        running.upsert(2 * amount)
        assert without_stripe().next_minor is None
        (card,) = double.v1.payment_methods.list({"customer": running.customer.stripe_customer_id}).data
        double.decline_from_now(card.id, "insufficient_funds")
        _renew(double, running)
        overdue = without_stripe()
        assert (overdue.subscription.status, overdue.open_minor, overdue.next_step) == (
            "past_due",
            None,
            "pay",
        )


class TestUnpaidMonths:
    def _settle(self, how: str, double: DoubleAccount, payer: Payer, clerk: Clerk) -> None:
        """Let the running month be refunded, disputed, or settled without a payment."""
        if how == "refunded":
            double.refund(payer.payout.stripe_payment_intent_id)
        elif how == "disputed":
            double.dispute(payer.payout.stripe_payment_intent_id)
        else:
            self._settle_next(how, double, payer, clerk)
        process_all_events(double)

    def _settle_next(self, how: str, double: DoubleAccount, payer: Payer, clerk: Clerk) -> None:
        end = int(payer.subscription.current_period_end.timestamp())
        customer = payer.customer.stripe_customer_id
        if how == "coupon":
            clerk.change(_id(payer), discounts=[{"coupon": clerk.coupon(100)}])
        elif how == "balance":
            double.v1.customers.update(customer, {"balance": -1_000_000})
        double.controls.advance_to(end + 60)
        (draft,) = double.v1.invoices.list({"customer": customer, "limit": 1}).data
        if how == "voided":
            double.v1.invoices.finalize_invoice(draft.id)
            double.v1.invoices.void_invoice(draft.id)
        elif how == "out of band":
            double.controls.pay_out_of_band(draft.id)
        double.controls.advance_to(end + 2 * HOUR)

    @pytest.mark.parametrize(
        ("how", "told", "settled"),
        [
            ("refunded", "refunded", "collected"),
            ("disputed", "disputed", "collected"),
            ("voided", "not-paid", "void"),
            ("coupon", "not-paid", "free"),
            ("out of band", "not-paid", "off-stripe"),
        ],
    )
    def test_the_report_notifies_the_owner_and_an_upsert_buys_a_month(
        self,
        double: DoubleAccount,
        running: Payer,
        clerk: Clerk,
        amount: int,
        how: str,
        told: str,
        settled: str,
    ) -> None:
        self._settle(how, double, running, clerk)
        report = standing.report(user=running.user, now=double.now())
        assert (report.subscription.status, report.next_step) == ("active", told)
        assert report.subscription.latest_invoice == settled
        assert not report.paid_minor
        if told == "not-paid":
            assert "no credits for the latest invoice" in report.subscription.outlook()
        expected = [Rule.INVOICE_WITHOUT_PAYOUT] if settled == "off-stripe" else []
        assert _rules(double) == expected
        charged = len([row for row in double.v1.charges.list().data if row.paid])

        bought = running.upsert(amount)
        process_all_events(double)
        again = standing.report(user=running.user, now=double.now())
        assert (again.subscription, again.next_step, again.paid_minor) == (bought, "nothing", amount)
        assert running.quota().total == running.payout.credits
        assert len([row for row in double.v1.charges.list().data if row.paid]) == charged + 1
        assert running.upsert(amount) == bought
        assert len([row for row in double.v1.charges.list().data if row.paid]) == charged + 1

    def test_a_month_paid_from_the_balance_is_reported_and_not_replaced(
        self, double: DoubleAccount, running: Payer, clerk: Clerk, amount: int
    ) -> None:
        self._settle("balance", double, running, clerk)
        report = standing.report(user=running.user, now=double.now())
        assert (report.subscription.latest_invoice, report.next_step, report.paid_minor) == (
            "balance",
            "nothing",
            None,
        )
        assert "covered by the customer's balance" in report.subscription.outlook()
        assert running.upsert(amount) == report.subscription
        assert len(double.v1.charges.list().data) == 1
        assert _rules(double) == [Rule.INVOICE_WITHOUT_PAYOUT]

    def test_a_month_that_a_lower_price_covers_keeps_the_subscriber_until_its_end_without_credits(
        self, double: DoubleAccount, payer: Payer, clerk: Clerk
    ) -> None:
        payer.upsert(5_000)
        process_all_events(double)
        gave = payer.balance
        lower = {"id": payer.subscription.stripe_item_id, "price_data": clerk.price(2_000)}
        clerk.change(_id(payer), lower, proration_behavior="create_prorations")
        double.controls.advance_to(int(payer.subscription.current_period_end.timestamp()) + 2 * HOUR)
        process_all_events(double)
        row = payer.subscription
        for now in (double.now(), row.current_period_end - timedelta(minutes=1)):
            report = standing.report(user=payer.user, now=now)
            assert (report.subscription.latest_invoice, report.next_step) == ("balance", "nothing")
            assert current_rewards(user=payer.user, now=now).is_subscriber
            assert (payer.quota(now).total, payer.quota(now).reset_date) == (
                0,
                int(row.current_period_end.timestamp()),
            )
        assert "covered by the customer's balance" in report.subscription.outlook()
        assert payer.balance == gave
        assert payer.upsert(2_000) == row
        assert len(double.v1.charges.list().data) == 1
        assert _rules(double) == []
        double.pass_time(32 * 86_400)
        process_all_events(double)
        # What is left of the balance pays a part of the next month, and the card the rest.
        assert 0 < payer.payout.amount_minor < 2_000
        assert _rules(double) == []

    def test_a_month_that_is_still_collected_is_not_bought_twice(
        self, double: DoubleAccount, running: Payer, amount: int
    ) -> None:
        end = int(running.subscription.current_period_end.timestamp())
        double.controls.advance_to(end + 60)
        process_all_events(double)
        assert standing.report(user=running.user, now=double.now()).next_step == "nothing"
        running.upsert(amount)
        double.controls.advance_to(end + 2 * HOUR)
        running.upsert(amount)  # It is collected, and its webhook is not here yet.
        process_all_events(double)
        assert [payout.amount_minor for payout in running.payouts] == [amount, amount]
        assert len(double.v1.charges.list().data) == 2


class TestPausesAndEnds:
    def test_a_paused_collection_rests_and_an_upsert_resumes_it(
        self, double: DoubleAccount, running: Payer, clerk: Clerk, amount: int
    ) -> None:
        behavior = random.choice(["void", "mark_uncollectible", "keep_as_draft"])
        clerk.change(_id(running), pause_collection={"behavior": behavior})
        process_all_events(double)
        report = standing.report(user=running.user, now=double.now())
        assert (report.subscription.status, report.subscription.is_resting) == ("active", True)
        assert (report.next_step, report.next_minor, report.paid_minor) == ("subscribe", None, amount)
        assert "rests" in report.subscription.outlook()
        if random.random() < 0.5:
            _renew(double, running)
        row = running.upsert(amount)
        assert not row.is_resting
        assert double.v1.subscriptions.retrieve(row.stripe_subscription_id).pause_collection is None
        _renew(double, running)
        assert standing.report(user=running.user, now=double.now()).paid_minor == amount
        assert running.payout.amount_minor == amount

    def test_an_end_at_a_date_is_reported_and_an_upsert_removes_it(
        self, double: DoubleAccount, running: Payer, clerk: Clerk, amount: int
    ) -> None:
        ends_at = int(running.subscription.current_period_end.timestamp()) + 10 * DAY
        clerk.change(_id(running), cancel_at=ends_at)
        process_all_events(double)
        row = running.subscription
        assert (row.cancels_at_period_end, row.cancels_at and int(row.cancels_at.timestamp())) == (
            False,
            ends_at,
        )
        assert row.outlook() == f"ends on {row.cancels_at:%Y-%m-%d}"
        running.upsert(amount)
        assert running.subscription.cancels_at is None
        assert double.v1.subscriptions.retrieve(_id(running)).cancel_at is None

    def test_a_scheduled_subscription_reports_the_possible_actions(
        self, double: DoubleAccount, running: Payer, amount: int
    ) -> None:
        schedule = double.v1.subscription_schedules.create({"from_subscription": _id(running)})
        for act in (partial(running.upsert, 2 * amount), partial(running.cancel, immediately=False)):
            with pytest.raises(BillingRefused) as refusal:
                act()
            assert refusal.value.members["reason"] == "scheduled-subscription"
            assert "immediately" in refusal.value.detail
        assert running.upsert(amount).status == "active"
        double.v1.subscription_schedules.release(schedule.id)
        assert running.upsert(2 * amount).amount_minor == 2 * amount
