"""Generated people: weeks of history that adds up, in all states of interest."""

import random
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from checkin.models import DailySeed
from checkin.services.verification import verify_day
from credits.models import CreditEntry, CreditHold, EntrySource
from credits.services import causes
from credits.services.reconciliation import find_differences
from devstack.demo.people import addresses_of
from devstack.services.stack import Services
from earnings.models import Postback, PostbackState
from gateway.staff.models import ApprovalRequest
from relay.models import RelayTransaction
from tests.demo.generating import generate
from users.models import User

pytestmark = [pytest.mark.usefixtures("owner_connection"), pytest.mark.django_db]
_PEOPLE = 40
_PAID_ELSEWHERE = {
    EntrySource.SUBSCRIBED_PAYOUT,
    EntrySource.CREDIT_PURCHASE,
    EntrySource.PAYOUT_CLAWBACK,
    EntrySource.RELAY_REVERSAL,
}


def test_generated_users_have_weeks_of_consistent_history_in_all_states(
    services: Services, settings: Any
) -> None:
    seed, now = f"{random.getrandbits(128):032x}", timezone.now()
    staff = User.objects.create(username="grace", is_staff=True)

    callers = generate(services, settings, seed=seed, staff=staff, people=_PEOPLE)

    assert find_differences() == []
    assert causes.find_differences() == []
    people = User.objects.filter(profile_address__isnull=False)
    assert people.count() == _PEOPLE
    expected = {*addresses_of(seed, _PEOPLE - len(callers)), *(caller.profile_address for caller in callers)}
    assert set(people.values_list("profile_address", flat=True)) == expected
    sources = set(CreditEntry.objects.values_list("source", flat=True))
    # No user has the badge that gives credits back or owns a sponsor, and cash is paid at the Stripe double alone.
    absent = {
        EntrySource.CREDITS_BACK,
        EntrySource.CHECK_IN,
        EntrySource.CREDIT_EXPIRY,
        EntrySource.FIRST_CREDITS,
        EntrySource.DEBT_TRANSFER,
    }
    assert sources >= set(EntrySource) - _PAID_ELSEWHERE - absent
    states = set(Postback.objects.values_list("state", flat=True))
    assert states >= {PostbackState.AVAILABLE, PostbackState.HELD, PostbackState.REVERSED}
    assert _statuses() == {"Success", "Failed"}
    _assert_draws_can_be_recomputed()
    _assert_requests_wait_for_a_second_person(staff)
    _assert_rows_are_spread_over_weeks(now)


def _statuses() -> set[str]:
    rows = RelayTransaction.objects.select_related("hold__entry")
    for row in rows:
        assert row.real_cost
        assert row.hold.entry is not None
        assert -row.hold.entry.amount == row.real_cost
    return {row.status for row in rows}


def _assert_draws_can_be_recomputed() -> None:
    revealed = DailySeed.objects.filter(revealed_at__isnull=False)
    verified = [verify_day(row.day) for row in revealed]
    assert sum(day.check_ins for day in verified) > _PEOPLE / 4
    assert [difference for day in verified for difference in day.differences] == []


def _assert_requests_wait_for_a_second_person(staff: User) -> None:
    waiting = ApprovalRequest.objects.waiting()
    assert waiting.count() == 3
    assert all(row.needs_second_person and row.requested_by != staff for row in waiting)
    keys = [f"approval:{row.pk}" for row in waiting]
    assert not CreditEntry.objects.filter(key__in=keys).exists()


def _assert_rows_are_spread_over_weeks(now: Any) -> None:
    days = {row.date() for row in CreditEntry.objects.values_list("created_at", flat=True)}
    assert len(days) > 15
    for model in (CreditEntry, CreditHold):
        oldest = model.objects.earliest("created_at").created_at
        newest = model.objects.latest("created_at").created_at
        assert now - timedelta(days=31) < oldest < newest < now
    for entry in CreditEntry.objects.select_related("account__user"):
        assert entry.created_at >= entry.account.person.date_joined
    for hold in CreditHold.objects.all():
        assert hold.closed_at is not None
        assert hold.closed_at >= hold.created_at
