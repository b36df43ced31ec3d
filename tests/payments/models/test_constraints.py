"""What the database itself refuses, whatever code may ask of it."""

import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.db.models import F

from credits.models import ReconciliationRun
from payments.models import (
    BillingOperation,
    Clawback,
    Customer,
    Payout,
    PayoutRate,
    StripeEvent,
    Subscription,
)
from payments.services import reconciliation
from tests.database import rewrite
from tests.factories import UserFactory, make
from tests.fakes.billing import FakeBilling
from tests.payments.payers import Payer
from tests.payments.rows import all_rows
from tests.payments.webhook_events import process_events
from users.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def first_payer(fake_of_module: FakeBilling) -> Payer:
    """A user of whose rows there is one of each kind."""
    fake, amount = fake_of_module, random.randint(500, 50_000)
    payer = Payer(fake, UserFactory.create()).with_card()
    payer.upsert(amount)
    process_events(fake.events, now=fake.now())
    fake.refund(payer.payout.stripe_payment_intent_id, amount // 2)
    process_events(fake.events, now=fake.now())
    reconciliation.reconcile(now=fake.now())
    return payer


@pytest.fixture
def payer(first_payer: Payer, fake_of_test: FakeBilling) -> Payer:
    return Payer(fake_of_test, User.objects.get(pk=first_payer.user.pk))


def _again(model: type[Any], **changes: Any) -> None:
    """Insert a copy of a row of the model, with these changes."""
    values = model._default_manager.order_by("pk").values().first()
    model._default_manager.create(**{**values, "id": None, **changes})


def _pending(payer: Payer) -> None:
    for kind in ("create-customer", "cancel-subscription"):
        make(BillingOperation, user=payer.user, kind=kind)


def _entry_of_another(payer: Payer) -> None:
    _again(Payout, stripe_invoice_id="in_other")


REFUSED: list[tuple[str, Callable[[Payer], object]]] = [
    ("payout_positive", lambda _: rewrite(Payout.objects, credits=0)),
    ("payout_positive", lambda _: rewrite(Payout.objects, amount_minor=-1)),
    ("payout_period_in_order", lambda _: rewrite(Payout.objects, period_end=F("period_start"))),
    ("payments_payout_stripe_invoice_id", lambda _: _again(Payout, entry_id=Clawback.objects.get().entry_id)),
    ("payments_payout_entry_id", _entry_of_another),
    ("clawback_entry_when_moved", lambda _: rewrite(Clawback.objects, entry=None)),
    ("clawback_entry_when_moved", lambda _: rewrite(Clawback.objects, credits=0)),
    ("payments_clawback_key", lambda _: _again(Clawback, entry_id=None, credits=0)),
    ("billingoperation_one_pending_per_user", _pending),
    ("payments_subscription_stripe_subscription_id", lambda _: _again(Subscription, status="canceled")),
    ("subscription_amount_not_negative", lambda _: Subscription.objects.update(amount_minor=-1)),
    ("customer_one_not_deleted_per_user", lambda _: _again(Customer, stripe_customer_id="cus_other")),
    (
        "payments_customer_stripe_customer_id",
        lambda _: _again(Customer, user_id=UserFactory.create().pk),
    ),
    ("payments_stripeevent_stripe_event_id", lambda _: _again(StripeEvent)),
    ("stripeevent_processed_has_time", lambda _: StripeEvent.objects.update(processed_at=None)),
    ("stripeevent_processed_has_time", lambda _: StripeEvent.objects.update(status="failed")),
    ("payoutrate_one_per_moment", lambda _: _again(PayoutRate)),
    ("payoutrate_credits_positive", lambda _: rewrite(PayoutRate.objects, credits_per_major_unit=0)),
    (
        "credits_reconciliationrun_times_in_order",
        lambda _: ReconciliationRun.objects.update(finished_at=F("started_at") - timedelta(seconds=1)),
    ),
]


@pytest.mark.parametrize(
    ("constraint", "act"),
    [pytest.param(*case, id=f"{case[0]}-{number}") for number, case in enumerate(REFUSED)],
)
def test_the_database_refuses(payer: Payer, constraint: str, act: Callable[[Payer], object]) -> None:
    before = all_rows()
    with pytest.raises(IntegrityError) as refusal, transaction.atomic():
        act(payer)
    assert constraint in str(refusal.value)
    assert all_rows() == before


def test_an_ended_subscription_allows_another_one(payer: Payer) -> None:
    Subscription.objects.update(status="canceled")
    _again(Subscription, stripe_subscription_id="sub_other", status="active")
    assert Subscription.objects.live().get().stripe_subscription_id == "sub_other"


def test_a_finished_operation_allows_another_one(payer: Payer) -> None:
    for status in ("done", "refused", "pending"):
        BillingOperation.objects.create(
            user=payer.user,
            kind="cancel-subscription",
            parameters={},
            status=status,
            created_at=payer.account.now(),
        )
    assert BillingOperation.objects.filter(status="pending").count() == 1
