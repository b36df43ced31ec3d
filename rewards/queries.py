"""Reads of a user's experience, badges, modifiers and benefits."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from credits.queries import AllowanceView, period_runs, running_allowance
from gateway.common import db
from gateway.common.statements import Statements, fill
from rewards.models import CREDIT_PARTS, Badge, BadgeTrack, Modifier, Progress
from rewards.rules import Benefits, benefits_of, counted_fractions, progress_within
from users.models import User


class _Sql(Statements, file=__file__, badge_columns=db.columns(Badge, "badge")):
    badges_at: str
    badge_debt: str
    debt_limit_of: str


@dataclass(frozen=True, kw_only=True)
class CurrentRewards:
    """
    A user's experience, badges and active modifiers, and the resulting benefits.

    For a user without an allowance, `subscriber_badge` is the lowest of its track and does
    not count in `benefits`.
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
    def counted_modifiers(self) -> list[tuple[Modifier, Decimal]]:
        """Return the active modifiers, oldest first, each with the fraction that it adds under the cap of its type."""
        return list(counted_fractions(self.modifiers))

    @property
    def permanent_fraction(self) -> Decimal:
        """Return the completed fraction of the permanent badge's range, 0 to 1."""
        return progress_within(badge=self.permanent_badge, experience=self.progress.permanent_experience)

    @property
    def cashback_remainder(self) -> Decimal:
        """Return the cashback below one credit, as a fraction of a credit."""
        return Decimal(self.progress.cashback_remainder) / CREDIT_PARTS

    @property
    def subscriber_fraction(self) -> Decimal:
        """Return the completed fraction of the subscriber badge's range, 0 to 1."""
        return progress_within(badge=self.subscriber_badge, experience=self.progress.subscriber_experience)


def current_rewards(*, user: User, now: datetime) -> CurrentRewards:
    """Return the user's rewards at `now`, in three statements; modifiers use the database's clock."""
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

    A track without badges returns a badge without benefits.
    """
    params = {"tracks": [track for track, _ in levels], "experience": [total for _, total in levels]}
    rows = db.all_rows(_Sql.badges_at, params)
    return [
        Badge(track=track, exp_lower_bound=0) if row[0] is None else db.instance(Badge, row)
        for (track, _), row in zip(levels, rows, strict=True)
    ]


def debt_limit_of(*, user: User, now: datetime) -> int:
    """Return how many credits the user may owe at `now`, in one statement."""
    (limit,) = db.only_row(_DEBT_LIMIT_OF, {"user": user.pk, "now": now})
    return int(limit)


def badge_debt_of(*, user: User, now: datetime) -> int:
    """Return the debt limit of the user's badges at `now`, in one statement."""
    (limit,) = db.only_row(_BADGE_DEBT_OF, {"user": user.pk, "now": now})
    return int(limit)


def badge_debt(*, user: str, now: str) -> str:
    """
    Return SQL for the debt limit of a user's badges; `user` (an id) and `now` are SQL expressions.

    It is the permanent badge's limit or, while an allowance runs, the subscriber badge's limit if that is larger.
    """
    return fill(_Sql.badge_debt, {"user": user, "now": now, "period_runs": period_runs(now=now)})


_BADGE_DEBT_OF = badge_debt(user="%(user)s", now="%(now)s")
_DEBT_LIMIT_OF = fill(_Sql.debt_limit_of, {"badge_debt": _BADGE_DEBT_OF})
