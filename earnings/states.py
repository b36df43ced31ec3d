"""
The state machine of a postback: the allowed transitions.

A postback is stored as RECEIVED and decided in the same transaction; one that names no user is stored as UNASSIGNED.
A reversal stays RECEIVED until its credit arrives; held credits and announcements change later. States without a line
below are final.
"""

from enum import Enum, auto

from earnings.models import Postback, PostbackKind, PostbackState


class Event(Enum):
    POST = auto()  # its credits are given at once
    HOLD = auto()  # its credits are given later
    RELEASE = auto()  # held credits are given
    FORFEIT = auto()  # staff decide that held credits are never given
    REFUSE = auto()  # a reversal of another user's credit, or one that staff close
    ASSIGN = auto()  # staff, or a repeat, name its user; it is decided next
    REVERSE = auto()  # a credit: all of it is taken back; a reversal: it has taken its credits back
    ANNOUNCE = auto()  # the network has not decided yet
    CONFIRM = auto()  # the credit that was announced has come
    IGNORE = auto()  # nothing follows from it


TRANSITIONS: dict[PostbackKind, dict[PostbackState, dict[Event, PostbackState]]] = {
    PostbackKind.CREDIT: {
        PostbackState.RECEIVED: {
            Event.POST: PostbackState.AVAILABLE,
            Event.HOLD: PostbackState.HELD,
            Event.REVERSE: PostbackState.REVERSED,
        },
        PostbackState.UNASSIGNED: {
            Event.ASSIGN: PostbackState.RECEIVED,
            Event.FORFEIT: PostbackState.REFUSED,
        },
        PostbackState.HELD: {
            Event.RELEASE: PostbackState.AVAILABLE,
            Event.FORFEIT: PostbackState.REFUSED,
            Event.REVERSE: PostbackState.REVERSED,
        },
        PostbackState.AVAILABLE: {Event.REVERSE: PostbackState.REVERSED},
    },
    PostbackKind.REVERSAL: {
        PostbackState.RECEIVED: {
            Event.REVERSE: PostbackState.REVERSED,
            Event.REFUSE: PostbackState.REFUSED,
            Event.IGNORE: PostbackState.INFO,
        },
        PostbackState.UNASSIGNED: {
            Event.ASSIGN: PostbackState.RECEIVED,
            Event.REFUSE: PostbackState.REFUSED,
        },
    },
    PostbackKind.PENDING: {
        PostbackState.RECEIVED: {Event.ANNOUNCE: PostbackState.PENDING, Event.IGNORE: PostbackState.INFO},
        PostbackState.PENDING: {Event.CONFIRM: PostbackState.INFO, Event.REVERSE: PostbackState.REVERSED},
    },
    PostbackKind.INFO: {PostbackState.RECEIVED: {Event.IGNORE: PostbackState.INFO}},
    PostbackKind.TEST: {PostbackState.RECEIVED: {Event.IGNORE: PostbackState.INFO}},
}


class TransitionNotAllowed(Exception):
    """The event cannot happen to a postback of that kind in that state."""


def next_state(kind: str, state: str, event: Event) -> PostbackState:
    """
    Return the state that follows.

    Raises:
        TransitionNotAllowed: the event cannot happen there.
    """
    following = _events(kind, state).get(event)
    if following is None:
        raise TransitionNotAllowed(f"{event.name} of a {kind} that is {state}")
    return following


def allows(postback: Postback, event: Event) -> bool:
    return event in _events(postback.kind, postback.state)


def apply(postback: Postback, event: Event) -> None:
    """
    Set the state that follows; the caller saves.

    Raises:
        TransitionNotAllowed: the event cannot happen to the postback now.
    """
    postback.state = next_state(postback.kind, postback.state, event)


def _events(kind: str, state: str) -> dict[Event, PostbackState]:
    return TRANSITIONS[PostbackKind(kind)].get(PostbackState(state), {})
