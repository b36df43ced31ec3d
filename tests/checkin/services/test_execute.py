"""A check-in draws once and takes effect at once."""

import random
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import DataError

from checkin import queries
from checkin.draw import Drop, draw
from checkin.errors import CheckInsNotReady, CheckInUnavailable
from checkin.models import CheckIn, DropTable, DropType
from checkin.queries import items_of
from checkin.services import checkins, seeds
from checkin.services.checkins import execute, identity_of
from credits.models import CreditAccount, CreditEntry
from credits.queries import balance_of
from rewards.models import Badge, BadgeTrack, ExperienceEntry, Modifier
from rewards.queries import current_rewards
from tests.checkin.items import TYPES, drop_of, item
from tests.checkin.rows import allow_attempts, everything, lowest, only, put_in_force, subscribe
from tests.rewards.rows import experience_of
from users.models import User

pytestmark = pytest.mark.django_db


def test_credits_are_posted_to_the_account(proven: User, now: datetime) -> None:
    only("CREDITS")
    before = balance_of(proven).balance

    check_in = execute(user=proven, now=now)

    value = int(check_in.result["value"])
    assert balance_of(proven).balance == before + value
    entry = CreditEntry.objects.get(key=check_in.effect_key)
    assert (entry.amount, entry.source, entry.account.user_id) == (value, "CHECK_IN", proven.pk)
    assert not ExperienceEntry.objects.exists()
    assert not Modifier.objects.exists()


