"""The front page: every figure is the rows' own, and leads to them."""

import json
import random
import secrets
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from backoffice import figures, front_page
from backoffice.cards import Card
from credits.models import CreditEntry, EntrySource
from credits.services import entries
from earnings.models import AdNetwork, Postback, PostbackKind, PostbackState, Refusal
from gateway.staff.models import ApprovalRequest
from payments.models import BillingOperation, Payout, StripeEvent
from relay.models import Attempt, Relayer, RelayTransaction
from tests.backoffice.conftest import mined
from tests.database import rewrite, tamper
from tests.earnings.ad_networks import set_up
from tests.factories import UserFactory, make
from tests.gateway.metrics.conftest import Scrape
from tests.portal.history_rows import earned, relayed
from tests.staff import browser_of, member

pytestmark = pytest.mark.django_db
Status = RelayTransaction.Status
CARDS = ("relay_cards", "money_cards", "books_cards", "trouble_cards")


def page_figures() -> dict[str, Any]:
    return front_page.page_figures(now=timezone.now())


def card(title: str) -> Card:
    page = page_figures()
    cards: list[Card] = [card for part in CARDS for card in page[part]]
    return next(card for card in cards if card.title == title)


def calls(count: int) -> list[RelayTransaction]:
    user = UserFactory.create()
    before = set(RelayTransaction.objects.values_list("pk", flat=True))
    relayed(user, count)
    return list(RelayTransaction.objects.exclude(pk__in=before).order_by("pk"))


def test_the_page_reports_that_there_are_no_rows(staff: Client) -> None:
    page = staff.get("/admin/")
    assert page.status_code == 200
    assert "No relayers yet" in page.content.decode()
    assert card("Success rate").value == "—"
    assert card("Time to inclusion").value == "—"
    assert card("Stripe against payouts").is_alarming
    assert not card("Calls waiting for broadcast").is_alarming


def test_outcomes_are_counted_by_state_and_lead_to_their_rows(staff: Client) -> None:
    failed = random.randint(1, 4)
    rows = calls(10)
    for row in rows[:failed]:
        RelayTransaction.objects.filter(pk=row.pk).update(status=Status.FAILED)
    old = calls(2)
    RelayTransaction.objects.filter(pk__in=[row.pk for row in old]).update(
        created_at=timezone.now() - timedelta(hours=25)
    )
    shown = card("Failed")
    assert shown.value == str(failed)
    assert card("Success").value == str(10 - failed)
    assert card("Success rate").value == f"{Decimal(10 - failed) / 10:.1%}"
    listed = staff.get(shown.link)
    assert listed.status_code == 200
    assert {row.pk for row in listed.context["cl"].result_list} == {row.pk for row in rows[:failed]}


def test_a_call_executed_by_another_sender_counts_as_success_in_the_rate_and_the_chart() -> None:
    rows = calls(10)
    for row, status in zip(rows, (Status.EXECUTED_EXTERNALLY, Status.EXPIRED), strict=False):
        RelayTransaction.objects.filter(pk=row.pk).update(status=status)
    assert card("Success rate").value == "90.0%"
    chart = page_figures()["calls_by_hour"]
    counted = {one["label"]: sum(one["data"]) for one in json.loads(chart.data)["datasets"]}
    assert counted == {"succeeded": 9, "unsuccessful": 1, "waiting": 0}


def test_refused_postbacks_are_counted_whatever_they_were_refused_for(staff: Client) -> None:
    user, network = UserFactory.create(), set_up("bitlabs", per_event_cap=1)
    for _ in range(2):
        network.send(network.reward(user, amount="2"))
    Postback.objects.update(state="REFUSED", refused_because=Refusal.ABOVE_A_CAP)
    first, second = Postback.objects.order_by("pk")
    Postback.objects.filter(pk=second.pk).update(refused_because=Refusal.FORFEITED)
    shown = card("Refused postbacks")
    assert (shown.value, shown.detail) == ("2", "in 24 hours; see each row's reason")
    assert {row.pk for row in staff.get(shown.link).context["cl"].result_list} == {first.pk, second.pk}


