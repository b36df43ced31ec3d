"""
The rewards of spending credits: experience and cashback.

The charges of many holds are rewarded in a fixed number of statements, inside the transaction that closes the holds.
"""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from credits.models import EntrySource
from credits.services.entries import Posting, post_all
from credits.services.holds import ClosedHold, ReopenedHold
from gateway.common import db
from rewards.models import BadgeTrack, CashbackEntry, ExperienceEntry
from rewards.rules import cashback_fraction, cashback_parts
from rewards.services.experience import open_progress, take_back
from rewards.services.statements import Sql


class _Returned(NamedTuple):
    """A user's cashback in parts of a credit; negative where it is taken back."""

    user_id: int
    parts: int
    key: str


def reward(*, closed: Sequence[ClosedHold], now: datetime) -> None:
    """
    Reward the users of these holds for what they were charged; released holds and those of sponsors earn nothing.

    What first credits paid earns nothing either, because a sponsor gave them.

    The permanent track gains the rest of each charge; badges and active modifiers determine the cashback. Its whole
    credits are posted as a separate entry, and the remainder is carried over to the next cashback. Runs inside the
    transaction that closed the holds, in the same number of statements for any number of them.
    """
    charged = [hold for hold in closed if hold.earning and hold.user_id is not None]
    if not charged:
        return
    fractions = _gain_experience(charged, now)
    returned = [
        _Returned(hold.user_id, parts, f"back:{hold.entry_key}")
        for hold, fraction in zip(charged, fractions, strict=True)
        if hold.user_id is not None and (parts := cashback_parts(cost=hold.earning, fraction=fraction))
    ]
    _post(returned, source=EntrySource.CREDITS_BACK)


def reverse(*, reopened: Sequence[ReopenedHold]) -> None:
    """Take back the experience and cashback of these holds' charges by new entries, inside the caller's transaction."""
    keys = [hold.entry_key for hold in reopened if hold.entry_key is not None]
    users = {f"back:{hold.entry_key}": hold.user_id for hold in reopened if hold.user_id is not None}
    returned = CashbackEntry.objects.filter(key__in=[f"back:{key}" for key in keys]).order_by("pk")
    _post(
        [_Returned(users[entry.key], -entry.amount, f"reversal:{entry.key}") for entry in returned],
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


def _gain_experience(charged: Sequence[ClosedHold], now: datetime) -> list[Decimal]:
    """Add each charge to the payer's permanent experience; return the cashback fraction of each."""
    keys = [f"spent:{hold.entry_key}" for hold in charged]
    params = {
        "users": [hold.user_id for hold in charged],
        "bases": [hold.earning for hold in charged],
        "keys": keys,
        "cause": EntrySource.RELAY_TRANSACTION,
        "now": now,
    }
    while not (rows := db.all_rows(Sql.gain_experience, params)):
        # Only the progress row can be missing.
        open_progress(user_ids={hold.user_id for hold in charged if hold.user_id is not None})
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
    users, parts, keys = (list(column) for column in zip(*rows, strict=True))
    whole = db.all_rows(Sql.add_cashback, {"users": users, "parts": parts, "keys": keys})
    if whole:
        post_all([Posting(user_id, amount, source, key) for user_id, amount, key in whole])
