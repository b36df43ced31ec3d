"""Reads of drop tables in force, a user's possible drops, and whether the user may check in."""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import StrEnum
from itertools import takewhile

from django.conf import settings
from django.db.models import Count, Max, Min, QuerySet

from checkin.draw import Item, probabilities_of, streak_levels, unlocked
from checkin.models import LONGEST_STREAK, CheckIn, DropItem, DropTable, DropType
from credits.queries import has_earned
from gateway.common import db
from gateway.common.statements import Statements
from gateway.staff.pauses import is_paused
from rewards.models import Badge
from rewards.queries import CurrentRewards
from users.models import User

# The name under which staff pause check-ins.
CHECK_INS = "check_ins"


class _Sql(Statements, file=__file__, table_columns=db.columns(DropTable, "newest")):
    in_force: str


@dataclass(frozen=True, kw_only=True)
class Tables:
    """The drop tables in force for a user's two badges; None if none is published for the track."""

    permanent: DropTable | None
    subscriber: DropTable | None


@dataclass(frozen=True, kw_only=True)
class DropRange:
    least: Decimal
    most: Decimal


class DropLimit(StrEnum):
    """Why some types cannot drop for a user."""

    NOTHING = "nothing"
    NOTHING_EARNED = "nothing-earned"
    NO_DROP_TABLE = "no-drop-table"


@dataclass(frozen=True, kw_only=True)
class CheckInStatus:
    """The check-in on the dashboard. `can_check_in` means that an attempt is left and a draw is possible."""

    tables: Tables
    drop_ranges: dict[DropType, DropRange]
    can_check_in: bool


def status_of(*, user: User, rewards: CurrentRewards, now: datetime) -> CheckInStatus:
    """Return the user's status, in five statements."""
    tables = tables_of(rewards)
    items = _drawn_now(user, items_for(rewards=rewards, tables=tables, is_proven=has_earned(user)), now)
    return CheckInStatus(
        tables=tables,
        drop_ranges=ranges_of(items),
        can_check_in=bool(items) and _may_draw(user=user, rewards=rewards, now=now),
    )


def drop_limit(*, user: User, rewards: CurrentRewards) -> DropLimit:
    """Return why drops are restricted for the user now, in two statements."""
    if tables_of(rewards).permanent is None:
        return DropLimit.NO_DROP_TABLE
    return DropLimit.NOTHING if has_earned(user) else DropLimit.NOTHING_EARNED


def drop_ranges(*, user: User, rewards: CurrentRewards, now: datetime) -> dict[DropType, DropRange]:
    """Return the range of every type that can drop for the user now, in three statements, or four with streaks."""
    items = items_for(rewards=rewards, tables=tables_of(rewards), is_proven=has_earned(user))
    return ranges_of(_drawn_now(user, items, now))


def _drawn_now(user: User, items: list[Item], now: datetime) -> list[Item]:
    """Return the items that a check-in of the user would draw from now."""
    return unlocked(items, streak=streak_of(items, user=user, day=day_of(now)))


def streak_of(items: list[Item], *, user: User, day: date) -> int | None:
    """Return the length of the streak with a check-in on `day`, which counts already; None if no item needs one."""
    return None if streak_levels(items) == [0] else streak_in(_days_before(user, day), day)


def streak_in(days: Container[date], day: date) -> int:
    """Return the length of the streak that ends on `day`, at most the longest; `days` have a check-in, `day` counts."""
    before = takewhile(lambda ago: day - timedelta(days=ago) in days, range(1, LONGEST_STREAK))
    return 1 + sum(1 for _ in before)


def _days_before(user: User, day: date) -> set[date]:
    earlier = CheckIn.objects.filter(
        user_id=user.pk, day__lt=day, day__gt=day - timedelta(days=LONGEST_STREAK)
    )
    return set(earlier.values_list("day", flat=True).distinct().order_by())


def _may_draw(*, user: User, rewards: CurrentRewards, now: datetime) -> bool:
    is_left = attempts_used(user=user, day=day_of(now)) < attempts_of(rewards)
    return is_left and not is_paused(CHECK_INS)


def attempts_of(rewards: CurrentRewards) -> int:
    """Return how many check-ins the user has each day: those that the badges give, up to the operator's limit."""
    return min(settings.CHECKIN_MAX_DAILY_ATTEMPTS, rewards.benefits.check_in_attempts)


def spent_attempts_of_today(user: User, now: datetime) -> str:
    """Return why a user who has checked in today cannot be erased yet (a new account could check in again), or ''."""
    return "the day of a check-in is not over" if attempts_used(user=user, day=day_of(now)) else ""


def tables_of(rewards: CurrentRewards) -> Tables:
    """Return the tables in force for the user's two badges."""
    by_track = tables_in_force([rewards.permanent_badge, rewards.subscriber_badge])
    return Tables(
        permanent=by_track.get(rewards.permanent_badge.track),
        subscriber=by_track.get(rewards.subscriber_badge.track),
    )


def tables_in_force(badges: Iterable[Badge]) -> dict[str, DropTable]:
    """
    Return the newest published table of each badge, by track.

    A badge without a table uses that of the nearest badge below it, so that a new badge
    does not stop its users' check-ins.
    """
    levels = [(badge.track, badge.exp_lower_bound) for badge in badges]
    params = {"tracks": [track for track, _ in levels], "bounds": [bound for _, bound in levels]}
    return {track: db.instance(DropTable, table) for track, *table in db.all_rows(_Sql.in_force, params)}


