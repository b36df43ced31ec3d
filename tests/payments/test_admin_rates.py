"""Finance adds payout rates; what was in force stays as it was."""

import random
import uuid
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from gateway.staff.models import ApprovalRequest
from payments.amounts import payout_credits
from payments.models import PayoutRate, Subscription
from tests.database import erase
from tests.factories import UserFactory, make
from tests.staff import approve, confirmed, log_in_staff, messages_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("short_sidebar")]
ADD = "admin:payments_payoutrate_add"


def _form(valid_from: datetime, currency: str = "usd", rate: int | str = 1_234) -> dict[str, Any]:
    return {
        "currency": currency,
        "credits_per_major_unit": rate,
        "experience_per_minor_unit": 2,
        "valid_from_0": valid_from.strftime("%Y-%m-%d"),
        "valid_from_1": valid_from.strftime("%H:%M:%S"),
    }


def _ask(client: Client, *args: Any, **kwargs: Any) -> str:
    """Return the page that shows the effect, or the form with its faults."""
    return " ".join(client.post(reverse(ADD), _form(*args, **kwargs)).content.decode().split())


def _add(client: Client, valid_from: datetime, currency: str = "usd", rate: int | str = 1_234) -> int:
    """Send the form as if its effect had been shown, and have the second person agree."""
    form = {**_form(valid_from, currency, rate), "_confirmed": "1", "why-reason": "because it is due"}
    response = client.post(reverse(ADD), {**form, "why-token": str(uuid.uuid4())})
    if response.status_code == 302 and ApprovalRequest.objects.waiting().exists():
        approve("operations")
    return response.status_code


def _subscribe(currency: str, amount_minor: int, status: str = "active") -> None:
    user = UserFactory.create()
    make(Subscription, user=user, status=status, amount_minor=amount_minor, currency=currency)


@pytest.fixture
def finance(client: Client, rates: dict[str, int]) -> Client:
    """Who may add rates."""
    log_in_staff(client, "view_payoutrate", "add_payoutrate")
    return client


def test_a_rate_of_the_future_is_added_and_traced(finance: Client) -> None:
    begins, rate = timezone.now().replace(microsecond=0) + timedelta(days=3), random.randint(1, 9_999)
    before = list(PayoutRate.objects.values())
    assert _add(finance, begins, rate=rate) == 302
    added = PayoutRate.objects.latest("pk")
    assert (added.currency, added.credits_per_major_unit, added.experience_per_minor_unit) == ("usd", rate, 2)
    assert added.valid_from == begins
    assert list(PayoutRate.objects.exclude(pk=added.pk).values()) == before
    assert LogEntry.objects.filter(object_id=str(added.pk)).exists()


def test_its_effect_is_shown_before_it_is_added(finance: Client, rates: dict[str, int]) -> None:
    begins, rate = (
        timezone.now().replace(second=0, microsecond=0) + timedelta(days=3),
        random.randint(1, 9_999),
    )
    usd, others = [random.randint(100, 99_999) for _ in range(3)], [random.randint(100, 99_999)]
    for amount in usd:
        _subscribe("usd", amount, random.choice(["active", "past_due", "paused"]))
    _subscribe("usd", 7_777, "canceled")
    _subscribe("eur", others[0])
    before = list(PayoutRate.objects.values())
    page = _ask(finance, begins, rate=rate)
    assert list(PayoutRate.objects.values()) == before
    assert not LogEntry.objects.exists()
    assert (
        f"10.00 USD pays out {10 * rate:,} instead of {10 * rates['usd']:,} credits "
        f"from {begins:%Y-%m-%d %H:%M} UTC."
    ) in page
    assert f"3 live subscriptions in USD, which cost {sum(usd) / 100:,.2f} USD a month in total." in page
    was, will = (
        sum(payout_credits(collected_minor=amount, credits_per_major_unit=each) for amount in usd)
        for each in (rates["usd"], rate)
    )
    assert f'all subscriptions</td><td class="number">{was:,}</td><td class="number">{will:,}</td>' in page
    assert '0.01 USD</td><td class="number">1</td><td class="number">2</td>' in page
    response = confirmed(finance, reverse(ADD), _form(begins, rate=rate))
    assert "waits for a second person (operations or superuser)" in messages_of(response)
    assert list(PayoutRate.objects.values()) == before
    approve("operations")
    added = PayoutRate.objects.latest("pk")
    assert (added.credits_per_major_unit, added.valid_from) == (rate, begins)


def test_the_effect_is_compared_with_the_rate_in_force_then_and_ends_at_the_next(finance: Client) -> None:
    now = timezone.now().replace(second=0, microsecond=0)
    sooner, later = now + timedelta(days=2), now + timedelta(days=9)
    assert _add(finance, sooner, rate=777) == 302
    assert _add(finance, later, rate=888) == 302
    page = _ask(finance, now + timedelta(days=5), rate=999)
    assert "pays out 9,990 instead of 7,770 credits" in page
    assert f"until {later:%Y-%m-%d %H:%M} UTC, when another rate begins." in page
    assert "0 live subscriptions in USD, which cost 0.00 USD" in page


