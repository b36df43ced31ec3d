"""A card network warns of fraud in a payment: staff are told once, until the money is returned."""

import secrets

import pytest

from payments.models import Payout, StripeEvent
from payments.queries import payment_counts
from payments.services.reconciliation.findings import Rule
from tests.payments.dashboard import Clerk
from tests.payments.payers import Payer
from tests.payments.reconciling import findings
from tests.payments.stripe_accounts import DoubleAccount
from tests.payments.webhook_events import process_all_events

pytestmark = pytest.mark.django_db


@pytest.fixture
def payment(double: DoubleAccount, payer: Payer, amount: int) -> str:
    """Return the payment of a month that is paid out."""
    payer.upsert(amount)
    process_all_events(double)
    return payer.payout.stripe_payment_intent_id


def _rules(double: DoubleAccount) -> list[object]:
    return [finding["rule"] for finding in findings(double)]


def _outcomes() -> set[str]:
    warnings = StripeEvent.objects.filter(type__startswith="radar", status=StripeEvent.Status.PROCESSED)
    return set(warnings.values_list("outcome", flat=True))


@pytest.mark.parametrize("ending", ["refunded", "disputed"])
def test_a_warning_is_a_finding_until_the_money_is_returned(
    double: DoubleAccount, payment: str, ending: str
) -> None:
    double.controls.warn_of_fraud(payment)
    process_all_events(double)
    assert _rules(double) == [Rule.FRAUD_WARNING]
    if ending == "refunded":
        double.refund(payment)
    else:
        double.dispute(payment)
    process_all_events(double)
    assert _rules(double) == []


def test_staff_are_notified_once_when_it_arrives(double: DoubleAccount, payer: Payer, payment: str) -> None:
    told = []
    for _ in range(2):
        double.controls.warn_of_fraud(payment)
        double.pass_time(60)
        process_all_events(double)
        told.append(payer.payout.fraud_warned_at)
        assert payment_counts().fraud_warnings == 1
    assert told[0] == told[1] is not None
    assert _outcomes() == {"applied"}
    double.refund(payment)
    process_all_events(double)
    assert payment_counts().fraud_warnings == 0


def test_a_warning_of_another_products_payment_is_not_ours(
    double: DoubleAccount, payer: Payer, payment: str
) -> None:
    hats = Clerk(double).subscribe(payer, 700, product=f"hats-{secrets.token_hex(4)}")
    (charge,) = double.v1.charges.list({"limit": 1}).data
    assert double.v1.subscriptions.retrieve(hats).status == "active"
    assert charge.payment_intent != payment
    double.controls.warn_of_fraud(charge.payment_intent)
    process_all_events(double)
    assert _outcomes() == {"not-ours"}
    assert _rules(double) == []
    assert not Payout.objects.exclude(fraud_warned_at=None).exists()