def test_each_sum_and_count_is_of_its_own_rows_and_leads_to_them(staff: Client) -> None:
    payout, other = make(Payout), make(Payout)
    minor = random.randint(100_000, 10**6)
    rewrite(Payout.objects.filter(pk=payout.pk), currency="usd", amount_minor=minor, credits=minor + 7)
    rewrite(Payout.objects.filter(pk=other.pk), currency="eur")
    rewrite(Payout.objects, created_at=timezone.now())
    held, refused, contradicting = (make(Postback) for _ in range(3))
    Postback.objects.update(
        received_at=timezone.now() - timedelta(minutes=5),
        is_conflicting=False,
        state="AVAILABLE",
        hold_reason="",
    )
    Postback.objects.filter(pk=held.pk).update(
        kind=PostbackKind.CREDIT, state=PostbackState.HELD, available_at=timezone.now() - timedelta(hours=6)
    )
    Postback.objects.filter(pk=refused.pk).update(
        state=PostbackState.REFUSED, refused_because=Refusal.ABOVE_A_CAP
    )
    Postback.objects.filter(pk=contradicting.pk).update(is_conflicting=True, conflicted_at=timezone.now())
    AdNetwork.objects.update(is_enabled=True, is_weak=False)
    order = make(BillingOperation)
    BillingOperation.objects.filter(pk=order.pk).update(
        status="pending", created_at=timezone.now() - timedelta(hours=4)
    )
    for title, value, row in (
        ("Payouts in USD", f"{Decimal(minor) / 100:,.2f}", payout),
        ("Refused postbacks", "1", refused),
        ("Conflicting postbacks", "1", contradicting),
        ("Held earnings due", "6 h", held),
        ("Open billing operations", "4 h", order),
    ):
        shown = card(title)
        assert shown.value == value, title
        assert [listed.pk for listed in staff.get(shown.link).context["cl"].result_list] == [row.pk], title
    assert f"1 payment paid out as {minor + 7:,} credits" in card("Payouts in USD").detail


def test_the_hours_count_calls_by_outcome() -> None:
    rows = iter(calls(6))
    for status, count in {Status.SUCCESS: 1, Status.FAILED: 2, Status.PENDING: 3}.items():
        settled_at = None if status is Status.PENDING else timezone.now()
        for _ in range(count):
            RelayTransaction.objects.filter(pk=next(rows).pk).update(status=status, settled_at=settled_at)
    hours = figures.hours(since=timezone.now() - timedelta(days=1))
    for name, count in (("succeeded", 1), ("unsuccessful", 2), ("waiting", 3)):
        assert sum(getattr(hour, name) for hour in hours) == count, name


def test_time_to_inclusion_is_until_the_block_was_seen() -> None:
    for place, row in enumerate(calls(20)):
        mined(row, at=row.created_at + timedelta(seconds=place + 1), gas=1, price_wei=1)
    shown = card("Time to inclusion")
    assert shown.value == "10.5 s"
    assert "19.1 s" in shown.detail


def test_the_margin_is_captured_credits_less_gas() -> None:
    rows = calls(3)
    price = random.randint(1, 10**9)
    for row in rows:
        mined(row, at=timezone.now(), gas=21_000, price_wei=price)
    gained = sum(row.credit_wei for row in rows) - 3 * 21_000 * price
    shown = card("Margin")
    assert shown.value == f"{Decimal(gained) / 10**18:.6f} LYX"
    assert shown.is_alarming == (gained < 0)


def test_a_relayers_remaining_time_is_estimated_from_last_weeks_spending() -> None:
    [row] = calls(1)
    mined(row, at=timezone.now(), gas=100, price_wei=10**15)
    Relayer.objects.filter(pk=row.relayer_id).update(balance_wei=10**17)
    [relayer] = page_figures()["relayers"]
    assert (relayer["lasts"], relayer["balance"], relayer["is_low"]) == ("7.0 days", "0.1000 LYX", False)
    Relayer.objects.filter(pk=row.relayer_id).update(balance_wei=10**17 - 1)
    assert page_figures()["relayers"][0]["is_low"]


def test_a_quarantined_relayer_is_shown_as_one_and_a_retired_one_is_not_shown() -> None:
    [row] = calls(1)
    relayer = Relayer.objects.filter(pk=row.relayer_id)
    relayer.update(is_active=False, quarantined_at=timezone.now())
    assert [shown["state"] for shown in page_figures()["relayers"]] == ["quarantined"]
    relayer.update(retired_at=timezone.now())
    assert page_figures()["relayers"] == []


def test_outstanding_credits_are_the_sum_of_balances_and_of_debts(staff: Client) -> None:
    rich, indebted = UserFactory.create(), UserFactory.create()
    amount, debt = random.randint(1_000, 10**6), random.randint(1, 999)
    earned(rich, amount % 50 + 1)
    entries.adjust(user=indebted, credits=-debt, key=secrets.token_hex(8), actor=None, reason="owes")
    shown = card("Credits outstanding")
    assert shown.value == f"{amount % 50 + 1:,}"
    assert f"{debt:,} owed to us" in shown.detail
    assert "on 2 accounts" in shown.detail


def test_earnings_are_summed_by_source_and_corrections_are_none() -> None:
    user = UserFactory.create()
    for source, amount in ((EntrySource.SURVEYS, 5), (EntrySource.OFFERWALL, 8), (EntrySource.SURVEYS, 7)):
        entries.grant(user=user, credits=amount, source=source, key=secrets.token_hex(8))
    entries.adjust(user=user, credits=100, key=secrets.token_hex(8), actor=None, reason="gift")
    entries.reverse(user=user, credits=3, source=EntrySource.EARNING_REVERSAL, key=secrets.token_hex(8))
    assert [(name, amount) for name, amount, _ in page_figures()["earned_by_source"]] == [
        ("Surveys", 12),
        ("Offers", 8),
    ]


