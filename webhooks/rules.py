"""
When a person's credits are low: arithmetic on arguments.

Credits are compared with the person's own use, because 100 credits are much for one and minutes for another. A person
without use is never low. Credits that are low again after a few more calls are not news: they are back only once they
have risen, and last for longer than low credits do.
"""

from credits.rules import LOW_DAYS
from webhooks.models import CreditState, EventType

RECOVERED_DAYS = 5


def next_state(*, state: str, balance: int, balance_then: int, use: int) -> CreditState:
    """Return the state of these credits; `balance_then` are those at which the last state began."""
    if balance <= 0:
        return CreditState.DEPLETED if use else CreditState(state)
    if balance < LOW_DAYS * use:
        return CreditState.LOW
    has_recovered = balance > balance_then and balance >= RECOVERED_DAYS * use
    return CreditState.ENOUGH if has_recovered else CreditState(state)


def crossing(*, before: str, after: CreditState) -> EventType | None:
    """Return the event of a change of state; a few credits after none are not news."""
    if before == after or (before == CreditState.DEPLETED and after == CreditState.LOW):
        return None
    return _EVENTS[after]


_EVENTS = {
    CreditState.ENOUGH: EventType.CREDITS_RECOVERED,
    CreditState.LOW: EventType.CREDITS_LOW,
    CreditState.DEPLETED: EventType.CREDITS_DEPLETED,
}
