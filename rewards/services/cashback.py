"""
What follows from spending credits: experience, and a part of the cost that comes back.

Of many holds at once, in a fixed number of statements. The ledger is written through the SQL of
`credits.services.statements`.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from credits.models import CreditEntry, EntrySource
from credits.services.holds import ClosedHold, close, reopen, require_not_released
from gateway.common import db
from rewards.models import BadgeTrack, CashbackEntry, ExperienceEntry
from rewards.rules import cashback_fraction, cashback_parts
from rewards.services import statements
from rewards.services.experience import open_progress, take_back


class _Returned(NamedTuple):
    """What comes back to a user, in parts of a credit; negative where it is taken back."""

    user_id: int
    account_id: int
    parts: int
    key: str


def settle(*, costs: Mapping[int, int], now: datetime, unrewarded: Collection[int] = ()) -> None:
    """
    Close these holds at their costs in credits, and reward the users for what they paid, except for the `unrewarded`.

    A hold at no cost is released. The permanent track gains each cost; badges and active modifiers decide how
    much of it comes back. Whole credits of that are an entry of their own, and what is left over counts with
    what comes back later. Nobody pays more than was held. Runs inside
    the caller's transaction, which an error must end, in the same number of statements for any number of
    holds. A hold that was captured before stays as it is and rewards nothing.

    Raises:
        HoldReleased: one of them was released before, so its charge cannot be made.
        ValueError: a cost is negative.
    """
    closed = close(costs=costs)
    closed_before = costs.keys() - {row.hold_id for row in closed}
    require_not_released(hold_ids=[hold_id for hold_id in closed_before if costs[hold_id]])
    charged = [(row, row.entry) for row in closed if row.entry is not None and row.hold_id not in unrewarded]
    if charged:
        _reward(charged, now)


def reverse(*, hold_ids: Collection[int]) -> None:
    """
    Open these holds again, and take back what settling them has charged, gained and returned, by new entries.

    Holds that are open stay as they are. Runs inside the caller's transaction.
    """
    reopened = reopen(hold_ids=hold_ids)
    keys = [row.entry_key for row in reopened if row.entry_key is not None]
    owners = {f"back:{row.entry_key}": row for row in reopened}
    returned = CashbackEntry.objects.filter(key__in=[f"back:{key}" for key in keys]).order_by("pk")
    _post(
        [
            _Returned(
                owners[entry.key].user_id,
                owners[entry.key].account_id,
                -entry.amount,
                f"reversal:{entry.key}",
            )
            for entry in returned
        ],
        source=EntrySource.RELAY_REVERSAL,
    )
    gained = ExperienceEntry.objects.filter(key__in=[f"spent:{key}" for key in keys], amount__gt=0)
    for entry in gained.select_related("progress__user").order_by("progress__user_id", "pk"):
        take_back(
            user=entry.progress.user,
            track=BadgeTrack(entry.track),
            amount=entry.amount,
            key=f"reversal:{entry.key}",
            cause=EntrySource.RELAY_REVERSAL,
        )


def _reward(charged: Sequence[tuple[ClosedHold, CreditEntry]], now: datetime) -> None:
    fractions = _gain_experience(charged, now)
    returned = [
        _Returned(
            hold.user_id,
            hold.account_id,
            cashback_parts(cost=-entry.amount, fraction=fraction),
            f"back:{entry.key}",
        )
        for (hold, entry), fraction in zip(charged, fractions, strict=True)
    ]
    _post([row for row in returned if row.parts], source=EntrySource.CREDITS_BACK)


def _gain_experience(charged: Sequence[tuple[ClosedHold, CreditEntry]], now: datetime) -> list[Decimal]:
    """Add each cost to the payer's permanent experience; return the fraction of it that comes back."""
    keys = [f"spent:{entry.key}" for _, entry in charged]
    params = {
        "users": [hold.user_id for hold, _ in charged],
        "bases": [-entry.amount for _, entry in charged],
        "keys": keys,
        "cause": EntrySource.RELAY_TRANSACTION,
        "now": now,
    }
    while not (rows := db.all_rows(statements.GAIN_EXPERIENCE, params)):
        open_progress(user_ids={hold.user_id for hold, _ in charged})  # Nothing else can be missing.
    fractions = {key: _fraction(*terms) for key, *terms in rows}
    return [fractions[key] for key in keys]


def _fraction(
    permanent: Decimal, subscriber: Decimal, modifiers: list[Decimal], is_subscriber: bool | None
) -> Decimal:
    badges = [permanent, subscriber] if is_subscriber else [permanent]
    return cashback_fraction(badges=badges, modifiers=modifiers)


def _post(rows: Sequence[_Returned], *, source: EntrySource) -> None:
    if not rows:
        return
    users, accounts, parts, keys = (list(column) for column in zip(*rows, strict=True))
    params = {"users": users, "accounts": accounts, "parts": parts, "keys": keys, "source": source}
    db.all_rows(statements.POST_CASHBACK, params)
