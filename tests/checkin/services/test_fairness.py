"""The record holds what recomputes the user's draws, and no secret of today."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from checkin.models import DailySeed
from checkin.services import seeds
from checkin.services.checkins import execute
from checkin.services.seeds import DAYS_SHOWN, fairness_record_of
from tests.checkin.conftest import earner
from tests.checkin.rows import allow_attempts, subscribe
from users.models import User

pytestmark = pytest.mark.django_db


def test_commitments_of_today_and_tomorrow_are_published_even_without_beat(user: User, now: datetime) -> None:
    record = fairness_record_of(user=user, now=now)
    assert [record.today.day, record.tomorrow.day] == [now.date(), now.date() + timedelta(days=1)]
    assert fairness_record_of(user=user, now=now).today.commitment == record.today.commitment
    assert (record.revealed, record.draws, record.tables) == ([], [], [])


def test_draws_are_listed_with_their_revealed_seed_and_only_for_their_user(
    proven: User, now: datetime
) -> None:
    other = earner()
    allow_attempts(2)
    for age in range(5):
        for user in (proven, proven, other):
            execute(user=user, now=now - timedelta(days=age))
    seeds.commit_and_reveal(now=now)

    record = fairness_record_of(user=proven, now=now)

    days = [now.date() - timedelta(days=age) for age in (2, 3, 4)]
    assert [row.day for row in record.revealed] == days
    assert [(row.day, row.attempt) for row in record.draws] == [(day, n) for day in days for n in (2, 1)]
    assert {row.user_id for row in record.draws} == {proven.pk}


def test_the_drawn_tables_are_included_with_their_items(proven: User, now: datetime) -> None:
    subscribe(proven, now - timedelta(days=4))
    row = execute(user=proven, now=now - timedelta(days=4))
    seeds.commit_and_reveal(now=now)
    record = fairness_record_of(user=proven, now=now)
    assert {table.pk for table in record.tables} == {row.permanent_table_id, row.subscriber_table_id}
    assert sum(table.items.count() for table in record.tables) == len(row.possible_results)


def test_the_number_of_days_is_limited(proven: User, now: datetime) -> None:
    for age in range(DAYS_SHOWN + 6):
        seeds.seed_of(now.date() - timedelta(days=age))
    execute(user=proven, now=now - timedelta(days=DAYS_SHOWN + 5))
    seeds.commit_and_reveal(now=now)

    record = fairness_record_of(user=proven, now=now)

    assert [row.day for row in record.revealed] == [
        now.date() - timedelta(days=age) for age in range(2, DAYS_SHOWN + 2)
    ]
    assert record.draws == []
    assert DailySeed.objects.filter(revealed_at__isnull=False).count() == DAYS_SHOWN + 4


def test_the_number_of_queries_does_not_grow_with_history(
    proven: User, now: datetime, django_assert_num_queries: Any
) -> None:
    seeds.commit_and_reveal(now=now)
    for age in (2, 3):
        execute(user=proven, now=now - timedelta(days=age))
    seeds.commit_and_reveal(now=now)
    for age in (4, 5, 6):
        with django_assert_num_queries(2 + 2 + 4):  # savepoint, two seeds; seeds, draws, tables, items
            fairness_record_of(user=proven, now=now)
        execute(user=proven, now=now - timedelta(days=age))
        seeds.commit_and_reveal(now=now)
