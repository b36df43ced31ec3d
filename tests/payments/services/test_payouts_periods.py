"""Periods follow the day and second on which a subscription began, never the calendar month."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone

from credits.queries import RENEWAL_GRACE
from payments.services import synchronisation
from payments.services.reconciliation import repairs
from tests.factories import UserFactory
from tests.payments.payers import Payer
from tests.payments.stripe_accounts import DoubleAccount
from tests.payments.webhook_events import process_all_events, process_events

pytestmark = pytest.mark.django_db
HOUR, DAY = 3_600, 86_400
_MONTHS = 3  # beyond February and a month of 30 days


def _beginnings(year: int) -> list[datetime]:
    last_second_of_january = datetime(year, 1, 31, 23, 59, 59, tzinfo=ZoneInfo("Pacific/Niue"))
    return [datetime(year, 1, day, 11, 30, day, tzinfo=UTC) for day in (29, 30, 31)] + [
        last_second_of_january
    ]


@pytest.fixture
def _easternmost_zone() -> Iterator[None]:
    """Set a time zone whose day begins first; it must not matter."""
    with timezone.override(ZoneInfo("Pacific/Kiritimati")):
        yield


def _subscribed(double: DoubleAccount, beginnings: list[datetime]) -> list[Payer]:
    payers = []
    double.controls.set_clock(int(beginnings[0].timestamp()) - HOUR)
    for place, beginning in enumerate(beginnings):
        payer = Payer(double, UserFactory.create()).with_card()
        double.controls.advance_to(int(beginning.timestamp()))
        payer.upsert(1_000 + place)
        payers.append(payer)
    return payers


@pytest.mark.usefixtures("_easternmost_zone")
@pytest.mark.parametrize("year", [2027, 2028], ids=["February of 28 days", "February of 29 days"])
def test_months_of_any_length_are_paid_out_month_by_month(
    double: DoubleAccount, rates: dict[str, int], year: int
) -> None:
    beginnings = _beginnings(year)
    payers = _subscribed(double, beginnings)
    process_all_events(double)
    processed = {event["id"] for event in double.webhooks("invoice.paid")}
    for month in range(_MONTHS):
        last = max(payer.subscription.current_period_end for payer in payers)
        double.controls.advance_to(int(last.timestamp()) + 2 * HOUR)
        paid = [event for event in double.webhooks("invoice.paid") if event["id"] not in processed]
        process_events([json.dumps(event).encode() for event in paid], now=double.now())
        processed |= {event["id"] for event in paid}
        assert [len(payer.payouts) for payer in payers] == [month + 2] * len(payers)
    assert repairs.pay_out_missed_invoices(now=double.now()) == 0
    for place, payer in enumerate(payers):
        _assert_gapless(double, payer, beginnings[place], 1_000 + place, rates["usd"])


def _assert_gapless(double: DoubleAccount, payer: Payer, beginning: datetime, amount: int, rate: int) -> None:
    payouts = payer.payouts
    assert len(payouts) == _MONTHS + 1
    assert abs(payouts[0].period_start - beginning) <= timedelta(seconds=2)
    anchor = payouts[0].period_start
    for number, payout in enumerate(payouts):
        assert payout.period_start == _months_after(anchor, number)
        assert payout.period_end == _months_after(anchor, number + 1)
        assert (payout.amount_minor, payout.credits) == (amount, amount * rate // 100)
    invoices = double.v1.invoices.list(
        {"subscription": payer.subscription.stripe_subscription_id, "limit": 100}
    ).data
    lines = sorted(
        (line.period.start, line.period.end) for invoice in invoices for line in invoice.lines.data
    )
    assert lines == [(payout.period_start.timestamp(), payout.period_end.timestamp()) for payout in payouts]
    quota = payer.quota()
    assert (quota.total, quota.reset_date) == (payouts[-1].credits, payouts[-1].period_end.timestamp())
    assert payer.balance == sum(payout.credits for payout in payouts)


def _months_after(anchor: datetime, number: int) -> datetime:
    """Return the same day and second this number of months later, or the month's last day where it has none."""
    years, month = divmod(anchor.month - 1 + number, 12)
    for day in range(anchor.day, 27, -1):
        try:
            return anchor.replace(year=anchor.year + years, month=month + 1, day=day)
        except ValueError:
            continue
    return anchor.replace(year=anchor.year + years, month=month + 1)


def _seconds_to(double: DoubleAccount, moment: datetime) -> int:
    return int((moment - double.now()).total_seconds())


def test_between_renewal_and_collection_the_old_credits_count_until_the_new_end(
    double: DoubleAccount, running: Payer, amount: int
) -> None:
    running.upsert(2 * amount)
    first, end = running.payout, running.payout.period_end
    double.pass_time(_seconds_to(double, end) + HOUR // 2)
    assert running.quota().reset_date == int(end.timestamp())
    synchronisation.sync_subscription(
        subscription_id=running.subscription.stripe_subscription_id, now=double.now()
    )
    new_end = running.subscription.current_period_end
    assert new_end > end
    quota = running.quota()
    assert (quota.total, quota.reset_date) == (first.credits, int(new_end.timestamp()))
    double.pass_time(HOUR)
    process_all_events(double)
    quota = running.quota()
    assert (quota.total, quota.reset_date) == (running.payout.credits, int(new_end.timestamp()))
    assert quota.available == first.credits + running.payout.credits
    assert abs(running.payout.credits - 2 * first.credits) <= 1


def test_a_renewal_that_is_not_paid_ends_the_allowance_after_the_grace(
    double: DoubleAccount, running: Payer
) -> None:
    (card,) = double.v1.payment_methods.list({"customer": running.customer.stripe_customer_id}).data
    double.controls.change_card(card.id, decline_code="insufficient_funds")
    end = running.payout.period_end
    double.pass_time(_seconds_to(double, end) + 2 * HOUR)
    process_all_events(double)
    assert running.subscription.status == "past_due"
    last = end + RENEWAL_GRACE
    assert running.quota(last - timedelta(seconds=1)).total == running.payout.credits
    quota = running.quota(last)
    assert (quota.total, quota.reset_date) == (0, -1)
    assert quota.available == running.payout.credits


def test_when_stripe_stops_collecting_the_allowance_ends_and_the_credits_stay(
    double: DoubleAccount, running: Payer
) -> None:
    (card,) = double.v1.payment_methods.list({"customer": running.customer.stripe_customer_id}).data
    double.controls.change_card(card.id, decline_code="stolen_card")
    double.pass_time(60 * DAY)
    process_all_events(double)
    assert running.subscription.status == "canceled"
    quota = running.quota()
    assert (quota.total, quota.reset_date, quota.available) == (0, -1, running.payout.credits)
    assert len(running.payouts) == 1


def test_after_the_end_of_a_cancelled_period_there_is_no_reset_date(
    double: DoubleAccount, running: Payer
) -> None:
    running.cancel(immediately=False)
    end = running.payout.period_end
    double.pass_time(_seconds_to(double, end) - 1)
    assert running.quota().reset_date == int(end.timestamp())
    double.pass_time(2)
    quota = running.quota()
    assert (quota.total, quota.reset_date) == (0, -1)
    process_all_events(double)
    assert running.quota().reset_date == -1
