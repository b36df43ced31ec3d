from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q

from credits.allowances import PaidPeriod
from credits.models import CreditAccount
from credits.queries import AllowanceView, account_of, current_allowance
from gateway.common import db
from rewards.benefits import Benefits, benefits_of
from rewards.models import Badge, BadgeTrack, Modifier
from users.models import User


@dataclass(frozen=True, kw_only=True)
class Standing:
    """
    A user's standing: credits, experience, badges and what they are worth together.

    `subscriber_badge` is the lowest of its ladder for a user without an allowance,
    and then `benefits` leave it out.
    """

    account: CreditAccount
    allowance: AllowanceView | None
    permanent_badge: Badge
    subscriber_badge: Badge
    modifiers: list[Modifier]
    benefits: Benefits

    @property
    def is_subscriber(self) -> bool:
        return self.allowance is not None


def standing_of(*, user: User, now: datetime) -> Standing:
    """Return the user's standing at `now`, in four statements; modifiers go by the database's clock."""
    account = account_of(user) or CreditAccount(user_id=user.pk)
    allowance = current_allowance(user=user, now=now)
    permanent, subscriber = badges_at(
        permanent_experience=account.permanent_experience,
        subscriber_experience=account.subscriber_experience if allowance else 0,
    )
    modifiers = list(Modifier.objects.active().filter(user_id=user.pk).order_by("id"))
    return Standing(
        account=account,
        allowance=allowance,
        permanent_badge=permanent,
        subscriber_badge=subscriber,
        modifiers=modifiers,
        benefits=benefits_of(
            badges=[permanent, subscriber] if allowance else [permanent], modifiers=modifiers
        ),
    )


def debt_limit_of(*, user: User, now: datetime) -> int:
    """Return how many credits the user may owe at `now`, in one statement."""
    (limit, more, *allowance) = db.only_row(_DEBT_LIMITS, {"user": user.pk})
    if more <= limit or allowance[0] is None:
        return int(limit)
    names = ("credits", "starts_at", "ends_at", "resets_at", "renews")
    period = PaidPeriod(**dict(zip(names, allowance, strict=True)))
    return int(more if period.runs_at(now) else limit)


# What the badges worn on both ladders accept, and the allowance, without which the subscriber's does not count.
_DEBT_LIMITS = """
SELECT coalesce(permanent.acceptable_credit_debt, 0), coalesce(subscriber.acceptable_credit_debt, 0),
       allowance.credits, allowance.starts_at, allowance.ends_at, allowance.resets_at, allowance.renews
FROM (SELECT coalesce(max(permanent_experience), 0) AS permanent,
             coalesce(max(subscriber_experience), 0) AS subscriber
      FROM credits_account WHERE user_id = %(user)s) AS experience
LEFT JOIN rewards_badge AS permanent
    ON permanent.track = 'PERMANENT' AND permanent.exp_lower_bound <= experience.permanent
   AND (permanent.exp_upper_bound IS NULL OR permanent.exp_upper_bound > experience.permanent)
LEFT JOIN rewards_badge AS subscriber
    ON subscriber.track = 'SUBSCRIBER' AND subscriber.exp_lower_bound <= experience.subscriber
   AND (subscriber.exp_upper_bound IS NULL OR subscriber.exp_upper_bound > experience.subscriber)
LEFT JOIN credits_allowance AS allowance ON allowance.user_id = %(user)s
"""


def badges_at(*, permanent_experience: int, subscriber_experience: int) -> tuple[Badge, Badge]:
    """Return the badges of both ladders at that experience; without a ladder, a badge that grants nothing."""
    worn = Badge.objects.filter(
        _range_of(BadgeTrack.PERMANENT, permanent_experience)
        | _range_of(BadgeTrack.SUBSCRIBER, subscriber_experience)
    )
    by_track = {badge.track: badge for badge in worn}
    return _worn_or_none(by_track, BadgeTrack.PERMANENT), _worn_or_none(by_track, BadgeTrack.SUBSCRIBER)


def _worn_or_none(by_track: dict[str, Badge], track: BadgeTrack) -> Badge:
    return by_track.get(track) or Badge(track=track, exp_lower_bound=0)


def _range_of(track: BadgeTrack, experience: int) -> Q:
    above = Q(exp_upper_bound=None) | Q(exp_upper_bound__gt=experience)
    return Q(above, track=track, exp_lower_bound__lte=experience)
