"""Finance adds payout rates; what was in force stays as it was."""

import random
from datetime import datetime, timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from payments.models import PayoutRate
from tests.payments.staff import browser_of

pytestmark = pytest.mark.django_db
ADD = "admin:payments_payoutrate_add"


def _add(client: Client, valid_from: datetime, currency: str = "usd", rate: int | str = 1_234) -> int:
    form = {
        "currency": currency,
        "credits_per_major_unit": rate,
        "experience_per_minor_unit": 2,
        "valid_from_0": valid_from.strftime("%Y-%m-%d"),
        "valid_from_1": valid_from.strftime("%H:%M:%S"),
    }
    return client.post(reverse(ADD), form).status_code


@pytest.fixture
def finance(client: Client, rates: dict[str, int]) -> Client:
    """Who may add rates."""
    return browser_of(client, "view_payoutrate", "add_payoutrate")


def test_a_rate_of_the_future_is_added_and_traced(finance: Client) -> None:
    begins, rate = timezone.now().replace(microsecond=0) + timedelta(days=3), random.randint(1, 9_999)
    before = list(PayoutRate.objects.values())
    assert _add(finance, begins, rate=rate) == 302
    added = PayoutRate.objects.latest("pk")
    assert (added.currency, added.credits_per_major_unit, added.experience_per_minor_unit) == ("usd", rate, 2)
    assert added.valid_from == begins
    assert list(PayoutRate.objects.exclude(pk=added.pk).values()) == before
    assert LogEntry.objects.get().object_id == str(added.pk)


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
def test_what_would_reach_back_or_mean_nothing_is_refused(
    finance: Client, currency: str, rate: int | str, days: int
) -> None:
    before = list(PayoutRate.objects.values())
    assert _add(finance, timezone.now() + timedelta(days=days), currency, rate) == 200
    assert list(PayoutRate.objects.values()) == before
    assert not LogEntry.objects.exists()


def test_two_rates_do_not_begin_at_once(finance: Client) -> None:
    begins = timezone.now() + timedelta(days=1)
    assert _add(finance, begins) == 302
    assert _add(finance, begins, rate=7) == 200
    assert PayoutRate.objects.latest("pk").credits_per_major_unit == 1_234


def test_a_payment_that_waits_for_a_rate_can_be_given_one(finance: Client) -> None:
    PayoutRate.objects.filter(currency="usd").delete()
    assert _add(finance, timezone.now() - timedelta(days=40)) == 302
    assert PayoutRate.objects.filter(currency="usd").count() == 1


def test_who_may_only_look_adds_none(client: Client, rates: dict[str, int]) -> None:
    browser_of(client, "view_payoutrate")
    before = list(PayoutRate.objects.values())
    assert _add(client, timezone.now() + timedelta(days=1)) == 403
    assert list(PayoutRate.objects.values()) == before


def test_nobody_changes_or_deletes_one(client: Client, rates: dict[str, int]) -> None:
    browser_of(client)
    rate = PayoutRate.objects.latest("pk")
    before = list(PayoutRate.objects.values())
    change, delete = (
        reverse(f"admin:payments_payoutrate_{page}", args=[rate.pk]) for page in ("change", "delete")
    )
    assert client.post(change, {"credits_per_major_unit": 1}).status_code == 403
    assert client.post(delete, {"post": "yes"}).status_code == 403
    assert list(PayoutRate.objects.values()) == before
