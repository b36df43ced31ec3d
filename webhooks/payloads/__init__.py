"""The payloads of messages. Members are named as in the API; amounts are whole credits or minor units."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from credits.models import CreditEntry, ExpiringLot
from credits.rules import days_left
from earnings.models import Postback
from payments.models import Purchase, Subscription
from relay.models import RelayStatus, RelayTransaction, ReversedSettlement
from sponsors.rules.policies import sponsor_part
from webhooks.models import CreditLevel, EventType, Subject

Data = dict[str, Any]
# The user of events that belong to a sponsor.
NO_USER = 0


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a user, or of `NO_USER`, with its time; `key` identifies it permanently."""

    type: EventType
    user_id: int
    happened_at: datetime
    key: str
    ordering_key: str
    data: Data

    @property
    def body(self) -> str:
        """The text that is signed and sent."""
        timestamp = self.happened_at.astimezone(UTC).isoformat(timespec="milliseconds")
        content = {"type": self.type.value, "timestamp": timestamp.replace("+00:00", "Z"), "data": self.data}
        return json.dumps(content, separators=(",", ":"))


# Outcomes of calls with a mined attempt; the others were never mined.
MINED = {RelayStatus.SUCCESS, RelayStatus.FAILED, RelayStatus.EXECUTED_EXTERNALLY}


def history_of(
    call: RelayTransaction, *, first_hash: str, charged: int, reversals: Sequence[ReversedSettlement]
) -> list[Event]:
    """
    Return all events of a call, in order.

    `charged` are the credits posted for it, and `reversals` its reversed settlements, in order.
    """
    events = [_of_call(call, EventType.CALL_ACCEPTED, call.created_at, first_hash, _pending(call))]
    for row in reversals:
        undone = _outcome(row, _part_of_user(call, row.real_cost))
        reopened = {"status": RelayStatus.SUBMITTED.value, "creditsUsed": call.expected_cost}
        events += [
            _of_call(call, EventType.CALL_SETTLED, row.settled_at, first_hash, undone, row.number),
            _of_call(call, EventType.CALL_REOPENED, row.reversed_at, first_hash, reopened, row.number),
        ]
    if call.settled_at is not None:
        outcome, number = _outcome(call, charged), len(reversals)
        events.append(_of_call(call, EventType.CALL_SETTLED, call.settled_at, first_hash, outcome, number))
    return events


def _part_of_user(call: RelayTransaction, cost: int) -> int:
    """Return the user's part of the call's cost; a sponsor may pay the rest."""
    sponsored = getattr(getattr(call, "hold", None), "sponsored", None)
    return cost - (sponsor_part(cost, share_percent=sponsored.version.share_percent) if sponsored else 0)


def _pending(call: RelayTransaction) -> Data:
    return {"status": RelayStatus.PENDING.value, "creditsUsed": call.expected_cost}


def _outcome(row: RelayTransaction | ReversedSettlement, credits: int) -> Data:
    return {
        "status": row.status,
        "creditsUsed": credits,
        "failureCode": row.failure_code,
        "minedHash": row.transaction_hash if row.status in MINED else None,
    }


def _of_call(
    call: RelayTransaction, kind: EventType, at: datetime, first_hash: str, state: Data, number: int = 0
) -> Event:
    ordering_key = f"{Subject.Kind.CALL.value}:{call.pk}"
    data = {
        "transactionHash": first_hash,
        "transactionSenderAddress": call.profile_address,
        "chainId": call.chain_id,
        **state,
    }
    return Event(kind, call.user_id, at, f"{ordering_key}:{kind.value}:{number}", ordering_key, data)


def of_entry(entry: CreditEntry, *, user_id: int, profile_address: str) -> Event:
    """Return the event of an entry other than a relay charge."""
    data = {
        "address": profile_address,
        "creditSource": entry.source,
        "creditsEarned": entry.amount,
        "creditsBefore": entry.balance_before,
        "creditsAfter": entry.balance_after,
    }
    return Event(
        EventType.CREDITS_POSTED,
        user_id,
        entry.created_at,
        f"entry:{entry.pk}",
        f"credits:{entry.account_id}",
        data,
    )


def of_top_up(purchase: Purchase, *, credits: int, profile_address: str, at: datetime) -> Event:
    """Return the event of an automatic purchase that has ended: paid, or given up for a reason."""
    data = {
        "address": profile_address,
        "purchaseId": str(purchase.pk),
        "status": purchase.status,
        "cost": purchase.amount_minor,
        "currency": purchase.currency,
        "credits": credits,
        "reason": purchase.failure_code,
    }
    key = f"purchase:{purchase.pk}:{purchase.status}"
    return Event(EventType.TOP_UP, purchase.user_id, at, key, f"purchase:{purchase.user_id}", data)


def of_subscription(row: Subscription, *, profile_address: str) -> Event:
    """Return the event of a subscription's last synced state."""
    data = {
        "address": profile_address,
        "subscriptionId": row.stripe_subscription_id,
        "status": row.status,
        "subscriptionCost": row.amount_minor,
        "currency": row.currency,
        "currentPeriodEnd": int(row.current_period_end.timestamp()),
        "cancelAtEndOfBillingPeriod": row.cancels_at_period_end,
    }
    ordering_key = f"{Subject.Kind.SUBSCRIPTION.value}:{row.pk}"
    return Event(
        EventType.SUBSCRIPTION_CHANGED,
        row.user_id,
        row.synced_at,
        f"{ordering_key}:{row.synced_at.timestamp()}",
        ordering_key,
        data,
    )


def of_level(
    event_type: EventType, level: CreditLevel, *, balance: int, account_id: int, at: datetime
) -> Event:
    """Return the event of credits that have become low, depleted, or enough again."""
    data = {
        "address": str(level.user.profile_address),
        "credits": balance,
        "dailyUse": level.use,
        "daysLeft": days_left(available=balance, use=level.use),
    }
    key = f"level:{level.user_id}:{level.crossings}"
    return Event(event_type, level.user_id, at, key, f"credits:{account_id}", data)


def of_expiry(row: ExpiringLot) -> Event:
    """Return the event of given credits whose expiry is announced."""
    user = row.entry.account.person
    data = {
        "address": str(user.profile_address),
        "credits": row.credits,
        "creditSource": row.entry.source,
        "expiresAt": int(row.expires_at.timestamp()),
    }
    key = f"expiry:{row.entry_id}"
    return Event(
        EventType.CREDITS_EXPIRING, user.pk, row.announced_at, key, f"credits:{row.entry.account_id}", data
    )


def of_earning(
    event_type: EventType,
    row: Postback,
    *,
    earning_id: int,
    credits: int,
    arrives_at: datetime | None = None,
    because: str | None = None,
) -> Event:
    """Return the event of an earning that is held, released or reversed; `row` is the credit or its reversal."""
    if row.user is None or row.decided_at is None:
        raise ValueError("an earning without a user has no events")
    data: Data = {
        "address": str(row.user.profile_address),
        "earningId": earning_id,
        "network": row.network.slug,
        "credits": credits,
    }
    if event_type == EventType.EARNING_HELD:
        data["arrivesAt"] = None if arrives_at is None else int(arrives_at.timestamp())
        data["heldBecause"] = because
    key = f"earning:{row.pk}:{event_type.value}"
    return Event(event_type, row.user.pk, row.decided_at, key, f"earning:{earning_id}", data)
