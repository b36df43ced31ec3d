"""
What follows from spending credits: experience, and a part of the cost that comes back.

Of many holds at once, in a fixed number of statements. The ledger is written through the SQL of
`credits.services.statements`.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from credits.models import Allowance, CreditEntry, EntrySource
from credits.queries import paid_period
from credits.services import statements as credits_statements
from credits.services.holds import ClosedHold, capture, close
from gateway.common import db
from rewards.models import BadgeTrack, Modifier
from rewards.queries import badges_at
from rewards.rules import benefits_of, cashback_credits
from rewards.services import statements
from rewards.services.experience import open_progress


class Spender(NamedTuple):
    """A user with the experience that decides which badges they have."""

    user_id: int
    permanent_experience: int
    subscriber_experience: int


def settle(*, costs: Mapping[int, int], now: datetime, capped: bool = False) -> None:
    """
    Close these holds at their costs in credits, and reward the users for what they paid.

    A hold at no cost is released. The permanent track gains each cost; badges and active modifiers decide how
    much of it comes back, as an entry of its own. With `capped` nobody pays more than was held. Runs inside
    the caller's transaction, which an error must end, in the same number of statements for any number of
    holds. A hold that was captured before stays as it is and rewards nothing.

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


def _reward(charged: Sequence[tuple[ClosedHold, CreditEntry]], now: datetime) -> None:
    spenders = _gain_experience(charged)
    fractions = cashback_fractions(spenders=spenders, now=now)
    returned = [
        (hold.account_id, cashback_credits(cost=-entry.amount, fraction=fraction), f"back:{entry.key}")
        for (hold, entry), fraction in zip(charged, fractions, strict=True)
    ]
    _post_cashback([row for row in returned if row[1]])


def _gain_experience(charged: Sequence[tuple[ClosedHold, CreditEntry]]) -> list[Spender]:
    """Add each cost to the payer's permanent experience; return the payer as of after each of them."""
    keys = [f"spent:{entry.key}" for _, entry in charged]
    params = {
        "users": [hold.user_id for hold, _ in charged],
        "bases": [-entry.amount for _, entry in charged],
        "keys": keys,
        "cause": EntrySource.RELAY_TRANSACTION,
    }
    while not (rows := db.all_rows(statements.GAIN_EXPERIENCE, params)):
        open_progress(user_ids={hold.user_id for hold, _ in charged})  # Nothing else can be missing.
    totals = {key: experience for key, *experience in rows}
    return [Spender(hold.user_id, *totals[key]) for (hold, _), key in zip(charged, keys, strict=True)]


def _post_cashback(rows: Sequence[tuple[int, int, str]]) -> None:
    if not rows:
        return
    accounts, amounts, keys = (list(column) for column in zip(*rows, strict=True))
    params = {"accounts": accounts, "credits": amounts, "keys": keys, "source": EntrySource.CREDITS_BACK}
    db.all_rows(credits_statements.POST_ENTRIES, params)


def cashback_fractions(*, spenders: Sequence[Spender], now: datetime) -> list[Decimal]:
    users = {spender.user_id for spender in spenders}
    allowances = Allowance.objects.filter(user_id__in=users)
    subscribers = {row.user_id for row in allowances if paid_period(row).runs_at(now)}
    badges = badges_at(
        [
            level
            for spender in spenders
            for level in (
                (BadgeTrack.PERMANENT, spender.permanent_experience),
                (BadgeTrack.SUBSCRIBER, spender.subscriber_experience),
            )
        ]
    )
    modifiers = defaultdict(list)
    for modifier in Modifier.objects.active().filter(user_id__in=users):
        modifiers[modifier.user_id].append(modifier)
    return [
        benefits_of(
            badges=[permanent, subscriber] if spender.user_id in subscribers else [permanent],
            modifiers=modifiers[spender.user_id],
        ).cashback_fraction
        for spender, permanent, subscriber in zip(spenders, badges[::2], badges[1::2], strict=True)
    ]
