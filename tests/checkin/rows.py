"""Drop tables as tests need them, and all rows that a check-in may touch."""

import random
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Max
from django.utils import timezone

from checkin.draw import Item
from checkin.models import CheckIn, DailySeed, DropItem, DropTable
from credits.models import CreditAccount, CreditEntry
from rewards.models import Badge, BadgeTrack, ExperienceEntry, Modifier, Progress
from tests.checkin.items import item
from tests.credits.allowances import set_allowance
from tests.database import rows_of
from tests.rewards.rows import set_experience
from users.models import User

_TABLES = (
    CheckIn,
    DailySeed,
    DropTable,
    DropItem,
    CreditAccount,
    CreditEntry,
    ExperienceEntry,
    Modifier,
    Progress,
)


def everything() -> dict[str, list[Any]]:
    """Return every row, to compare before and after a refusal."""
    return rows_of(*_TABLES)


def lowest(track: BadgeTrack) -> Badge:
    """Return the badge that newcomers wear."""
    return Badge.objects.get(track=track, exp_lower_bound=0)


def allow_attempts(attempts: int) -> None:
    """Let everybody check in so often a day; `conftest` takes the operator's bound back."""
    settings.CHECKIN_MAX_DAILY_ATTEMPTS = max(attempts, settings.CHECKIN_MAX_DAILY_ATTEMPTS)
    Badge.objects.filter(track=BadgeTrack.PERMANENT).update(bonus_daily_check_in_attempts=attempts - 1)


def draft_table(badge: Badge, items: list[Item], *, author: User | None = None) -> DropTable:
    """Write a draft."""
    last = DropTable.objects.filter(badge=badge).aggregate(last=Max("version"))["last"] or 0
    version = last + random.randint(1, 5)
    table = DropTable.objects.create(badge=badge, version=version, author=author)
    DropItem.objects.bulk_create([row_of(table, one) for one in items])
    return table


def put_in_force(badge: Badge, items: list[Item]) -> DropTable:
    """Publish a table of these items, past the rules of publishing."""
    table = draft_table(badge, items)
    table.published_at = timezone.now()
    table.save()
    return table


def only(drop_type: str, **chosen: Any) -> list[Item]:
    """Let newcomers win nothing but that type, and return the items now in force."""
    items = [item(drop_type, **chosen)]
    put_in_force(lowest(BadgeTrack.PERMANENT), items)
    return items


def row_of(table: DropTable, one: Item) -> DropItem:
    """Return an item as a row."""
    return DropItem(
        table=table,
        drop_type=one.drop_type,
        weight=one.weight,
        value_min=one.least,
        value_max=one.most,
        minutes=one.minutes,
        streak_days=one.streak_days,
    )


def subscribe(user: User, now: datetime) -> None:
    """Let the user's allowance run at `now`."""
    starts_at = now - timedelta(days=1)
    set_allowance(user=user, credits=1, starts_at=starts_at, ends_at=now + timedelta(days=20), renews=True)


def wear_the_top_badges(user: User) -> None:
    """Give the user the least experience of the highest badge on each track."""
    top_badges = Badge.objects.filter(exp_upper_bound=None).values_list("track", "exp_lower_bound")
    bounds = {f"{track.lower()}_experience": bound for track, bound in top_badges}
    set_experience(user, **bounds)