def test_the_form_for_the_first_rate_of_a_currency_warns_of_waiting_payments(finance: Client) -> None:
    erase(PayoutRate.objects.filter(currency="usd"))
    _subscribe("usd", 1_000)
    page = _ask(finance, timezone.now() - timedelta(days=40), rate=500)
    assert "10.00 USD pays out 5,000 credits from" in page
    assert "No rate is in force before that date; payments wait for one." in page
    assert "1 live subscription in USD, which costs 10.00 USD" in page
    assert page.count('<td class="number">none</td>') == 3
    assert "None" not in page.split("<h2>Payout</h2>", 1)[1]


def test_the_empty_form_shows_the_rates_of_each_currency(
    finance: Client, rates: dict[str, int], settings: Any
) -> None:
    erase(PayoutRate.objects.filter(currency="chf"))
    begins = timezone.now().replace(second=0, microsecond=0) + timedelta(days=3)
    assert _add(finance, begins, "gbp", 4_321) == 302
    for _ in range(2):
        _subscribe("gbp", 500)
    shown = finance.get(reverse(ADD))
    rows_by_currency = {row.currency: row for row in shown.context["rates"]}
    assert list(rows_by_currency) == list(settings.BILLING_CURRENCIES)
    assert rows_by_currency["chf"].rate is None
    for currency in rows_by_currency.keys() - {"chf"}:
        rate = rows_by_currency[currency].rate
        assert rate is not None
        assert rate.credits_per_major_unit == rates[currency]
        assert (
            f'<td>{currency.upper()}</td><td class="number">{rates[currency]:,}</td>'
            in shown.content.decode()
        )
    assert [rate.credits_per_major_unit for rate in rows_by_currency["gbp"].planned] == [4_321]
    assert (rows_by_currency["gbp"].subscriptions, rows_by_currency["usd"].subscriptions) == (2, 0)
    page = shown.content.decode()
    assert f"<div>4,321 from {begins:%Y-%m-%d %H:%M}</div>" in page
    assert "No rate is in force; payments wait for one." in page


def test_its_statements_do_not_grow_with_rates_or_subscriptions(finance: Client) -> None:
    def measured() -> int:
        with CaptureQueriesContext(connection) as seen:
            finance.get(reverse(ADD))
            _ask(finance, timezone.now() + timedelta(days=5))
        return len(seen)

    measured()
    few = measured()
    for days in (2, 3, 6):
        _add(finance, timezone.now() + timedelta(days=days), rate=days)
        _subscribe("usd", 900)
    assert measured() == few


@pytest.mark.parametrize(
    ("currency", "rate", "days"),
    [
        ("usd", 5, -1),
        ("usd", 0, 1),
        ("usd", -5, 1),
        ("usd", "", 1),
        ("jpy", 5, 1),
        ("USD", 5, 1),
    ],
)
def test_a_rate_for_the_past_or_without_effect_is_refused(
    finance: Client, currency: str, rate: int | str, days: int
) -> None:
    before = list(PayoutRate.objects.values())
    assert "<h2>Payout</h2>" not in _ask(finance, timezone.now() + timedelta(days=days), currency, rate)
    assert _add(finance, timezone.now() + timedelta(days=days), currency, rate) == 200
    assert list(PayoutRate.objects.values()) == before
    assert not LogEntry.objects.exists()


def test_two_rates_cannot_begin_at_the_same_time(finance: Client) -> None:
    begins = timezone.now() + timedelta(days=1)
    assert _add(finance, begins) == 302
    assert _add(finance, begins, rate=7) == 200
    assert PayoutRate.objects.latest("pk").credits_per_major_unit == 1_234


def test_a_payment_that_waits_for_a_rate_can_be_given_one(finance: Client) -> None:
    erase(PayoutRate.objects.filter(currency="usd"))
    assert _add(finance, timezone.now() - timedelta(days=40)) == 302
    assert PayoutRate.objects.filter(currency="usd").count() == 1


def test_the_view_permission_alone_does_not_allow_adding_a_rate(
    client: Client, rates: dict[str, int]
) -> None:
    log_in_staff(client, "view_payoutrate")
    before = list(PayoutRate.objects.values())
    assert "<h2>Payout</h2>" not in _ask(client, timezone.now() + timedelta(days=1))
    assert _add(client, timezone.now() + timedelta(days=1)) == 403
    assert list(PayoutRate.objects.values()) == before


def test_rates_cannot_be_changed_or_deleted(client: Client, rates: dict[str, int]) -> None:
    log_in_staff(client)
    rate = PayoutRate.objects.latest("pk")
    before = list(PayoutRate.objects.values())
    change, delete = (
        reverse(f"admin:payments_payoutrate_{page}", args=[rate.pk]) for page in ("change", "delete")
    )
    assert client.post(change, {"credits_per_major_unit": 1}).status_code == 403
    assert client.post(delete, {"post": "yes"}).status_code == 403
    assert list(PayoutRate.objects.values()) == before
