"""Holds and usage of sponsored calls, updated when a call ends, is reopened or is withdrawn."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from gateway.common import db
from gateway.common.statements import Statements
from sponsors.rules.policies import sponsor_part


class _Sql(Statements, file=__file__):
    shares: str


class Share(NamedTuple):
    """The sponsor's hold of a call, its part of the call's cost in percent, and its hold of first credits, if any."""

    hold_id: int
    percent: int
    first_hold_id: int | None = None

    @property
    def hold_ids(self) -> list[int]:
        """All holds of the sponsor for this call."""
        return [self.hold_id] if self.first_hold_id is None else [self.hold_id, self.first_hold_id]


def divided(costs: Mapping[int, int], shares: Mapping[int, Share]) -> dict[int, int]:
    """Split calls' costs between users and sponsors; return them by hold id. `shares` is by the user's hold id."""
    parts = dict(costs)
    for hold_id, share in shares.items():
        parts[share.hold_id] = sponsor_part(costs[hold_id], share_percent=share.percent)
        parts[hold_id] -= parts[share.hold_id]
    return parts


def recount(*, hold_ids: Collection[int]) -> None:
    """Update policies' usage to their sponsors' holds, for calls given by the users' holds. The accounts are locked."""
    if hold_ids:
        db.all_rows("SELECT sponsors_recount(%(holds)s::bigint[])::text", {"holds": list(hold_ids)})


def withdraw(*, hold_ids: Collection[int]) -> None:
    """Withdraw the sponsors' holds of calls whose users' holds, given here, are already withdrawn."""
    db.all_rows("SELECT sponsors_withdraw(%(holds)s::bigint[])::text", {"holds": list(hold_ids)})


def shares_of(*, hold_ids: Collection[int]) -> dict[int, Share]:
    """Return the sponsor's share of each sponsored call, by the id of the user's hold."""
    rows = db.all_rows(_Sql.shares, {"holds": list(hold_ids)})
    return {hold_id: Share(*share) for hold_id, *share in rows}
