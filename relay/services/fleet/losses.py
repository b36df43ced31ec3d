"""
The hourly loss budget: how much gas the service may pay itself.

A transaction that may cost the service gas reserves its highest possible cost under a key when it is signed. The
reservation is corrected to the actual cost when the chain has confirmed it. Reservations and losses of the last 60
minutes never exceed the limits in the settings, even under concurrency: `relay_reserve_loss` decides under a lock.

A quarter of the budget is kept for self-transfers, without which a relayer would stop. Once the other three quarters
are used, the service signs nothing else that could cost it gas; calls covered by their users' holds continue. Any user
may request quotes, so quotes may use only half of the budget and leave the rest for accepted calls.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from gateway.chain.config import get_chain
from gateway.common import db
from gateway.common.statements import Statements
from relay.models import SQL, Loss

_HOUR = timedelta(hours=1)
# How long expired quotes are kept: a call whose quote was valid on arrival may take this long to be accepted.
_QUOTES_KEPT = timedelta(seconds=15)
# A self-transfer uses up an account nonce, so that nodes can execute everything the relayer has signed behind it. A
# separate limit bounds how many of them a user can cause.
_VITAL = (Loss.Kind.CANCELLATION, Loss.Kind.GAP)


class _Sql(Statements, file=__file__, shared=SQL):
    reserve: str
    settle_ended: str
    note_excess: str
    usage: str
    biggest: str


class LossLimits(NamedTuple):
    """The highest loss within an hour, in wei: by one user's calls (None: no limit) and by all calls."""

    of_user: int | None
    of_service: int


# Calls of trusted code reserve no loss.
NO_LOSS = LossLimits(0, 0)


def limits_for(kind: Loss.Kind) -> LossLimits:
    """Return the limits for reservations of this kind of loss."""
    if kind in _VITAL:
        return LossLimits(None, get_chain().losses.per_hour_wei)
    if kind == Loss.Kind.OVERTAKEN:
        # Each is of another user, the new profile's. A sponsor pays for those above this part of the budget.
        return LossLimits(None, get_chain().losses.per_hour_wei // 4)
    parts = 2 if kind == Loss.Kind.QUOTE else 3
    return LossLimits(get_chain().losses.user_per_hour_wei, get_chain().losses.per_hour_wei * parts // 4)


def reserve(*, key: str, user_id: int | None, amount_wei: int, kind: Loss.Kind, now: datetime) -> bool:
    """
    Reserve `amount_wei` under the key, in the caller's transaction; return False if a limit forbids it.

    A second call with the key raises the reservation to the larger amount. Other reservations on the chain wait until
    the transaction ends, so make this the transaction's last lock.
    """
    limits = limits_for(kind)
    params = {
        "chain": get_chain().id,
        "key": key,
        "user": user_id,
        "kind": kind.value,
        "amount": amount_wei,
        "now": now,
        "of_user": limits.of_user,
        "of_service": limits.of_service,
    }
    (is_reserved,) = db.only_row(_Sql.reserve, params)
    return bool(is_reserved)


def settle(*, key: str, lost_wei: int, now: datetime) -> None:
    """Replace the reservation under the key, if there is one, by the actual loss."""
    rows = Loss.objects.filter(chain_id=get_chain().id, key=key, settled_at=None)
    rows.update(lost_wei=lost_wei, settled_at=now)


def reopen(*, key: str) -> None:
    """Turn the settled loss under the key back into a reservation, after a reorganisation has reopened its call."""
    rows = Loss.objects.filter(chain_id=get_chain().id, key=key, settled_at__isnull=False)
    rows.update(lost_wei=None, settled_at=None)


def settle_ended(*, now: datetime) -> None:
    """
    Settle the reservations of calls that have ended, at the cost of their gas less the credits paid for it.

    Also deletes expired quotes, with the reservations of quotes that no call has used.
    """
    params = {
        "chain": get_chain().id,
        "now": now,
        "expired": now - _QUOTES_KEPT,
    }
    db.all_rows(_Sql.settle_ended, params)


def note_excess(*, hold_ids: Sequence[int], now: datetime) -> None:
    """
    Record by how much fees besides gas exceed the credits paid for settled calls, in the caller's transaction.

    No hold bounds the fee for L1. Calls with a reservation are left to `settle_ended`.
    """
    params = {"holds": list(hold_ids), "now": now}
    db.all_rows(_Sql.note_excess, params)


class Usage(NamedTuple):
    """Use of the hourly loss budget, in wei."""

    lost_wei: int
    reserved_wei: int
    limit_wei: int

    @property
    def share(self) -> float:
        """The used fraction of the limit; 1 if the limit is 0."""
        return (self.lost_wei + self.reserved_wei) / self.limit_wei if self.limit_wei else 1.0

    @property
    def is_used_up(self) -> bool:
        """Whether the rest of the budget is only for self-transfers."""
        return self.lost_wei + self.reserved_wei >= self.limit_wei * 3 // 4


def usage(*, now: datetime) -> Usage:
    """Return the loss of the last hour and the reservations for transactions in flight."""
    lost, reserved = db.only_row(_Sql.usage, {"chain": get_chain().id, "since": now - _HOUR})
    return Usage(int(lost), int(reserved), get_chain().losses.per_hour_wei)


class UserLoss(NamedTuple):
    """Losses and reservations caused by one user's calls, in wei."""

    user_id: int
    profile_address: str
    lost_wei: int
    reserved_wei: int


def biggest_users(*, since: datetime) -> list[UserLoss]:
    """Return the ten users whose calls have cost the service most since `since`, or may still; reservations count."""
    return [
        UserLoss._make(row) for row in db.all_rows(_Sql.biggest, {"chain": get_chain().id, "since": since})
    ]
