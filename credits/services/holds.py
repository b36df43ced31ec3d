"""Raise what was held, charge what the thing really cost or give the credits back, and undo either of the two."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from django.db import transaction

from credits.errors import HoldReleased
from credits.models import CreditEntry, CreditHold, EntrySource, HoldStatus
from credits.services import statements
from gateway.common import db


class ClosedHold(NamedTuple):
    """A hold that this call closed, and whose: `entry` is the charge, or None where it was released."""

    hold_id: int
    account_id: int
    user_id: int
    entry: CreditEntry | None


def raise_hold(*, hold_id: int, credits: int, debt_limit: int) -> bool:
    """
    Raise an open hold to `credits` in total, and return whether it now covers them.

    False leaves the hold as it was: the account does not afford the difference
    within `debt_limit` credits of debt, or the hold is closed.
    """
    with transaction.atomic(savepoint=False):
        locked = CreditHold.objects.select_for_update(no_key=True).get(pk=hold_id)
        if locked.status != HoldStatus.HELD or locked.amount >= credits:
            return locked.status == HoldStatus.HELD
        params = {"hold": hold_id, "credits": credits, "debt_limit": debt_limit}
        return db.first_row(statements.RAISE_HOLD, params) is not None


def close(*, costs: Mapping[int, int]) -> list[ClosedHold]:
    """
    Close those of these holds that are open, and return them by id: all, or on an error none.

    `costs` are by the hold's id; nobody pays more than was held, and at no cost the hold is released.

    Raises:
        ValueError: a cost is negative.
    """
    if any(cost < 0 for cost in costs.values()):
        raise ValueError("a capture charges no negative number of credits")
    params = {
        "holds": list(costs),
        "costs": list(costs.values()),
        "source": EntrySource.RELAY_TRANSACTION,
    }
    return [_closed(row) for row in db.all_rows(statements.CLOSE_HOLDS, params)]


class ReopenedHold(NamedTuple):
    """A hold that is open again, and whose: `entry_key` names the charge that was given back, if there was one."""

    hold_id: int
    account_id: int
    user_id: int
    entry_key: str | None


def reopen(*, hold_ids: Collection[int]) -> list[ReopenedHold]:
    """
    Open those of these holds again that were closed, and return them by id.

    What was charged comes back by a new entry, and the credits are set aside as before, even
    where the account ends in debt. What is captured then is a new charge with a key of its own.
    """
    params = {"holds": list(hold_ids), "source": EntrySource.RELAY_REVERSAL}
    return [ReopenedHold._make(row) for row in db.all_rows(statements.REOPEN_HOLDS, params)]


def require_not_released(*, hold_ids: Collection[int]) -> None:
    """
    Refuse to charge what was given back.

    Raises:
        HoldReleased: one of the holds was released, so its charge cannot be made.
    """
    released = CreditHold.objects.filter(pk__in=hold_ids, status=HoldStatus.RELEASED).order_by("pk").first()
    if released is not None:
        raise HoldReleased(hold_id=released.pk)


def release(*, hold_id: int) -> bool:
    """Give held credits back; False where the hold was closed before, and then nothing moves."""
    return bool(close(costs={hold_id: 0}))


def _closed(row: Sequence[Any]) -> ClosedHold:
    hold_id, account_id, user_id, *columns = row
    entry = None if columns[0] is None else db.instance(CreditEntry, columns)
    return ClosedHold(hold_id, account_id, user_id, entry)
