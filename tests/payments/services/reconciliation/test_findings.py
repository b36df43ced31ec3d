"""Reconciliation: clean where all is well, and each difference found, alone."""

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest
from django.db.models import F

from credits.models import Allowance, CreditEntry, EntrySource, ReconciliationRun
from credits.services import entries
from payments.errors import CardDeclined
from payments.models import (
    BillingOperation,
    Clawback,
    Customer,
    Payout,
    PayoutRate,
    Refund,
    StripeEvent,
    Subscription,
)
from payments.services import purchases, reconciliation
from payments.services.purchases import Order
from payments.services.reconciliation.findings import Rule
from rewards.models import ExperienceEntry
from tests.database import rewrite, tamper
from tests.docs.pages import DOCS, code_spans, rows
from tests.factories import ApprovalRequestFactory, UserFactory
from tests.fakes.billing import FakeBilling
from tests.payments.faults import FaultInjector, fault_injection
from tests.payments.payers import Payer
from tests.payments.stripe_accounts import DECLINES
from tests.payments.webhook_events import process_events, receive_event
from users.models import User

pytestmark = pytest.mark.django_db
DAY = 86_400


@dataclass
class Scene:
    """Two months of a payer whose first month was partly refunded, another payer, and a fault injector."""

    fake: FakeBilling
    payer: Payer
    client: FaultInjector
    event_count: int = 0

    @property
    def now(self) -> datetime:
        """An hour later, when everything should have arrived."""
        return self.fake.now() + timedelta(hours=1)

    @property
    def first(self) -> Payout:
        """The payout of the first month."""
        return self.payer.payouts[0]

    def deliver(self) -> None:
        """Let the webhooks in that have not come yet."""
        bodies = self.fake.events[self.event_count :]
        self.event_count = len(self.fake.events)
        process_events(bodies, now=self.fake.now())

    def findings(self) -> list[dict[str, object]]:
        """Reconcile and return the findings."""
        run = reconciliation.reconcile(now=self.now)
        assert run is not None
        assert run.counts["findings"] == len(run.findings)
        return list(run.findings)


@pytest.fixture(scope="module")
def first_scene(fake_of_module: FakeBilling) -> Scene:
    """All is well; every test begins with these rows."""
    fake = fake_of_module
    payer = Payer(fake, UserFactory.create()).with_card()
    bystander = Payer(fake, UserFactory.create()).with_card()
    with fault_injection() as client:
        scene = Scene(fake, payer, client)
        for one in (payer, bystander):
            one.upsert(5_000 + secrets.randbelow(5_000))
        scene.deliver()
        fake.refund(payer.payout.stripe_payment_intent_id, 1_000)
        fake.pass_time(32 * DAY)
        fake.reinstate(fake.dispute(bystander.payout.stripe_payment_intent_id))
        bystander.cancel(immediately=False)
        scene.deliver()
        assert len(payer.payouts) == 2
        assert Clawback.objects.filter(payout=scene.first).exists()
    return scene


@pytest.fixture
def scene(first_scene: Scene, fake_of_test: FakeBilling) -> Iterator[Scene]:
    """All is well."""
    payer = Payer(fake_of_test, User.objects.get(pk=first_scene.payer.user.pk))
    with fault_injection() as client:
        yield Scene(fake_of_test, payer, client, first_scene.event_count)


def test_rows_written_by_webhooks_have_no_findings(scene: Scene) -> None:
    assert scene.findings() == []
    run = ReconciliationRun.objects.get()
    assert run.finished_at is not None
    assert run.counts == {
        "customers": 2,
        "subscriptions": 2,
        "invoices": 4,
        "payouts": 4,
        "payments refunded or disputed": 2,
        "allowances": 2,
        "findings": 0,
    }


def _lost_invoice(scene: Scene) -> None:
    scene.fake.pass_time(31 * DAY)
    scene.event_count = len(scene.fake.events)
    for user in (scene.payer.user, Customer.objects.exclude(user=scene.payer.user).get().user):
        payer = Payer(scene.fake, user)
        state = scene.fake.retrieve_subscription(subscription_id=payer.subscription.stripe_subscription_id)
        Subscription.objects.filter(user=user).update(
            status=state.status,
            ended_at=state.ended_at,
            current_period_start=state.current_period_start,
            current_period_end=state.current_period_end,
        )
        Allowance.objects.filter(user=user).update(renews=payer.subscription.renews())
    resets = scene.payer.subscription.current_period_end
    Allowance.objects.filter(user=scene.payer.user).update(resets_at=resets)


def _lost_refund(scene: Scene) -> None:
    scene.fake.refund(scene.payer.payout.stripe_payment_intent_id, 777)


