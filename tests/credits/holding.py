"""Holds placed and captured one at a time; the service places them with its relay calls, and closes many together."""

import json
from typing import NamedTuple

from credits.errors import InsufficientCredits, KeyConflict
from credits.models import CreditEntry, CreditHold
from credits.services.entries import open_account
from credits.services.holds import close
from gateway.common import db
from users.models import User


class HoldResult(NamedTuple):
    """A hold, whether this call placed it, and the account's balance in credits as this call saw it."""

    hold: CreditHold
    created: bool
    balance: int


def place_hold(*, user: User, credits: int, key: str, debt_limit: int = 0) -> HoldResult:
    """Set credits aside, or return the first hold of the key; raise what a relay call would be refused with."""
    wanted = {"place": 0, "user_id": user.pk, "key": key, "credits": credits, "debt_limit": debt_limit}
    row = db.only_row(_PLACE_HOLD, {"wanted": json.dumps([wanted])})
    outcome, hold_id, owner_id, balance, available = row
    if outcome == "no-account":
        open_account(user_id=user.pk)
        return place_hold(user=user, credits=credits, key=key, debt_limit=debt_limit)
    if outcome == "insufficient":
        raise InsufficientCredits(required=credits, available=available, debt_limit=debt_limit)
    if owner_id != user.pk:
        raise KeyConflict(key=key)
    return HoldResult(CreditHold.objects.get(pk=hold_id), created=outcome == "placed", balance=balance)


_PLACE_HOLD = (
    "SELECT outcome, hold_id, user_id, balance, available FROM credits_place_holds(%(wanted)s::jsonb)"
)


def capture(*, hold_id: int, credits: int) -> CreditEntry | None:
    """Close a hold at its cost, and return its charge; a repeat returns the first one."""
    close(costs={hold_id: credits})
    return CreditHold.objects.select_related("entry").get(pk=hold_id).entry