def items_for(*, rewards: CurrentRewards, tables: Tables, is_proven: bool) -> list[Item]:
    """
    Return the user's items: the permanent table's, then the subscriber table's while the allowance runs.

    Some may wait for a longer streak; `draw.unlocked` removes them.

    Users without a kept payment or earning (`is_proven` is false) can win only experience, because
    identities are free. Without a permanent table nothing can drop: the subscriber table only adds to it.
    """
    if tables.permanent is None:
        return []
    added = [tables.subscriber] if tables.subscriber and rewards.is_subscriber else []
    items = items_of([tables.permanent, *added])
    return [item for item in items if is_proven or item.drop_type == DropType.EXPERIENCE]


def items_of(tables: list[DropTable]) -> list[Item]:
    """Return the items of the tables in order, each table's in the order of creation."""
    rows = list(DropItem.objects.filter(table__in=tables).order_by("id"))
    return [item_of(row) for table in tables for row in rows if row.table_id == table.pk]


def item_of(row: DropItem) -> Item:
    return Item(
        drop_type=row.drop_type,
        weight=row.weight,
        least=row.value_min,
        most=row.value_max,
        minutes=row.minutes,
        streak_days=row.streak_days,
    )


def most_attempts(badge: Badge) -> int:
    """
    Return the highest number of daily attempts of the users of the badge's table.

    The table's users have this badge, or one above it that has no table of its own, and at
    best the highest badge of the other track. The number never exceeds the operator's limit.
    """
    above = Badge.objects.filter(track=badge.track, exp_lower_bound__gt=badge.exp_lower_bound)
    next_own = above.filter(drop_tables__published_at__isnull=False).aggregate(at=Min("exp_lower_bound"))[
        "at"
    ]
    sharing = above if next_own is None else above.filter(exp_lower_bound__lt=next_own)
    bonuses = [badge.bonus_daily_check_in_attempts, _most_bonus(sharing)]
    given = 1 + max(bonuses) + _most_bonus(Badge.objects.exclude(track=badge.track))
    return min(settings.CHECKIN_MAX_DAILY_ATTEMPTS, given)


def _most_bonus(badges: QuerySet[Badge]) -> int:
    most: int | None = badges.aggregate(most=Max("bonus_daily_check_in_attempts"))["most"]
    return most or 0


def ranges_of(items: list[Item]) -> dict[DropType, DropRange]:
    ranges = {}
    for drop_type in DropType:
        of_type = [item for item in items if item.drop_type == drop_type]
        ranges[drop_type] = DropRange(
            least=min((item.least for item in of_type), default=Decimal(0)),
            most=max((item.most for item in of_type), default=Decimal(0)),
        )
    return ranges


def attempts_used(*, user: User, day: date) -> int:
    last: int | None = CheckIn.objects.filter(user_id=user.pk, day=day).aggregate(last=Max("attempt"))["last"]
    return last or 0


def day_of(now: datetime) -> date:
    return now.astimezone(UTC).date()


def next_midnight(now: datetime) -> datetime:
    return datetime.combine(day_of(now) + timedelta(days=1), time.min, tzinfo=UTC)


DAYS_OF_CALENDAR = 7


@dataclass(frozen=True, kw_only=True)
class Chance:
    """A possible drop: its probability, and its least and largest value."""

    item: Item
    probability: float


@dataclass(frozen=True, kw_only=True)
class NextDrop:
    """A drop that becomes possible after check-ins on `in_days` more days in a row."""

    item: Item
    in_days: int


@dataclass(frozen=True, kw_only=True)
class Calendar:
    """
    The user's recent check-ins. `days` are the last seven UTC days with the number of check-ins, oldest first.

    `streak` is the number of consecutive days with a check-in, up to today, or up to yesterday if today has none yet.
    `next_at` is the time of the next possible attempt; None if an attempt is left today.
    """

    days: list[tuple[date, int]]
    streak: int
    attempts_left: int
    can_check_in: bool
    next_at: datetime | None
    chances: list[Chance]
    next_drop: NextDrop | None


def calendar_of(*, user: User, rewards: CurrentRewards, now: datetime) -> Calendar:
    """Return the user's calendar, in six statements."""
    today = day_of(now)
    counts = dict(
        CheckIn.objects.filter(
            user_id=user.pk, day__gt=today - timedelta(days=LONGEST_STREAK), day__lte=today
        )
        .values_list("day")
        .annotate(Count("pk"))
        .order_by()
    )
    of_user = items_for(rewards=rewards, tables=tables_of(rewards), is_proven=has_earned(user))
    items = unlocked(of_user, streak=streak_in(counts, today))
    streak = _streak(counts, today)
    left = max(0, attempts_of(rewards) - counts.get(today, 0))
    shown = [today - timedelta(days=ago) for ago in reversed(range(DAYS_OF_CALENDAR))]
    return Calendar(
        days=[(day, counts.get(day, 0)) for day in shown],
        streak=streak,
        attempts_left=left,
        can_check_in=bool(items) and left > 0 and not is_paused(CHECK_INS),
        next_at=None if left else next_midnight(now),
        chances=[
            Chance(item=item, probability=float(chance))
            for item, chance in zip(items, probabilities_of(items), strict=True)
        ],
        next_drop=_next_drop([item for item in of_user if item not in items], streak),
    )


def _next_drop(locked: list[Item], streak: int) -> NextDrop | None:
    """Return the drop that unlocks first; of several, the most likely one."""
    first = min(locked, key=lambda item: (item.streak_days, -item.weight), default=None)
    return None if first is None else NextDrop(item=first, in_days=first.streak_days - streak)


def _streak(counts: Mapping[date, int], today: date) -> int:
    return streak_in(counts, today) - (0 if today in counts else 1)
