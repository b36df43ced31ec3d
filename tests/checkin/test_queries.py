"""What may drop, whether the user may check in, and in how many statements that is read."""

import random
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from checkin import queries
from checkin.errors import CheckInsNotReady
from checkin.models import CheckIn, DropTable, DropType
from checkin.services.checkins import execute
from credits.models import EntrySource
from credits.queries import has_earned
from credits.services import entries
from rewards.models import Badge, BadgeTrack
from rewards.queries import current_rewards
from tests.checkin.conftest import earner
from tests.checkin.items import TYPES, item
from tests.checkin.rows import allow_attempts, draft_table, everything, lowest, only, put_in_force, subscribe
from tests.factories import UserFactory
from users.models import User

pytestmark = pytest.mark.django_db
_NOTHING = (Decimal(0), Decimal(0))


def ranges_for(user: User, now: datetime) -> dict[str, tuple[Decimal, Decimal]]:
    """Return the user's ranges, by type."""
    ranges = queries.drop_ranges(user=user, rewards=current_rewards(user=user, now=now), now=now)
    return {str(name): (span.least, span.most) for name, span in ranges.items()}


def test_ranges_span_all_items_of_a_type_in_both_tables(proven: User, now: datetime) -> None:
    mine, subscribers = ([item(name) for name in random.choices(TYPES, k=6)] for _ in range(2))
    put_in_force(lowest(BadgeTrack.PERMANENT), mine)
    put_in_force(lowest(BadgeTrack.SUBSCRIBER), subscribers)

    def expected(items: list[Any]) -> dict[str, tuple[Decimal, Decimal]]:
        spans = {}
        for name in DropType.values:
            of = [one for one in items if one.drop_type == name]
            spans[name] = (min(one.least for one in of), max(one.most for one in of)) if of else _NOTHING
        return spans

    assert ranges_for(proven, now) == expected(mine)
    subscribe(proven, now)
    assert ranges_for(proven, now) == expected(mine + subscribers)


def test_before_any_payment_or_earning_only_experience_has_a_range(user: User, now: datetime) -> None:
    entries.adjust(user=user, credits=5, key="gift", actor=None, reason="a gift proves nothing")
    shown = ranges_for(user, now)
    assert {name for name, span in shown.items() if span != _NOTHING} == {"EXPERIENCE"}


@pytest.mark.parametrize("source", EntrySource.values)
def test_only_payments_and_earnings_prove_a_user(user: User, source: str) -> None:
    proofs = {"SUBSCRIBED_PAYOUT", "CREDIT_PURCHASE", "PUSH_ADS", "VIDEO_ADS", "OFFERWALL", "SURVEYS"}
    if source in {"RELAY_TRANSACTION", "STAFF_ADJUSTMENT"}:
        entries.adjust(user=user, credits=5, key=source, actor=None, reason="by hand")
    else:
        entries.grant(user=user, credits=5, source=source, key=source)
    entries.grant(user=UserFactory.create(), credits=5, source="SURVEYS", key="another user's")
    assert has_earned(user) is (source in proofs)


def test_a_badge_without_a_table_draws_from_the_next_lower_one() -> None:
    badges = list(Badge.objects.filter(track=BadgeTrack.PERMANENT).order_by("exp_lower_bound"))
    place = random.randint(1, len(badges) - 1)
    DropTable.objects.filter(badge=badges[place]).update(badge=None)
    below = DropTable.objects.get(badge=badges[place - 1])
    assert queries.tables_in_force([badges[place]]) == {BadgeTrack.PERMANENT: below}


def test_without_any_table_none_is_in_force_and_nothing_may_drop(proven: User, now: datetime) -> None:
    DropTable.objects.update(badge=None)
    assert queries.tables_in_force([lowest(BadgeTrack.PERMANENT)]) == {}
    assert set(ranges_for(proven, now).values()) == {_NOTHING}


def test_the_board_shows_tables_ranges_and_whether_an_attempt_is_left(proven: User, now: datetime) -> None:
    attempts = random.randint(1, 3)
    allow_attempts(attempts)
    for used in range(attempts + 1):
        rewards = current_rewards(user=proven, now=now)
        board = queries.status_of(user=proven, rewards=rewards, now=now)
        assert board.can_check_in is (used < attempts)
        badges = [rewards.permanent_badge, rewards.subscriber_badge]
        assert [board.tables.permanent, board.tables.subscriber] == [
            DropTable.objects.get(badge=badge) for badge in badges
        ]
        assert board.drop_ranges == queries.drop_ranges(user=proven, rewards=rewards, now=now)
        if used < attempts:
            execute(user=proven, now=now)
    tomorrow = now + timedelta(days=1)
    assert queries.status_of(user=proven, rewards=rewards, now=tomorrow).can_check_in


