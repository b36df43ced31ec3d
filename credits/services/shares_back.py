"""Which part of a cost comes back: of many spenders at once, in three statements."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from credits.benefits import benefits_of
from credits.models import Allowance, Badge, BadgeTrack, Modifier
from credits.queries import paid_period


class Spender(NamedTuple):
    """A user with the experience that decides which badges are worn."""

    user_id: int
    permanent_experience: int
    subscriber_experience: int


def shares_back(*, spenders: Sequence[Spender], now: datetime) -> list[Decimal]:
    """Return, for each spender, the fraction of a cost that comes back at `now`, as `Benefits.credits_back`."""
    users = {spender.user_id for spender in spenders}
    allowances = Allowance.objects.filter(user_id__in=users)
    subscribers = {row.user_id for row in allowances if paid_period(row).runs_at(now)}
    ladders = list(Badge.objects.all())
    modifiers = defaultdict(list)
    for modifier in Modifier.objects.active().filter(user_id__in=users):
        modifiers[modifier.user_id].append(modifier)
    return [
        benefits_of(
            badges=_worn(ladders, spender, is_subscriber=spender.user_id in subscribers),
            modifiers=modifiers[spender.user_id],
        ).credits_back
        for spender in spenders
    ]


def _worn(ladders: Sequence[Badge], spender: Spender, *, is_subscriber: bool) -> list[Badge]:
    experience = {BadgeTrack.PERMANENT: spender.permanent_experience}
    if is_subscriber:
        experience[BadgeTrack.SUBSCRIBER] = spender.subscriber_experience
    return [
        badge
        for badge in ladders
        if (total := experience.get(BadgeTrack(badge.track))) is not None
        and badge.exp_lower_bound <= total
        and (badge.exp_upper_bound is None or total < badge.exp_upper_bound)
    ]
