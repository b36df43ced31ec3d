"""Place and raise holds, capture the real cost or release them, and reopen closed holds."""

import json
from collections.abc import Collection, Mapping
from typing import NamedTuple

from credits.errors import HoldReleased, InsufficientCredits
from credits.models import CreditHold, EntrySource, HoldStatus
from credits.services.statements import Sql
from gateway.common import db


class ClosedHold(NamedTuple):
    """
    A hold that this call closed, its charge in credits and the key of that entry: 0 and None if it was released.

    `user_id` is None for a hold of a sponsor. `from_first` is the part of the charge that first credits paid.
    """

    hold_id: int
    user_id: int | None
    charge: int
    entry_key: str | None
    from_first: int

    @property
    def earning(self) -> int:
        """The part of the charge that earns rewards: first credits are no payment."""
        return self.charge - self.from_first


def place(*, user_id: int, credits: int, key: str) -> int:
    """
    Hold available credits of a user under a new key, never on debt, and return the hold's id.

    Runs inside the caller's transaction. Relay calls place their holds themselves, many at once.

    Raises:
        InsufficientCredits: fewer credits are available.
    """
    wanted = {"place": 0, "user_id": user_id, "key": key, "credits": credits, "debt_limit": 0}
    outcome, hold_id, available = db.only_row(_PLACE_HOLD, {"wanted": json.dumps([wanted])})
    if outcome == "insufficient":
        raise InsufficientCredits(required=credits, available=available, debt_limit=0)
    if outcome != "placed":
        raise ValueError(f"no new hold {key}: {outcome}")
    return int(hold_id)


_PLACE_HOLD = "SELECT outcome, hold_id, available FROM credits_place_holds(%(wanted)s::jsonb)"


def raise_hold(*, hold_id: int, credits: int, badge_debt: int) -> bool:
    """
    Raise an open hold to `credits` in total, and return whether it now covers them.

    Returns False and leaves the hold unchanged if it is closed, or if the account cannot cover the difference within
    its debt limit. `badge_debt` is the debt limit of the user's badges.
    """
    params = {"hold": hold_id, "credits": credits, "badge_debt": badge_debt}
    (is_raised,) = db.only_row(_RAISE_HOLD, params)
    return bool(is_raised)


_RAISE_HOLD = "SELECT credits_raise_hold(%(hold)s, %(credits)s, %(badge_debt)s)"


def close(*, costs: Mapping[int, int]) -> list[ClosedHold]:
    """
    Close those of the holds that are open, in one statement, and return them by id.

    `costs` are by hold id. A charge never exceeds the hold, and a hold with cost 0 is released. One that was captured
    before is unchanged. Runs inside the caller's transaction, which must be rolled back on an error.

    Raises:
        HoldReleased: one of the holds was released before, so it cannot be charged.
        ValueError: a cost is negative.
    """
    if any(cost < 0 for cost in costs.values()):
        raise ValueError("a capture cannot charge a negative number of credits")
    params = {
        "holds": list(costs),
        "costs": list(costs.values()),
        "source": EntrySource.RELAY_TRANSACTION,
    }
    closed = [ClosedHold._make(row) for row in db.all_rows(Sql.close_holds, params)]
    if len(closed) < len(costs):
        ids = {hold.hold_id for hold in closed}
        _require_not_released([hold_id for hold_id, cost in costs.items() if cost and hold_id not in ids])
    return closed


def _require_not_released(hold_ids: Collection[int]) -> None:
    released = CreditHold.objects.filter(pk__in=hold_ids, status=HoldStatus.RELEASED).order_by("pk").first()
    if released is not None:
        raise HoldReleased(hold_id=released.pk)


class ReopenedHold(NamedTuple):
    """
    A reopened hold: `entry_key` names the reversed charge, if there was one.

    `user_id` is None for a hold of a sponsor.
    """

    hold_id: int
    user_id: int | None
    entry_key: str | None


def reopen(*, hold_ids: Collection[int]) -> list[ReopenedHold]:
    """
    Reopen those of the holds that are closed, and return them by id.

    A new entry reverses the charge, and the credits are held as before, even if the account
    goes into debt. A later capture is a new charge with its own key.
    """
    params = {"holds": list(hold_ids), "source": EntrySource.RELAY_REVERSAL}
    return [ReopenedHold._make(row) for row in db.all_rows(Sql.reopen_holds, params)]


def release(*, hold_id: int) -> bool:
    """Release a hold; return False, without effect, if it is already closed."""
    return bool(close(costs={hold_id: 0}))
