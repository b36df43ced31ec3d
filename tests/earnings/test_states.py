"""The state machine of postbacks: what can happen, and that nothing else can."""

import itertools

import pytest

from earnings.models import Postback, PostbackKind, PostbackState
from earnings.states import TRANSITIONS, Event, TransitionNotAllowed, allows, apply, next_state

CREDIT, REVERSAL, PENDING = PostbackKind.CREDIT, PostbackKind.REVERSAL, PostbackKind.PENDING
_EVERYTHING = list(itertools.product(PostbackKind, PostbackState, Event))
# Written out again, so that a changed line of the table is seen.
ALLOWED = {
    (CREDIT, "RECEIVED", Event.POST): "AVAILABLE",
    (CREDIT, "RECEIVED", Event.HOLD): "HELD",
    (CREDIT, "UNASSIGNED", Event.ASSIGN): "RECEIVED",
    (CREDIT, "UNASSIGNED", Event.FORFEIT): "REFUSED",
    (CREDIT, "RECEIVED", Event.REVERSE): "REVERSED",
    (CREDIT, "HELD", Event.RELEASE): "AVAILABLE",
    (CREDIT, "HELD", Event.FORFEIT): "REFUSED",
    (CREDIT, "HELD", Event.REVERSE): "REVERSED",
    (CREDIT, "AVAILABLE", Event.REVERSE): "REVERSED",
    (REVERSAL, "RECEIVED", Event.REVERSE): "REVERSED",
    (REVERSAL, "RECEIVED", Event.REFUSE): "REFUSED",
    (REVERSAL, "RECEIVED", Event.IGNORE): "INFO",
    (REVERSAL, "UNASSIGNED", Event.ASSIGN): "RECEIVED",
    (REVERSAL, "UNASSIGNED", Event.REFUSE): "REFUSED",
    (PENDING, "RECEIVED", Event.ANNOUNCE): "PENDING",
    (PENDING, "RECEIVED", Event.IGNORE): "INFO",
    (PENDING, "PENDING", Event.CONFIRM): "INFO",
    (PENDING, "PENDING", Event.REVERSE): "REVERSED",
    (PostbackKind.INFO, "RECEIVED", Event.IGNORE): "INFO",
    (PostbackKind.TEST, "RECEIVED", Event.IGNORE): "INFO",
}


@pytest.mark.parametrize(("kind", "state", "event"), _EVERYTHING)
def test_a_postback_moves_only_along_the_allowed_transitions(kind: str, state: str, event: Event) -> None:
    postback = Postback(kind=kind, state=state)
    following = ALLOWED.get((PostbackKind(kind), state, event))
    assert allows(postback, event) is (following is not None)
    if following is None:
        with pytest.raises(TransitionNotAllowed, match=event.name):
            apply(postback, event)
        assert postback.state == state
    else:
        apply(postback, event)
        assert postback.state == following == next_state(kind, state, event)


@pytest.mark.parametrize("kind", PostbackKind)
def test_every_kind_starts_as_received_and_ends(kind: PostbackKind) -> None:
    # What names no user is stored as such.
    reached = {PostbackState.RECEIVED, *({PostbackState.UNASSIGNED} & TRANSITIONS[kind].keys())}
    for _ in PostbackState:
        reached |= {state for current in reached for state in TRANSITIONS[kind].get(current, {}).values()}
    assert set(TRANSITIONS[kind]) <= reached
    assert reached - set(TRANSITIONS[kind])
