"""
The rewards of spending credits: experience and cashback.

Many holds are settled in a fixed number of statements. The ledger is written through the SQL of
`credits.services.statements`.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from credits.models import CreditEntry, EntrySource
from credits.services.holds import close, reopen, require_not_released
from gateway.common import db
from rewards.models import BadgeTrack, CashbackEntry, ExperienceEntry
from rewards.rules import cashback_fraction, cashback_parts
from rewards.services import statements
from rewards.services.experience import open_progress, take_back


class _Charged(NamedTuple):
    """A user's charge."""

    user_id: int
    account_id: int
    entry: CreditEntry


class _Returned(NamedTuple):
    """A user's cashback in parts of a credit; negative where it is taken back."""

    user_id: int
    account_id: int
    parts: int
    key: str


def settle(*, costs: Mapping[int, int], now: datetime, unrewarded: Collection[int] = ()) -> None:
    """
    Close these holds at their costs in credits, and reward their users, except for the holds in `unrewarded`.

    A hold with cost 0 is released. The permanent track gains each cost; badges and active modifiers determine the
    cashback. Its whole credits are posted as a separate entry, and the remainder is carried over to the next cashback.
    A charge never exceeds its hold. Runs inside the caller's transaction, which must be rolled back on an error, in the
    same number of statements for any number of holds. A hold that was captured before is unchanged and not rewarded.

    Raises:
        HoldReleased: one of the holds was released before, so it cannot be charged.
        ValueError: a cost is negative.
    """
    closed = close(costs=costs)  # Includes holds of sponsors, which have no user.
    closed_before = costs.keys() - {row.hold_id for row in closed}
    require_not_released(hold_ids=[hold_id for hold_id in closed_before if costs[hold_id]])
    charged = [
        _Charged(row.user_id, row.account_id, row.entry)
        for row in closed
        if row.entry is not None and row.user_id is not None and row.hold_id not in unrewarded
    ]
    if charged:
        _reward(charged, now)


def reverse(*, hold_ids: Collection[int]) -> None:
    """
    Reopen these holds, and reverse their charges, experience and cashback by new entries.

    Open holds are unchanged. Runs inside the caller's transaction.
    """
    reopened = reopen(hold_ids=hold_ids)
    keys = [row.entry_key for row in reopened if row.entry_key is not None]
    owners = {
        f"back:{row.entry_key}": (row.user_id, row.account_id) for row in reopened if row.user_id is not None
    }
    returned = CashbackEntry.objects.filter(key__in=[f"back:{key}" for key in keys]).order_by("pk")
    _post(
        [_Returned(*owners[entry.key], -entry.amount, f"reversal:{entry.key}") for entry in returned],
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


def _reward(charged: Sequence[_Charged], now: datetime) -> None:
    fractions = _gain_experience(charged, now)
    returned = [
        _Returned(
            row.user_id,
            row.account_id,
            cashback_parts(cost=-row.entry.amount, fraction=fraction),
            f"back:{row.entry.key}",
        )
        for row, fraction in zip(charged, fractions, strict=True)
    ]
    _post([row for row in returned if row.parts], source=EntrySource.CREDITS_BACK)


def _gain_experience(charged: Sequence[_Charged], now: datetime) -> list[Decimal]:
    """Add each cost to the payer's permanent experience; return the cashback fraction of each."""
    keys = [f"spent:{row.entry.key}" for row in charged]
    params = {
        "users": [row.user_id for row in charged],
        "bases": [-row.entry.amount for row in charged],
        "keys": keys,
        "cause": EntrySource.RELAY_TRANSACTION,
        "now": now,
    }
    while not (rows := db.all_rows(statements.GAIN_EXPERIENCE, params)):
        open_progress(user_ids={row.user_id for row in charged})  # Only the progress row can be missing.
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
