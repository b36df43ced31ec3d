"""Drops that need a streak: when they are drawn, and what they may give."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.conf import settings
from django.db import IntegrityError

from checkin import queries
from checkin.models import CheckIn, DropItem
from checkin.services import drop_tables
from checkin.services.checkins import execute
from checkin.services.drop_tables import faults_of, fingerprint_of
from rewards.models import BadgeTrack
from rewards.queries import current_rewards
from tests.checkin.items import item
from tests.checkin.rows import draft_table, lowest, put_in_force
from users.models import User

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


def _with_a_streak(days: int, **rare: Any) -> list[Any]:
    # So little experience that no better badge replaces the table.
    usual = item("EXPERIENCE", least=Decimal(1), most=Decimal(1))
    return [usual, item("CREDITS", streak_days=days, **rare)]


def _possible(check_in: CheckIn) -> list[str]:
    return [drop["type"] for drop in check_in.possible_results]


def test_an_item_drops_from_its_day_of_the_streak_on_and_not_after_a_gap(proven: User, now: datetime) -> None:
    put_in_force(lowest(BadgeTrack.PERMANENT), _with_a_streak(3))
    days = [9, 8, 7, 6, 4, 3]
    drawn = [execute(user=proven, now=now - ago * DAY) for ago in days]
    assert [row.streak for row in drawn] == [1, 2, 3, 4, 1, 2]
    without, with_it = ["EXPERIENCE"], ["EXPERIENCE", "CREDITS"]
    assert [_possible(row) for row in drawn] == [without, without, with_it, with_it, without, without]


def test_further_attempts_of_a_day_do_not_lengthen_the_streak(proven: User, now: datetime) -> None:
    put_in_force(lowest(BadgeTrack.PERMANENT), _with_a_streak(2))
    rewards = current_rewards(user=proven, now=now)
    execute(user=proven, now=now)
    assert queries.drop_ranges(user=proven, rewards=rewards, now=now)["CREDITS"].most == 0  # type: ignore[index]
    assert queries.drop_ranges(user=proven, rewards=rewards, now=now + DAY)["CREDITS"].most > 0  # type: ignore[index]


def test_without_such_an_item_no_streak_is_counted(proven: User, now: datetime) -> None:
    put_in_force(lowest(BadgeTrack.PERMANENT), [item("EXPERIENCE")])
    assert execute(user=proven, now=now).streak is None


def test_the_cap_holds_on_the_day_that_gives_most() -> None:
    much = Decimal(settings.CHECKIN_MAX_DAILY_CREDITS * 1_000)
    table = draft_table(lowest(BadgeTrack.PERMANENT), _with_a_streak(7, least=much, most=much, weight=100))
    (fault,) = faults_of(table)
    assert fault.endswith(f"the maximum is {settings.CHECKIN_MAX_DAILY_CREDITS}.")


def test_experience_that_needs_a_streak_leaves_newcomers_without_a_drop() -> None:
    table = draft_table(lowest(BadgeTrack.PERMANENT), [item("EXPERIENCE", streak_days=2)])
    assert list(faults_of(table)) == [
        "It needs an item of experience without a streak, for users without a payment or earning."
    ]


def test_an_approver_sees_what_a_streak_gives() -> None:
    table = draft_table(lowest(BadgeTrack.PERMANENT), _with_a_streak(7, least=Decimal(10), most=Decimal(10)))
    assert "CREDITS of a draw, 7 days in a row" in drop_tables._changes(table)


def test_another_streak_is_another_table_to_the_approver() -> None:
    table = draft_table(lowest(BadgeTrack.PERMANENT), _with_a_streak(7))
    before = fingerprint_of(table)
    DropItem.objects.filter(table=table, streak_days=7).update(streak_days=2)
    assert fingerprint_of(table) != before


def test_a_streak_has_at_most_a_year() -> None:
    table = draft_table(lowest(BadgeTrack.PERMANENT), _with_a_streak(365))
    with pytest.raises(IntegrityError, match="checkin_dropitem_streak_in_range"):
        DropItem.objects.filter(table=table, streak_days=365).update(streak_days=366)
