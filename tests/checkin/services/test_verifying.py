"""Every draw of a day can be made again from its seed, and a changed row shows."""

import random
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings
from django.utils import timezone
from pytest_django import DjangoDbBlocker

from checkin.draw import step_of
from checkin.errors import DayNotRevealed
from checkin.models import CheckIn, DailySeed
from checkin.services import seeds
from checkin.services.checkins import execute
from checkin.services.verification import verify_day
from rewards.models import BadgeTrack, Modifier
from tests.checkin.conftest import earner
from tests.checkin.items import TYPES, item
from tests.checkin.rows import allow_attempts, lowest, put_in_force, subscribe
from tests.database import rows_of_a_module, tamper
from tests.factories import UserFactory
from users.models import User

pytestmark = pytest.mark.django_db


_CHECK_IN = "UPDATE checkin_checkin SET {} WHERE id = %s"
_EFFECT = "{} WHERE key = 'check-in:' || %s"
_TAMPERINGS = [
    (_CHECK_IN.format("result_place = 1 - sign(result_place)"), "result"),
    (
        _CHECK_IN.format("""possible_results = jsonb_set(possible_results, '{0,value}', '"999"')"""),
        "possible results",
    ),
    (_CHECK_IN.format("result_place = 77"), "result"),
    (_CHECK_IN.format("possible_results = '[]'"), "possible results"),
    (_CHECK_IN.format("possible_results = '{}'"), "possible results"),
    (_CHECK_IN.format("attempt = attempt + 1"), "possible results"),
    (_CHECK_IN.format("experience_only = NOT experience_only"), "possible results"),
    (_CHECK_IN.format("streak = streak + 1"), "streak"),
    (_EFFECT.format("DELETE FROM credits_entry"), "credits"),
    (
        _EFFECT.format("UPDATE credits_entry SET amount = amount + 1, balance_after = balance_after + 1"),
        "credits",
    ),
    (_EFFECT.format("DELETE FROM rewards_experience"), "experience"),
    (_EFFECT.format("UPDATE rewards_modifier SET value = value + 0.0001"), "bonus"),
    (_EFFECT.format("UPDATE rewards_modifier SET modifier_type = 'BONUS_SURVEYS_CREDITS'"), "bonus"),
]


@pytest.mark.parametrize(("sql", "what"), _TAMPERINGS)
def test_a_changed_row_is_found(now: datetime, long_ago: datetime, sql: str, what: str) -> None:
    kind = {"credits": "CREDITS", "bonus": "BONUS_CREDITS_BACK"}.get(what, "EXPERIENCE")
    names = (kind, "BONUS_PUSH_ADS_CREDITS", "BONUS_SURVEYS_CREDITS")
    # Enough values that no other draw gives the same three.
    items = [
        item(name, weight=100 if name == kind else 1, least=step_of(name), most=1_000 * step_of(name))
        for name in names
    ]
    if what == "streak":
        # Never drawn, but a reason to count.
        items.append(item("EXPERIENCE", streak_days=365))
    put_in_force(lowest(BadgeTrack.PERMANENT), items)
    while (check_in := execute(user=earner(), now=long_ago)).result_place:
        """Luck decided otherwise."""
    seeds.commit_and_reveal(now=now)
    assert verify_day(long_ago.date()).differences == []

    _change_row(sql, check_in.pk)

    differences = verify_day(long_ago.date()).differences
    assert what in {difference.what for difference in differences}
    assert {difference.check_in_id for difference in differences} == {check_in.pk}


class TestADay:
    """A dozen people of every kind checked in on a day that is over; tables changed in between."""

    @pytest.fixture(scope="class")
    def day(self, django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[datetime]:
        attempts = override_settings(CHECKIN_MAX_DAILY_ATTEMPTS=settings.CHECKIN_MAX_DAILY_ATTEMPTS)
        with django_db_blocker.unblock(), rows_of_a_module(), attempts:
            allow_attempts(3)
            day = timezone.now() - timedelta(days=random.randint(3, 12))
            people: list[User] = [earner() for _ in range(4)] + [UserFactory.create() for _ in range(2)]
            for user in people[:2]:
                subscribe(user, day)
            for _ in range(2):
                for user in people:
                    execute(user=user, now=day)
                items = [item(name) for name in random.sample(TYPES, 5)] + [item(TYPES[0])]
                put_in_force(lowest(BadgeTrack.PERMANENT), items)
            yield day

    @pytest.fixture
    def revealed(self, day: datetime, db: None, now: datetime) -> datetime:
        """Tell the seed of that day."""
        seeds.commit_and_reveal(now=now)
        return day

    def test_every_draw_of_a_revealed_day_recomputes(self, revealed: datetime) -> None:
        verification = verify_day(revealed.date())
        assert (verification.check_ins, verification.differences) == (12, [])

    def test_a_day_whose_seed_is_secret_is_not_recomputed(self, day: datetime) -> None:
        for other in (day, day + timedelta(days=40)):
            with pytest.raises(DayNotRevealed):
                verify_day(other.date())

    def test_missing_items_are_reported_and_the_other_draws_are_compared(
        self,
        revealed: datetime,
    ) -> None:
        check_ins = list(CheckIn.objects.order_by("id"))
        tables = {row.permanent_table_id for row in check_ins}
        lost = check_ins[-1].permanent_table_id
        tamper("DELETE FROM checkin_dropitem WHERE table_id = %s", lost)
        verification = verify_day(revealed.date())
        assert (len(tables), verification.check_ins) == (2, 12)
        differing = {difference.check_in_id for difference in verification.differences}
        assert differing == {row.pk for row in check_ins if row.permanent_table_id == lost}
        assert "items" in {difference.what for difference in verification.differences}

    def test_a_seed_other_than_the_committed_one_is_found(self, revealed: datetime) -> None:
        _change_row(
            "UPDATE checkin_dailyseed SET revealed_seed = repeat('ab', 32) WHERE day = %s", revealed.date()
        )
        verification = verify_day(revealed.date())
        assert "commitment" in {difference.what for difference in verification.differences}
        assert {difference.check_in_id for difference in verification.differences} > {None}

    def test_a_purged_modifier_proves_nothing(self, revealed: datetime) -> None:
        Modifier.objects.all().delete()
        assert verify_day(revealed.date()).differences == []

    def test_the_number_of_queries_does_not_grow_with_the_draws(
        self, revealed: datetime, django_assert_num_queries: Any
    ) -> None:
        assert CheckIn.objects.filter(day=revealed.date()).count() == 12
        tables = {
            (row.permanent_table_id, row.subscriber_table_id, row.experience_only)
            for row in CheckIn.objects.all()
        }
        # The seed, the check-ins; entries, experience and modifiers of all; the items of each pair of tables.
        with django_assert_num_queries(5 + len(tables)):
            verify_day(revealed.date())

    def test_a_day_is_verified_without_the_check_ins_of_another_day(
        self, revealed: datetime, now: datetime
    ) -> None:
        other = revealed - timedelta(days=1)
        execute(user=earner(), now=other)
        seeds.commit_and_reveal(now=now)
        assert verify_day(other.date()).check_ins == 1
        assert DailySeed.objects.filter(revealed_at__isnull=False).count() == 2


def _change_row(sql: str, which: int | date) -> None:
    """Change a row as an attacker with the database's password might, past the triggers."""
    assert tamper(sql, which) == 1
