"""
What follows from spending credits: experience, and a part of the cost that comes back.

Which part of a cost comes back: of many spenders at once, in three statements.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from credits.models import Allowance, CreditEntry, EntrySource
from credits.queries import paid_period
from credits.services import statements as credits_statements
from credits.services.holds import Closed, capture, close
from gateway.common import db
from rewards.benefits import benefits_of, credits_back
from rewards.models import Badge, BadgeTrack, Modifier
from rewards.services import statements as rewards_statements


def settle_many(*, costs: Mapping[int, int], now: datetime, capped: bool = False) -> None:
    """
    Close these holds at their costs in credits, and reward the users for what they paid.

    A hold at no cost is released. The permanent track gains each cost; badges and active
    modifiers decide how much of it comes back, as an entry of its own. With `capped` nobody
    pays more than was held. Runs inside the caller's transaction, which an error must end, in
    the same number of statements for any number of holds. A hold that was captured before
    stays as it is and rewards nothing.

    Raises:
        HoldReleased: one of them was released before, so its charge cannot be made.
        ValueError: a cost is negative.
    """
    closed = close(costs=costs, capped=capped)
    for hold_id in costs.keys() - {row.hold_id for row in closed}:
        capture(hold_id=hold_id, credits=costs[hold_id])
    charged = [(row, row.entry) for row in closed if row.entry is not None]
    if charged:
        _reward(charged, now)


def _reward(charged: Sequence[tuple[Closed, CreditEntry]], now: datetime) -> None:
    totals = _gain_experience(charged)
    shares = shares_back(
        spenders=[
            Spender(row.user_id, totals[entry.key], row.subscriber_experience) for row, entry in charged
        ],
        now=now,
    )
    returned = [
        (row.account_id, credits_back(cost=-entry.amount, fraction=share), f"back:{entry.key}")
        for (row, entry), share in zip(charged, shares, strict=True)
    ]
    _post_what_comes_back([part for part in returned if part[1]])


def _gain_experience(charged: Sequence[tuple[Closed, CreditEntry]]) -> dict[str, int]:
    """Let each cost count as experience; return the permanent track's total after each, by the entry's key."""
    gained = db.all_rows(
        rewards_statements.GAIN_EXPERIENCE,
        {
            "accounts": [row.account_id for row, _ in charged],
            "bases": [-entry.amount for _, entry in charged],
            "keys": [f"spent:{entry.key}" for _, entry in charged],
            "cause": EntrySource.RELAY_TRANSACTION,
        },
    )
    return {key.removeprefix("spent:"): total for key, total in gained}


def _post_what_comes_back(parts: Sequence[tuple[int, int, str]]) -> None:
    if not parts:
        return
    accounts, amounts, keys = (list(column) for column in zip(*parts, strict=True))
    params = {"accounts": accounts, "credits": amounts, "keys": keys, "source": EntrySource.CREDITS_BACK}
    db.all_rows(credits_statements.POST_ENTRIES, params)


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
