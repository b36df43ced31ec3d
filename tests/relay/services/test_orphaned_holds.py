"""Orphaned holds are released by staff, and no others."""

import random
import secrets
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

import pytest
from django.contrib.admin.models import LogEntry
from django.utils import timezone

from credits.models import CreditHold, HoldStatus
from credits.queries import balance_of
from credits.services import holds
from credits.services.reconciliation import find_differences
from gateway.common.errors import ReasonRequired
from relay.errors import HoldNotOrphaned
from relay.models import RelayTransaction
from relay.services.sending import cancellation
from tests.credits.holding import place_hold
from tests.factories import UserFactory
from tests.relay.conftest import Accept
from tests.relay.rows import everything
from tests.threads import at_once
from users.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture
def staff(db: None) -> User:
    return UserFactory.create(profile_address=None, is_staff=True)


@pytest.fixture
def now() -> datetime:
    return timezone.now()


def end_call(row: RelayTransaction, status: str, cost: int = 0) -> CreditHold:
    """Let the call end in the rows alone, past the service that would close its hold."""
    RelayTransaction.objects.filter(pk=row.pk).update(
        status=status, settled_at=timezone.now(), real_cost=cost
    )
    return row.hold


def orphan(user: User, *, key: str, age: timedelta) -> CreditHold:
    placed = place_hold(user=user, credits=random.randint(1, 99), key=key).hold
    CreditHold.objects.filter(pk=placed.pk).update(created_at=timezone.now() - age)
    return placed


def assert_not_released(hold: CreditHold, staff: User, now: datetime) -> None:
    before = everything()
    assert hold not in cancellation.orphaned_holds(now=now)
    with pytest.raises(HoldNotOrphaned):
        cancellation.release(hold_id=hold.pk, actor=staff, reason="stuck", now=now)
    assert everything() == before
    assert not LogEntry.objects.exists()


@pytest.mark.parametrize("status", ["Success", "Cancelled"])
def test_the_open_hold_of_an_ended_call_is_released_with_a_reason_on_record(
    user: User, accept: Accept, staff: User, now: datetime, status: str
) -> None:
    cost = random.randint(0, 500)
    hold = end_call(accept(), status, cost)
    assert list(cancellation.orphaned_holds(now=now)) == [hold]
    cancellation.release(hold_id=hold.pk, actor=staff, reason=" rows were changed by hand ", now=now)
    hold.refresh_from_db()
    assert (hold.status, hold.entry) == (HoldStatus.RELEASED, None)
    assert balance_of(user).held == 0
    assert find_differences() == []
    entry = LogEntry.objects.get()
    assert (entry.user_id, entry.object_id) == (staff.pk, str(hold.pk))
    assert '"reason": "rows were changed by hand"' in entry.change_message
    assert f'"cost borne by the service": ["0", "{cost}"]' in entry.change_message


def test_an_old_hold_of_the_relay_without_a_call_is_released(user: User, staff: User, now: datetime) -> None:
    hold = orphan(user, key="relay:0x1:0x2:0", age=timedelta(hours=1, minutes=1))
    assert list(cancellation.orphaned_holds(now=now)) == [hold]
    cancellation.release(hold_id=hold.pk, actor=staff, reason="orphan", now=now)
    assert balance_of(user).held == 0


@pytest.mark.parametrize("status", ["Pending", "Submitted"])
def test_a_call_in_progress_keeps_its_hold_however_old(
    accept: Accept, staff: User, now: datetime, status: str
) -> None:
    row = accept()
    RelayTransaction.objects.filter(pk=row.pk).update(status=status)
    assert_not_released(row.hold, staff, now + timedelta(days=300))


@pytest.mark.parametrize(
    ("key", "age"),
    [("relay:0x1:0x2:0", timedelta(minutes=59)), ("shop:1", timedelta(days=9))],
)
def test_young_holds_and_those_of_other_apps_are_kept(
    user: User, staff: User, now: datetime, key: str, age: timedelta
) -> None:
    assert_not_released(orphan(user, key=key, age=age), staff, now)


def test_a_closed_hold_is_not_released_again(
    user: User, accept: Accept, settle: Callable[[], int], staff: User, now: datetime
) -> None:
    row = accept()
    assert settle() == 1
    assert_not_released(row.hold, staff, now)
    closed = orphan(user, key=f"relay:{secrets.token_hex(4)}", age=timedelta(days=1))
    holds.release(hold_id=closed.pk)
    assert_not_released(closed, staff, now)


def test_a_reason_is_needed(accept: Accept, staff: User, now: datetime) -> None:
    hold = end_call(accept(), "Cancelled")
    before = everything()
    with pytest.raises(ReasonRequired, match="Give a reason"):
        cancellation.release(hold_id=hold.pk, actor=staff, reason=" ", now=now)
    assert everything() == before


@pytest.mark.django_db(transaction=True)
def test_of_several_concurrent_releases_one_succeeds(user: User, accept: Accept, now: datetime) -> None:
    hold = end_call(accept(), "Expired")
    staff = [UserFactory.create(profile_address=None, is_staff=True) for _ in range(6)]
    calls = [
        partial(cancellation.release, hold_id=hold.pk, actor=actor, reason="stuck", now=now)
        for actor in staff
    ]
    results = at_once(calls)
    assert sum(isinstance(result, HoldNotOrphaned) for result in results) == 5
    assert LogEntry.objects.count() == 1
    assert balance_of(user).held == 0