def _no_table_at_all(_: User, __: datetime) -> None:
    DropTable.objects.update(badge=None)


def _subscribers_alone_have_a_table(user: User, now: datetime) -> None:
    DropTable.objects.filter(badge__track=BadgeTrack.PERMANENT).update(badge=None)
    subscribe(user, now)


def _a_table_without_items(_: User, __: datetime) -> None:
    put_in_force(lowest(BadgeTrack.PERMANENT), [])


@pytest.mark.parametrize(
    "nothing_to_draw", [_no_table_at_all, _subscribers_alone_have_a_table, _a_table_without_items]
)
def test_without_a_table_to_draw_from_no_user_can_check_in(
    proven: User, now: datetime, nothing_to_draw: Callable[[User, datetime], None]
) -> None:
    nothing_to_draw(proven, now)
    board = queries.status_of(user=proven, rewards=current_rewards(user=proven, now=now), now=now)
    assert not board.can_check_in
    assert {(span.least, span.most) for span in board.drop_ranges.values()} == {_NOTHING}
    before = everything()
    with pytest.raises(CheckInsNotReady):
        execute(user=proven, now=now)
    assert everything() == before


def test_newcomers_without_possible_drops_cannot_check_in(user: User, now: datetime) -> None:
    only("CREDITS")
    board = queries.status_of(user=user, rewards=current_rewards(user=user, now=now), now=now)
    assert not board.can_check_in
    with pytest.raises(CheckInsNotReady):
        execute(user=user, now=now)
    assert not CheckIn.objects.exists()


def test_the_board_runs_five_queries_regardless_of_history(
    proven: User, now: datetime, django_assert_num_queries: Any
) -> None:
    allow_attempts(9)
    for age in range(4):
        rewards = current_rewards(user=proven, now=now)
        with django_assert_num_queries(5):
            queries.status_of(user=proven, rewards=rewards, now=now)
        with django_assert_num_queries(3):
            queries.drop_ranges(user=proven, rewards=rewards, now=now)
        for _ in range(3):
            execute(user=proven, now=now - timedelta(days=age))
            put_in_force(rewards.permanent_badge, [item("EXPERIENCE"), item("CREDITS")])


def test_a_check_in_runs_the_same_queries_regardless_of_history(
    now: datetime, django_assert_num_queries: Any
) -> None:
    allow_attempts(50)
    put_in_force(lowest(BadgeTrack.PERMANENT), [item("EXPERIENCE", least=Decimal(1), most=Decimal(2))])
    user = earner()
    execute(user=user, now=now)
    # Savepoint, pause, attempts, rewards (3), tables, earned, seed, items, the row, its effect, release.
    for _ in range(5):
        with django_assert_num_queries(13):
            execute(user=user, now=now)
    # A repeat: savepoint, the row, release.
    execute(user=user, now=now, idempotency_key="again")
    with django_assert_num_queries(3):
        execute(user=user, now=now, idempotency_key="again")


def test_the_most_attempts_add_the_best_of_the_other_track(settings: Any) -> None:
    settings.CHECKIN_MAX_DAILY_ATTEMPTS = 6
    Badge.objects.update(bonus_daily_check_in_attempts=0)
    Badge.objects.filter(track=BadgeTrack.SUBSCRIBER).update(bonus_daily_check_in_attempts=2)
    Badge.objects.filter(track=BadgeTrack.PERMANENT).update(bonus_daily_check_in_attempts=3)
    assert queries.most_attempts(lowest(BadgeTrack.PERMANENT)) == 6
    Badge.objects.filter(track=BadgeTrack.SUBSCRIBER).delete()
    assert queries.most_attempts(lowest(BadgeTrack.PERMANENT)) == 4


def test_the_attempts_of_badges_that_share_a_table_count(settings: Any) -> None:
    settings.CHECKIN_MAX_DAILY_ATTEMPTS = 99
    Badge.objects.update(bonus_daily_check_in_attempts=0)
    badges = list(Badge.objects.filter(track=BadgeTrack.PERMANENT).order_by("exp_lower_bound"))
    for place, badge in enumerate(badges):
        Badge.objects.filter(pk=badge.pk).update(bonus_daily_check_in_attempts=place)
    last = len(badges) - 1
    shared = random.randrange(1, last)
    DropTable.objects.filter(badge=badges[shared]).update(badge=None)
    assert queries.most_attempts(badges[shared - 1]) == 1 + shared
    DropTable.objects.filter(badge__in=badges[shared:]).update(badge=None)
    assert queries.most_attempts(badges[shared - 1]) == 1 + last
    draft_table(badges[shared], [])
    assert queries.most_attempts(badges[shared - 1]) == 1 + last


def test_the_items_of_these_tests_have_every_type() -> None:
    assert set(DropType.values) == set(TYPES)
