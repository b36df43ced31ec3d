"""What follows from spending credits: experience, and a part of the cost that comes back."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from credits.benefits import credits_back
from credits.models import CreditEntry, EntrySource
from credits.services import bulk_statements
from credits.services.holding import Closed, capture, close
from credits.services.shares_back import Spender, shares_back
from gateway.common import sql


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
    gained = sql.all_rows(
        bulk_statements.GAIN_EXPERIENCE,
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
    sql.all_rows(bulk_statements.POST_ENTRIES, params)