def _lost_dispute(scene: Scene) -> None:
    scene.fake.dispute(scene.payer.payout.stripe_payment_intent_id, 777)


def _failed_refund(scene: Scene) -> None:
    refund = next(body for body in scene.fake.events if b"refund.created" in body)
    scene.fake.fail_refund(StripeEvent.objects.get(raw_body=refund).object_id)


def _wrong_credits(scene: Scene) -> None:
    rate = PayoutRate.objects.create(
        currency="usd", credits_per_major_unit=scene.first.rate.credits_per_major_unit + 1,
        valid_from=scene.now + timedelta(days=9),
    )  # fmt: skip
    rewrite(Payout.objects.filter(pk=scene.first.pk), rate=rate)


def _entry_of_another(scene: Scene) -> None:
    wrong = entries.grant(
        user=scene.payer.user,
        credits=scene.first.credits + 1,
        source=EntrySource.SUBSCRIBED_PAYOUT,
        key=secrets.token_hex(8),
    )
    old = scene.first.entry
    rewrite(Payout.objects.filter(pk=scene.first.pk), entry=wrong)
    tamper("DELETE FROM credits_entry WHERE id = %s", old.pk)


def _entry_gone(scene: Scene) -> None:
    tamper("DELETE FROM credits_entry WHERE id = %s", scene.first.entry_id)


def _stray_entry(scene: Scene) -> None:
    entries.grant(
        user=scene.payer.user, credits=5, source=EntrySource.SUBSCRIBED_PAYOUT, key=secrets.token_hex(8)
    )


def _clawback_entry(scene: Scene) -> None:
    entry = Clawback.objects.get(payout=scene.first).entry
    assert entry is not None
    tamper(
        "UPDATE credits_entry SET amount = amount - 1, balance_after = balance_after - 1 WHERE id = %s",
        entry.pk,
    )


def _clawback_added(scene: Scene) -> None:
    entry = entries.reverse(
        user=scene.payer.user, credits=3, source=EntrySource.PAYOUT_CLAWBACK, key=secrets.token_hex(8)
    )
    Clawback.objects.create(
        payout=scene.first, key=secrets.token_hex(8), credits=3, entry=entry, created_at=scene.now
    )


def _experience_stayed(scene: Scene) -> None:
    entry = ExperienceEntry.objects.filter(key__startswith="stripe:clawback:", track="SUBSCRIBER").earliest(
        "pk"
    )
    tamper("DELETE FROM rewards_experience WHERE id = %s", entry.pk)


def _allowance(scene: Scene) -> None:
    Allowance.objects.filter(user=scene.payer.user).update(credits=F("credits") + 1)


def _allowance_gone(scene: Scene) -> None:
    Allowance.objects.filter(user=scene.payer.user).delete()


def _allowance_of_nobody(scene: Scene) -> None:
    now = scene.now
    Allowance.objects.create(
        user=UserFactory.create(), credits=1, starts_at=now, ends_at=now, resets_at=now, renews=True
    )


def _two_live(scene: Scene) -> None:
    scene.fake.create_subscription(
        customer_id=scene.payer.customer.stripe_customer_id,
        amount_minor=900,
        currency="usd",
        cancels_at_period_end=False,
        key=secrets.token_hex(8),
    )
    scene.deliver()


def _out_of_band(scene: Scene) -> None:
    newcomer = Payer(scene.fake, UserFactory.create()).with_card(DECLINES)
    with pytest.raises(CardDeclined):
        newcomer.upsert(5_000)
    (state,) = scene.fake.list_subscriptions(customer_id=newcomer.customer.stripe_customer_id)
    scene.fake.pay_out_of_band(state.latest_invoice_id)
    scene.deliver()


def _unknown_payer(scene: Scene) -> None:
    made = scene.fake.create_customer(profile_address="", user_id="", key=secrets.token_hex(8))
    scene.fake.capture(made)
    scene.fake.has_payment_method(customer_id=made)
    scene.fake.create_subscription(
        customer_id=made,
        amount_minor=900,
        currency="usd",
        cancels_at_period_end=False,
        key=secrets.token_hex(8),
    )


def _fraud_warning(scene: Scene) -> None:
    scene.fake.fraud_warnings.append(scene.first.stripe_payment_intent_id)


def _unstored(scene: Scene) -> None:
    newcomer = Payer(scene.fake, UserFactory.create()).with_card(DECLINES)
    customer_id = newcomer.customer.stripe_customer_id
    scene.fake.has_payment_method(customer_id=customer_id)
    scene.fake.create_subscription(
        customer_id=customer_id,
        amount_minor=900,
        currency="usd",
        cancels_at_period_end=False,
        key=secrets.token_hex(8),
    )