def test_failed_events_alarm_and_lead_to_their_rows(staff: Client) -> None:
    received = timezone.now() - timedelta(hours=2)
    event = make(StripeEvent, status=StripeEvent.Status.FAILED, received_at=received)
    shown = card("Failed Stripe events")
    assert (shown.value, shown.is_alarming) == ("1", True)
    assert [row.pk for row in staff.get(shown.link).context["cl"].result_list] == [event.pk]
    waiting = card("Stripe events waiting")
    assert (waiting.value, waiting.is_alarming) == ("2 h", True)


def test_an_earning_is_due_where_its_network_is_enabled_and_metrics_agree(scrape: Scrape) -> None:
    network = set_up("bitlabs", hold_hours=5)
    network.send(network.reward(UserFactory.create()))
    assert card("Held earnings due").value == "none"
    Postback.objects.update(available_at=timezone.now() - timedelta(hours=3))
    shown = card("Held earnings due")
    assert (shown.value, shown.is_alarming) == ("3 h", True)
    assert scrape()["postbacks_held_overdue_seconds",] >= 3 * 3600
    AdNetwork.objects.update(is_enabled=False)
    shown = card("Held earnings due")
    assert (shown.value, shown.is_alarming) == ("none", False)
    assert scrape()["postbacks_held_overdue_seconds",] == 0


def test_the_age_of_pending_work_equals_the_metrics(scrape: Scrape) -> None:
    hours = random.sample(range(2, 24), 2)
    [call] = calls(1)
    RelayTransaction.objects.filter(pk=call.pk).update(status=Status.PENDING, settled_at=None)
    attempt = mined(call, at=timezone.now(), gas=1, price_wei=1)
    signed_at = timezone.now() - timedelta(hours=hours[0])
    Attempt.objects.filter(pk=attempt.pk).update(status=Attempt.Status.SIGNED, created_at=signed_at)
    begun_at = timezone.now() - timedelta(hours=hours[1])
    make(BillingOperation, user=call.user, created_at=begun_at)
    gauges = scrape()
    for title, name, age in (
        ("Calls waiting for broadcast", "relay_oldest_unsent_age_seconds", hours[0]),
        ("Open billing operations", "billing_operations_oldest_age_seconds", hours[1]),
    ):
        assert gauges[name,] // 3600 == age
        shown = card(title)
        assert (shown.value, shown.is_alarming) == (f"{age} h", True)


@pytest.mark.parametrize(("hours", "is_late"), [(23, False), (25, True)])
def test_a_request_is_late_after_a_day(hours: int, is_late: bool) -> None:
    request = make(ApprovalRequest)
    since = timezone.now() - timedelta(hours=hours)
    tamper("UPDATE gateway_admin_approvalrequest SET created_at = %s WHERE id = %s", since, request.pk)
    assert card("Requests waiting for a second person").is_alarming == is_late


def test_every_card_leads_to_a_list_that_opens(staff: Client) -> None:
    shown = page_figures()
    links = [card.link for part in CARDS for card in shown[part]]
    for link in [*links, *shown["links"].values()]:
        page = staff.get(link)
        # A list that does not understand its filters goes to ?e=1.
        assert page.status_code == 200, link


def test_the_page_costs_the_same_whatever_happened(staff: Client) -> None:
    counts = []
    for length in (1, 30):
        for row in calls(length):
            mined(row, at=timezone.now(), gas=1, price_wei=1)
        with CaptureQueriesContext(connection) as statements:
            staff.get("/admin/")
        counts.append(len(statements))
    assert counts[0] == counts[1]
    assert CreditEntry.objects.count() == 31


def test_staff_without_view_permissions_see_no_figures() -> None:
    user = UserFactory.create()
    earned(user, 3)
    person = UserFactory.create(profile_address=None, is_staff=True)
    person.user_permissions.set(Permission.objects.filter(codename="view_user"))
    browser = browser_of(person)
    page = browser.get("/admin/").content.decode()
    assert "Credits outstanding" not in page
    assert "Your roles have no access to these figures" in page
    assert 'id="balance"' not in browser.get(f"/admin/users/user/{user.pk}/change/").content.decode()


@pytest.mark.parametrize("role", ["support", "finance", "operations"])
def test_every_role_sees_the_figures(role: str) -> None:
    browser = browser_of(member(role))
    assert "Credits outstanding" in browser.get("/admin/").content.decode()
    user = UserFactory.create()
    assert 'id="balance"' in browser.get(f"/admin/users/user/{user.pk}/change/").content.decode()


def test_the_page_begins_with_what_alarms_and_says_so_if_nothing_does(
    staff: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    alarm = page_figures()["alarms"]
    assert "Stripe against payouts" in [one.title for one in alarm]
    page = staff.get("/admin/").content.decode()
    assert page.index("Needs attention") < page.index("Stripe against payouts") < page.index('role="search"')
    quiet = {**page_figures(), "alarms": [], "as_of": "now"}
    monkeypatch.setattr(front_page, "cached_figures", lambda **_: quiet)
    page = staff.get("/admin/").content.decode()
    assert "Nothing needs your attention" in page
    assert "Needs attention" not in page
