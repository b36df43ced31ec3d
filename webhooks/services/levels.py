"""
Whether people's credits last: the state of each, compared with its use, and the events of its changes.

The caller runs once at a time, so each change of state is one event. Use is read again after an hour.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from credits.queries import daily_uses
from webhooks import payloads
from webhooks.models import CreditLevel
from webhooks.payloads import Event
from webhooks.queries import ChangedBalance
from webhooks.rules import crossing, next_state

_USE_KEPT = timedelta(hours=1)


def crossings(changed: Sequence[ChangedBalance], *, now: datetime) -> list[Event]:
    """Store the new states of these balances, and return the events of those that crossed a threshold."""
    known = _levels_of([row.user_id for row in changed], now=now)
    events, moved = [], []
    for row in changed:
        level = known[row.user_id]
        before = level.state
        after = next_state(state=before, balance=row.balance, balance_then=level.balance, use=level.use)
        if after == before:
            continue
        level.state, level.balance = after, row.balance
        moved.append(level)
        if event_type := crossing(before=before, after=after):
            level.crossings += 1
            events.append(
                payloads.of_level(
                    event_type, level, balance=row.balance, account_id=row.account_id, at=row.changed_at
                )
            )
    CreditLevel.objects.bulk_update(moved, ["state", "balance", "crossings"])
    return events


def _levels_of(user_ids: Sequence[int], *, now: datetime) -> dict[int, CreditLevel]:
    """Return the level of each user, with a use of the last hour."""
    rows = CreditLevel.objects.select_related("user").filter(user__in=user_ids)
    fresh = {row.user_id: row for row in rows.filter(use_read_at__gt=now - _USE_KEPT)}
    stale = [user_id for user_id in user_ids if user_id not in fresh]
    if not stale:
        return fresh
    uses = daily_uses(stale, now=now)
    CreditLevel.objects.bulk_create(
        [CreditLevel(user_id=user_id, use=uses.get(user_id, 0), use_read_at=now) for user_id in stale],
        update_conflicts=True,
        unique_fields=["user"],
        update_fields=["use", "use_read_at"],
    )
    return {row.user_id: row for row in rows}
