"""What a user has of rewards now: experience, badges, modifiers, and the benefits they amount to."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from credits.queries import (
    PERIOD_COLUMN_COUNT,
    PERIOD_COLUMNS,
    AllowanceView,
    period_from,
    running_allowance,
)
from gateway.common import db
from rewards.models import CREDIT_PARTS, Badge, BadgeTrack, Modifier, Progress
from rewards.rules import Benefits, benefits_of, progress_within
from users.models import User


@dataclass(frozen=True, kw_only=True)
class CurrentRewards:
    """
    A user's experience, badges and active modifiers, and the benefits they amount to.

    `subscriber_badge` is the lowest of its track for a user without an allowance,
    and then `benefits` leave it out.
    """

    progress: Progress
    allowance: AllowanceView | None
    permanent_badge: Badge
    subscriber_badge: Badge
    modifiers: list[Modifier]
    benefits: Benefits

    @property
    def is_subscriber(self) -> bool:
        return self.allowance is not None

    @property
    def permanent_fraction(self) -> Decimal:
        """Return how much of the permanent badge's range is done: 0 to 1."""
        return progress_within(badge=self.permanent_badge, experience=self.progress.permanent_experience)

    @property
    def cashback_remainder(self) -> Decimal:
        """Return the cashback that is no whole credit yet, as a part of one."""
        return Decimal(self.progress.cashback_remainder) / CREDIT_PARTS

    @property
    def subscriber_fraction(self) -> Decimal:
        """Return how much of the subscriber badge's range is done: 0 to 1."""
        return progress_within(badge=self.subscriber_badge, experience=self.progress.subscriber_experience)


def current_rewards(*, user: User, now: datetime) -> CurrentRewards:
    """Return the user's rewards at `now`, in three statements; modifiers go by the database's clock."""
    owner = User.objects.select_related("progress", "allowance").get(pk=user.pk)
    progress = getattr(owner, "progress", None) or Progress(user=owner)
    allowance = running_allowance(getattr(owner, "allowance", None), now=now)
    permanent, subscriber = badges_at(
        [
            (BadgeTrack.PERMANENT, progress.permanent_experience),
            (BadgeTrack.SUBSCRIBER, progress.subscriber_experience if allowance else 0),
        ]
    )
    modifiers = list(Modifier.objects.active().filter(user_id=user.pk).order_by("id"))
    return CurrentRewards(
        progress=progress,
        allowance=allowance,
        permanent_badge=permanent,
        subscriber_badge=subscriber,
        modifiers=modifiers,
        benefits=benefits_of(
            badges=[permanent, subscriber] if allowance else [permanent], modifiers=modifiers
        ),
    )


def badges_at(levels: Sequence[tuple[BadgeTrack, int]]) -> list[Badge]:
    """
    Return the badge of each track at that experience, in one statement.

    A track without badges answers with one that grants nothing.
    """
    params = {"tracks": [track for track, _ in levels], "experience": [total for _, total in levels]}
    rows = db.all_rows(_BADGES_AT, params)
    return [
        Badge(track=track, exp_lower_bound=0) if row[0] is None else db.instance(Badge, row)
        for (track, _), row in zip(levels, rows, strict=True)
    ]


_BADGES_AT = f"""
SELECT {db.columns(Badge, "badge")}
FROM unnest(%(tracks)s::text[], %(experience)s::bigint[]) WITH ORDINALITY AS level (track, experience, place)
LEFT JOIN LATERAL rewards_badge_at(level.track, level.experience) AS badge ON true
ORDER BY place
"""  # noqa: S608 (names of our own columns)


def debt_limit_of(*, user: User, now: datetime) -> int:
    """Return how many credits the user may owe at `now`, in one statement."""
    row = db.only_row(f"SELECT {DEBT_COLUMNS} FROM {debt_tables(user='%(user)s')}", {"user": user.pk})  # noqa: S608
    return debt_limit_from(row, now=now)


# What the badges of both tracks accept, and the allowance, without which the subscriber's does not count.
DEBT_COLUMNS = f"""coalesce(permanent.acceptable_credit_debt, 0), coalesce(subscriber.acceptable_credit_debt, 0),
{PERIOD_COLUMNS}"""
DEBT_COLUMN_COUNT = 2 + PERIOD_COLUMN_COUNT


def debt_tables(*, user: str) -> str:
    """Return what a statement joins laterally for `DEBT_COLUMNS`; `user` is an SQL expression for the user's id."""
    return f"""(
    SELECT coalesce(max(permanent_experience), 0) AS permanent, coalesce(max(subscriber_experience), 0) AS subscriber
    FROM rewards_progress WHERE user_id = {user}
) AS experience
LEFT JOIN LATERAL rewards_badge_at('PERMANENT', experience.permanent) AS permanent ON true
LEFT JOIN LATERAL rewards_badge_at('SUBSCRIBER', experience.subscriber) AS subscriber ON true
LEFT JOIN credits_allowance AS allowance ON allowance.user_id = {user}"""  # noqa: S608 (an expression of our own)


def debt_limit_from(columns: Sequence[Any], *, now: datetime) -> int:
    """Return the debt limit at `now` from the values of `DEBT_COLUMNS`."""
    limit, subscriber_limit, *allowance = columns
    if subscriber_limit <= limit:
        return int(limit)
    period = period_from(allowance)
    return int(subscriber_limit if period is not None and period.runs_at(now) else limit)
