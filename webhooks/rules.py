"""
When a person's credits are low, what part of a policy's new profiles is told, and how many deliveries a receiver may
have at once, as pure functions.

Credits are compared with the person's own use, because 100 credits last one person long and another one minutes. A
person without use never has low credits. The state changes back to enough only after credits have risen and last for
longer than low credits do; otherwise every few calls could cause another event.
"""

from collections.abc import Collection
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from credits.rules import LOW_DAYS
from webhooks.models import CreditState, EventType

RECOVERED_DAYS = 5
# The parts of a policy's number of new profiles of which its sponsor is told, in percent.
TOLD_PARTS = (100, 80)


def next_state(*, state: str, balance: int, balance_then: int, use: int) -> CreditState:
    """Return the state of a balance; `balance_then` is the balance at which the previous state began."""
    if balance <= 0:
        return CreditState.DEPLETED if use else CreditState(state)
    if balance < LOW_DAYS * use:
        return CreditState.LOW
    has_recovered = balance > balance_then and balance >= RECOVERED_DAYS * use
    return CreditState.ENOUGH if has_recovered else CreditState(state)


def crossing(*, before: str, after: CreditState) -> EventType | None:
    """Return the event of a change of state, if any; from depleted to low there is none."""
    if before == after or (before == CreditState.DEPLETED and after == CreditState.LOW):
        return None
    return _EVENTS[after]


_EVENTS = {
    CreditState.ENOUGH: EventType.CREDITS_RECOVERED,
    CreditState.LOW: EventType.CREDITS_LOW,
    CreditState.DEPLETED: EventType.CREDITS_DEPLETED,
}


def told_part(*, used: int, number: int) -> int:
    """Return the largest of TOLD_PARTS that is used of a number, 0 if none is."""
    return next((part for part in TOLD_PARTS if 100 * used >= part * number), 0)


class Pace(IntEnum):
    """How fast a receiver responds, the slowest first."""

    QUIET = 0
    UNKNOWN = 1
    PROMPT = 2


@dataclass(frozen=True, slots=True)
class Receiver:
    """An endpoint to deliver to. A sponsor's endpoints have the same owner."""

    endpoint_id: int
    owner: str
    pace: Pace


class _Most(NamedTuple):
    """Attempts at once for receivers of one pace and of slower ones: in total, for an owner, and for an endpoint."""

    total: int
    owner: int
    endpoint: int


DELIVERIES = 16
# Receivers that hang together leave threads for those that respond. Until its first response in a run, an endpoint
# gets one thread.
_MOST = {
    Pace.PROMPT: _Most(total=DELIVERIES, owner=8, endpoint=4),
    Pace.UNKNOWN: _Most(total=12, owner=4, endpoint=1),
    Pace.QUIET: _Most(total=4, owner=2, endpoint=1),
}


def further_deliveries(receiver: Receiver, sending: Collection[Receiver]) -> int:
    """Return how many attempts the receiver may begin; `sending` has the receiver of each attempt in progress."""
    of_endpoint = sum(other.endpoint_id == receiver.endpoint_id for other in sending)
    # One that hangs is also one of those that have not responded, so it must fit into their share, too.
    shares = (_share(pace, receiver, sending) for pace in Pace if pace >= receiver.pace)
    return min(_MOST[receiver.pace].endpoint - of_endpoint, *shares)


def _share(pace: Pace, receiver: Receiver, sending: Collection[Receiver]) -> int:
    alike = [other for other in sending if other.pace <= pace]
    of_owner = sum(other.owner == receiver.owner for other in alike)
    return min(_MOST[pace].total - len(alike), _MOST[pace].owner - of_owner)