def test_experience_grows_the_permanent_track_at_the_badges_rate(proven: User, now: datetime) -> None:
    badge = lowest(BadgeTrack.PERMANENT)
    badge.exp_growth_rate = Decimal("1.5")
    badge.save()
    only("EXPERIENCE")

    check_in = execute(user=proven, now=now)

    value = int(check_in.result["value"])
    assert experience_of(proven) == (value * 3 // 2, 0)
    assert ExperienceEntry.objects.get(key=check_in.effect_key).base == value
    assert CreditEntry.objects.filter(source="CHECK_IN").count() == 0
    assert not Modifier.objects.exists()


@pytest.mark.parametrize("drop_type", TYPES[2:])
def test_a_bonus_runs_for_its_minutes(proven: User, now: datetime, drop_type: str) -> None:
    [offered] = only(drop_type)

    check_in = execute(user=proven, now=now)

    modifier = Modifier.objects.get(key=check_in.effect_key)
    assert (modifier.user_id, modifier.modifier_type) == (proven.pk, drop_type)
    assert modifier.value == Decimal(check_in.result["value"])
    assert modifier.expires_at - modifier.created_at == timedelta(minutes=offered.minutes or 0)
    assert list(Modifier.objects.active()) == [modifier]
    assert not ExperienceEntry.objects.exists()
    assert CreditEntry.objects.filter(source="CHECK_IN").count() == 0


def test_a_drop_is_rolled_for_every_item_and_one_is_awarded(proven: User, now: datetime) -> None:
    offered = [item(name) for name in TYPES]
    put_in_force(lowest(BadgeTrack.PERMANENT), offered)

    check_in = execute(user=proven, now=now)

    drops = [drop_of(stored) for stored in check_in.possible_results]
    assert [(drop.drop_type, drop.minutes) for drop in drops] == [(o.drop_type, o.minutes) for o in offered]
    assert all(o.least <= drop.value <= o.most for o, drop in zip(offered, drops, strict=True))
    assert check_in.result == check_in.possible_results[check_in.result_place]


def test_a_subscriber_draws_from_both_tables(proven: User, now: datetime) -> None:
    mine = put_in_force(lowest(BadgeTrack.PERMANENT), [item("EXPERIENCE"), item("CREDITS")])
    subscribers = put_in_force(
        lowest(BadgeTrack.SUBSCRIBER), [item("BONUS_CREDITS_BACK"), item("EXPERIENCE")]
    )
    subscribe(proven, now)

    check_in = execute(user=proven, now=now)

    types = [stored["type"] for stored in check_in.possible_results]
    assert types == ["EXPERIENCE", "CREDITS", "BONUS_CREDITS_BACK", "EXPERIENCE"]
    assert (check_in.permanent_table, check_in.subscriber_table) == (mine, subscribers)


def test_without_an_allowance_the_subscriber_table_is_left_out(proven: User, now: datetime) -> None:
    mine = put_in_force(lowest(BadgeTrack.PERMANENT), [item("EXPERIENCE")])
    subscribe(proven, now - timedelta(days=90))

    check_in = execute(user=proven, now=now)

    assert (check_in.permanent_table, check_in.subscriber_table) == (mine, None)
    assert len(check_in.possible_results) == 1


def test_a_user_who_has_neither_paid_nor_earned_wins_only_experience(user: User, now: datetime) -> None:
    allow_attempts(30)
    for _ in range(30):
        check_in = execute(user=user, now=now)
        assert {stored["type"] for stored in check_in.possible_results} == {"EXPERIENCE"}
        assert check_in.experience_only
    assert not CreditEntry.objects.exists()
    assert not Modifier.objects.exists()


def test_the_draw_is_the_one_that_seed_and_tables_give(proven: User, now: datetime) -> None:
    check_in = execute(user=proven, now=now)

    again = draw(
        seed=seeds.secret_seed_of(check_in.seed),
        identity=identity_of(check_in, profile_address=str(proven.profile_address)),
        items=items_of([check_in.permanent_table]),
    )
    assert [checkins.as_json(drop) for drop in again.possible] == check_in.possible_results
    assert again.chosen == check_in.result_place


def test_each_attempt_of_a_day_is_a_draw_of_its_own(proven: User, now: datetime) -> None:
    attempts = random.randint(2, 5)
    allow_attempts(attempts)
    # A draw may promote the user, so every badge has the table.
    for badge in Badge.objects.filter(track=BadgeTrack.PERMANENT):
        put_in_force(badge, [item("EXPERIENCE", least=Decimal(1), most=Decimal(10**8))])

    drawn = [execute(user=proven, now=now) for _ in range(attempts)]

    assert [check_in.attempt for check_in in drawn] == list(range(1, attempts + 1))
    assert len({check_in.result["value"] for check_in in drawn}) == attempts


def test_no_badges_give_more_attempts_than_the_operator(proven: User, now: datetime, settings: Any) -> None:
    settings.CHECKIN_MAX_DAILY_ATTEMPTS = 2
    Badge.objects.update(bonus_daily_check_in_attempts=32_767)
    subscribe(proven, now)
    for left in (2, 1):
        board = queries.status_of(user=proven, rewards=current_rewards(user=proven, now=now), now=now)
        assert board.can_check_in, left
        execute(user=proven, now=now)
    before = everything()
    with pytest.raises(CheckInUnavailable):
        execute(user=proven, now=now)
    assert everything() == before
    rewards = current_rewards(user=proven, now=now)
    assert not queries.status_of(user=proven, rewards=rewards, now=now).can_check_in
    assert queries.most_attempts(rewards.permanent_badge) == 2


def test_more_than_the_attempts_of_the_day_are_refused_and_change_nothing(
    proven: User, now: datetime
) -> None:
    attempts = random.randint(1, 4)
    allow_attempts(attempts)
    for _ in range(attempts):
        execute(user=proven, now=now)
    before = everything()

    with pytest.raises(CheckInUnavailable) as refused:
        execute(user=proven, now=now)

    tomorrow = (now + timedelta(days=1)).strftime("%Y-%m-%dT00:00:00Z")
    assert refused.value.members == {"nextCheckInAt": tomorrow}
    assert everything() == before


def test_a_badge_of_subscribers_adds_attempts_while_the_allowance_runs(proven: User, now: datetime) -> None:
    bronze = lowest(BadgeTrack.SUBSCRIBER)
    bronze.bonus_daily_check_in_attempts = 1
    bronze.save()
    execute(user=proven, now=now)
    with pytest.raises(CheckInUnavailable):
        execute(user=proven, now=now)

    subscribe(proven, now)

    assert execute(user=proven, now=now).attempt == 2


def test_the_day_ends_at_midnight_in_utc(proven: User, now: datetime) -> None:
    last = now.replace(hour=23, minute=59, second=59, microsecond=999_999)
    execute(user=proven, now=last)
    with pytest.raises(CheckInUnavailable):
        execute(user=proven, now=last)

    next_day = execute(user=proven, now=last + timedelta(microseconds=1))

    assert (next_day.day, next_day.attempt) == (last.date() + timedelta(days=1), 1)
    assert next_day.seed.day == next_day.day
    assert CheckIn.objects.count() == 2


def test_without_a_published_table_there_is_nothing_to_draw(proven: User, now: datetime) -> None:
    DropTable.objects.update(badge=None)
    before = everything()

    with pytest.raises(CheckInsNotReady):
        execute(user=proven, now=now)

    assert everything() == before


def test_the_newest_published_table_is_drawn_from_and_drafts_are_not(proven: User, now: datetime) -> None:
    allow_attempts(3)
    badge = lowest(BadgeTrack.PERMANENT)
    for _ in range(2):
        newest = put_in_force(badge, [item("CREDITS"), item("EXPERIENCE")])
        DropTable.objects.create(badge=badge, version=newest.version + 10)
        assert execute(user=proven, now=now).permanent_table == newest


def test_a_drop_that_cannot_take_effect_uses_no_attempt(proven: User, now: datetime) -> None:
    only("CREDITS", least=Decimal(100), most=Decimal(200))
    CreditAccount.objects.update(balance=2**63 - 50)
    before = everything()

    with pytest.raises(DataError, match="out of range"):
        execute(user=proven, now=now)

    assert everything() == before


def test_a_drop_survives_being_stored() -> None:
    for name in DropType.values:
        offered = item(name)
        drop: Drop = offered.drop_at(random.randrange(offered.values))
        assert drop_of(checkins.as_json(drop)) == drop
