"""
When a person's credits are low, as pure functions.

Credits are compared with the person's own use, because 100 credits last one person long and another one minutes. A
person without use never has low credits. The state changes back to enough only after credits have risen and last for
longer than low credits do; otherwise every few calls could cause another event.
"""

from credits.rules import LOW_DAYS
from webhooks.models import CreditState, EventType

RECOVERED_DAYS = 5


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
