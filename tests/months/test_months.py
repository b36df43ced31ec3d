"""A short form of the months: what was collected is paid out or a finding, whatever a clerk did."""

import os
import random
from datetime import UTC, datetime

import pytest

from devstack.services.stack import Services
from payments.models import PayoutRate
from tests.database import rewrite
from tests.months.course import Course, play
from tests.payments.stripe_accounts import DoubleAccount

_RATE = 1_000
_HALF_DAY = 43_200


@pytest.mark.django_db(transaction=True)
@pytest.mark.timeout(0)
def test_every_collected_cent_is_paid_out_or_a_finding(
    double: DoubleAccount, services: Services, rates: dict[str, int]
) -> None:
    rewrite(PayoutRate.objects.filter(currency="usd"), credits_per_major_unit=_RATE)
    seed = int(os.environ.get("MONTHS_SEED", random.randrange(2**32)))
    random.seed(seed)
    print(f"\nMONTHS_SEED={seed}")  # noqa: T201 (shown where it fails)

    people, months = map(int, os.environ.get("MONTHS", "5x1").split("x"))
    figures = play(double, services.stripe.directory, people=people, months=months, rate=_RATE, acting=2)

    assert figures["payouts"] >= people


@pytest.mark.django_db(transaction=True)
def test_an_old_invoice_whose_last_retry_succeeds_just_after_a_comparison_is_paid_out(
    double: DoubleAccount, services: Services, rates: dict[str, int]
) -> None:
    rewrite(PayoutRate.objects.filter(currency="usd"), credits_per_major_unit=_RATE)
    double.controls.set_clock(int(datetime(2031, 6, 1, tzinfo=UTC).timestamp()))
    months = Course(double, services.stripe.directory, people=1, rate=_RATE, days=range(16, 17), arriving=0)
    months.begin()
    (person,) = months.people
    (card,) = double.v1.payment_methods.list({"customer": person.payer.customer.stripe_customer_id}).data
    double.decline_from_now(card.id, "insufficient_funds")

    # The renewal of day 30 is retried on the days 33, 38 and 45; the months end on the days 44.5 and 76.5.
    double.pass_time(25 * _HALF_DAY)
    months.month(acting=0)
    double.decline_from_now(card.id, None)
    months.month(acting=0)

    assert len(person.payer.payouts) >= 2
