"""A short form of the months: what was collected is paid out or a finding, whatever a clerk did."""

import os
import random

import pytest

from devstack.services.stack import Services
from payments.models import PayoutRate
from tests.months.course import play
from tests.payments.stripe_accounts import DoubleAccount

_RATE = 1_000


@pytest.mark.django_db(transaction=True)
@pytest.mark.timeout(0)
def test_every_collected_cent_is_paid_out_or_a_finding(
    double: DoubleAccount, services: Services, rates: dict[str, int]
) -> None:
    PayoutRate.objects.filter(currency="usd").update(credits_per_major_unit=_RATE)
    seed = int(os.environ.get("MONTHS_SEED", random.randrange(2**32)))
    random.seed(seed)
    print(f"\nMONTHS_SEED={seed}")  # noqa: T201 (shown where it fails)

    people, months = map(int, os.environ.get("MONTHS", "5x1").split("x"))
    figures = play(double, services.stripe.directory, people=people, months=months, rate=_RATE, acting=2)

    assert figures["payouts"] >= people