def _lost_cancellation(scene: Scene) -> None:
    subscription_id = scene.payer.subscription.stripe_subscription_id
    scene.fake.cancel_subscription(subscription_id=subscription_id, key=secrets.token_hex(8))


def _other_profile(scene: Scene) -> None:
    scene.client.change(scene.payer.customer.stripe_customer_id, profile_address="0x" + secrets.token_hex(20))


def _other_users_number(scene: Scene) -> None:
    scene.client.change(scene.payer.customer.stripe_customer_id, user_id="0")


def _second_customer(scene: Scene) -> None:
    user = scene.payer.user
    scene.fake.create_customer(
        profile_address=user.profile_address or "", user_id=str(user.pk), key=secrets.token_hex(8)
    )


def _failed_event(scene: Scene) -> None:
    row = receive_event(scene.fake.events[0].replace(b"evt_", b"evt_x"), now=scene.fake.now())
    StripeEvent.objects.filter(pk=row.pk).update(status="failed", attempts=9, last_error="rate-missing: no")


def _forgotten_event(scene: Scene) -> None:
    receive_event(scene.fake.events[0].replace(b"evt_", b"evt_x"), now=scene.fake.now())


def _unfinished(scene: Scene) -> None:
    BillingOperation.objects.create(
        user=scene.payer.user, kind="update-subscription", parameters={}, created_at=scene.fake.now()
    )


def _forgotten_purchase(scene: Scene) -> None:
    purchases.store(
        customer=scene.payer.customer,
        order=Order(500, "usd"),
        key="",
        now=scene.fake.now() - timedelta(days=1, minutes=16),
    )


def _forgotten_refund(scene: Scene) -> None:
    Refund.objects.create(
        payout=scene.first,
        amount_minor=1,
        approval=ApprovalRequestFactory.create(),
        created_at=scene.fake.now() - timedelta(days=1, minutes=16),
    )


def _returned_by_the_bank(scene: Scene) -> None:
    Refund.objects.create(
        payout=scene.first,
        amount_minor=1,
        approval=ApprovalRequestFactory.create(),
        created_at=scene.fake.now(),
        finished_at=scene.fake.now(),
        status=Refund.Status.FAILED,
        outcome="re_1",
        last_error="re_1: lost_or_stolen_card",
    )


def _without_address(scene: Scene) -> None:
    Subscription.objects.filter(pk=scene.payer.subscription.pk).update(latest_invoice="address-missing")


def _invoice(**changes: object) -> Callable[[Scene], None]:
    return lambda scene: scene.client.change(scene.first.stripe_invoice_id, **changes)


def _subscription(**changes: object) -> Callable[[Scene], None]:
    return lambda scene: scene.client.change(scene.payer.subscription.stripe_subscription_id, **changes)


