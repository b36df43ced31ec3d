"""Random months are closed: they tie to the ledger, to Stripe, to the chain, and to each other."""

from datetime import timedelta

import pytest
from django.db import ProgrammingError, transaction

from accounting.models import Month, MonthSheet
from accounting.services.closing import digest_of
from tests.accounting.course import close_months
from tests.accounting.timeline import months, sheet
from tests.accounting.world import World
from tests.fakes.billing import FakeBilling

pytestmark = pytest.mark.django_db


def test_random_months_tie_to_ledger_stripe_chain_and_each_other(stripe: FakeBilling) -> None:
    assert len(close_months(World(stripe, 4), 5, moves=15)) == 5


def test_a_closed_month_never_changes_and_a_correction_falls_into_the_next(stripe: FakeBilling) -> None:
    world = World(stripe, 1)
    payer = world.payers[0]
    january, february, march = months(stripe.now(), 2)
    with world.dated():
        payer.upsert(1_000)
    world.deliver()
    world.jump_to(february + timedelta(hours=25))
    month = world.close(world.prepare(january))
    (before,) = sheet(month, "liability")

    for change in (
        lambda: Month.objects.filter(pk=month.pk).update(problems=["none"]),
        lambda: month.sheets.update(rows=[]),
        lambda: month.sheets.filter(place=0).delete(),
        lambda: MonthSheet.objects.create(month=month, name="x", place=99, columns=[], rows=[]),
    ):
        with pytest.raises(ProgrammingError), transaction.atomic():
            change()
    stripe.refund(payer.payout.stripe_payment_intent_id, 400)
    world.deliver()
    world.jump_to(march + timedelta(hours=25))
    later = world.prepare(february)

    assert digest_of(month) == month.digest
    (after,) = sheet(later, "liability")
    assert after["opening"] == before["closing"]
    (returned,) = sheet(later, "returns")
    assert returned["refunds"] == 400