_LATER = datetime.fromisoformat("2031-01-01T00:00:00+00:00")
SEEDS: list[tuple[str, Rule, Callable[[Scene], None]]] = [
    ("a lost invoice", Rule.PAYOUT_MISSING, _lost_invoice),
    ("a month paid outside of Stripe", Rule.INVOICE_WITHOUT_PAYOUT, _out_of_band),
    ("a payer of nobody", Rule.PAYER_UNKNOWN, _unknown_payer),
    ("a warning of fraud", Rule.FRAUD_WARNING, _fraud_warning),
    ("no invoice", Rule.INVOICE_UNKNOWN, lambda scene: scene.client.hide(scene.first.stripe_invoice_id)),
    ("a void invoice", Rule.INVOICE_NOT_PAID, _invoice(status="void")),
    ("another amount", Rule.PAYOUT_AMOUNT, _invoice(collected_minor=1)),
    ("another currency", Rule.PAYOUT_CURRENCY, _invoice(currency="eur")),
    ("another customer", Rule.PAYOUT_CUSTOMER, _invoice(customer_id="cus_other")),
    ("another subscription", Rule.PAYOUT_CUSTOMER, _invoice(subscription_id="sub_other")),
    ("another beginning", Rule.PAYOUT_PERIOD, _invoice(period_start=_LATER)),
    ("another end", Rule.PAYOUT_PERIOD, _invoice(period_end=_LATER)),
    ("another payment", Rule.PAYOUT_PAYMENT, _invoice(payment_intent_id="pi_other")),
    ("another mode", Rule.LIVEMODE, _invoice(is_live=True)),
    ("another rate", Rule.PAYOUT_CREDITS, _wrong_credits),
    ("an entry of another amount", Rule.PAYOUT_ENTRY, _entry_of_another),
    ("no entry", Rule.PAYOUT_ENTRY, _entry_gone),
    ("a stray entry", Rule.ENTRY_WITHOUT_PAYOUT, _stray_entry),
    ("a lost refund", Rule.CLAWBACK_SUM, _lost_refund),
    ("a lost dispute", Rule.CLAWBACK_SUM, _lost_dispute),
    ("a refund that failed", Rule.CLAWBACK_SUM, _failed_refund),
    ("a clawback of nothing", Rule.CLAWBACK_SUM, _clawback_added),
    ("experience that stayed", Rule.CLAWBACK_SUM, _experience_stayed),
    ("a clawback's entry", Rule.CLAWBACK_ENTRY, _clawback_entry),
    ("another allowance", Rule.ALLOWANCE, _allowance),
    ("no allowance", Rule.ALLOWANCE, _allowance_gone),
    ("an allowance of nothing", Rule.ALLOWANCE, _allowance_of_nobody),
    ("two subscriptions", Rule.SUBSCRIPTIONS_TWO_LIVE, _two_live),
    ("an unstored subscription", Rule.SUBSCRIPTION_MISSING, _unstored),
    (
        "no subscription",
        Rule.SUBSCRIPTION_UNKNOWN,
        lambda scene: scene.client.hide(scene.payer.subscription.stripe_subscription_id),
    ),
    ("a lost cancellation", Rule.SUBSCRIPTION_DIFFERS, _lost_cancellation),
    ("another status", Rule.SUBSCRIPTION_DIFFERS, _subscription(status="past_due")),
    ("another sum", Rule.SUBSCRIPTION_DIFFERS, _subscription(amount_minor=1)),
    ("another period", Rule.SUBSCRIPTION_DIFFERS, _subscription(current_period_end=_LATER)),
    ("another flag", Rule.SUBSCRIPTION_DIFFERS, _subscription(cancels_at_period_end=True)),
    ("another item", Rule.SUBSCRIPTION_DIFFERS, _subscription(item_id="si_other")),
    (
        "no customer",
        Rule.CUSTOMER_UNKNOWN,
        lambda scene: scene.client.hide(scene.payer.customer.stripe_customer_id),
    ),
    ("another profile", Rule.CUSTOMER_DIFFERS, _other_profile),
    ("another user", Rule.CUSTOMER_DIFFERS, _other_users_number),
    ("a second customer", Rule.CUSTOMER_MISSING, _second_customer),
    (
        "a live customer",
        Rule.LIVEMODE,
        lambda scene: scene.client.change(scene.payer.customer.stripe_customer_id, is_live=True),
    ),
    ("a failed event", Rule.EVENT_FAILED, _failed_event),
    ("a forgotten event", Rule.EVENT_FAILED, _forgotten_event),
    ("an unfinished operation", Rule.OPERATION_UNFINISHED, _unfinished),
    ("a forgotten purchase", Rule.OPERATION_UNFINISHED, _forgotten_purchase),
    ("a forgotten refund", Rule.OPERATION_UNFINISHED, _forgotten_refund),
    ("a refund that the bank returned", Rule.REFUND_FAILED, _returned_by_the_bank),
    ("a renewal without an address", Rule.INVOICE_STUCK, _without_address),
]


@pytest.mark.parametrize(("rule", "seed"), [pytest.param(*rest, id=name) for name, *rest in SEEDS])
def test_a_difference_is_found_and_nothing_else(
    scene: Scene, rule: Rule, seed: Callable[[Scene], None]
) -> None:
    seed(scene)
    (finding,) = scene.findings()
    assert finding["rule"] == rule
    assert finding["have"] != finding["wanted"]
    assert all(isinstance(value, str) and value for value in finding["ids"].values())  # type: ignore[attr-defined]


def test_every_rule_has_a_difference_that_breaks_it() -> None:
    assert {rule for _, rule, _ in SEEDS} == set(Rule)


def test_the_runbook_has_a_step_for_every_rule() -> None:
    explained = {name for cells in rows(DOCS / "runbook.md") for name in code_spans(cells[0])}
    assert set(Rule.values) <= explained


def test_the_finding_of_a_lost_invoice_names_the_missing_payout(scene: Scene) -> None:
    _lost_invoice(scene)
    (finding,) = scene.findings()
    assert finding["have"] == f"no payout of {scene.first.credits} credits"


def test_a_finding_names_the_ids_it_is_about(scene: Scene) -> None:
    wanted = {
        "payment": scene.payer.payout.stripe_payment_intent_id,
        "invoice": scene.payer.payout.stripe_invoice_id,
    }
    _lost_refund(scene)
    (finding,) = scene.findings()
    assert finding["ids"] == wanted
    assert str(finding["have"]).startswith(f"0 of {scene.payer.payout.credits} credits taken back; ")
    assert str(finding["wanted"]).startswith("777 refunded, 0 disputed and 0 returned outside of Stripe of ")
    assert CreditEntry.objects.filter(source="PAYOUT_CLAWBACK").count() >= 1
