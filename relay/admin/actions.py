"""What operations do about the relay, each through its service."""

from django.utils import timezone

from credits.models import CreditHold
from gateway.common.decisions import Decision, ReasonedAction
from relay import queries
from relay.models import Relayer, RelaySwitch, RelayTransaction
from relay.services import cancelling, dead_holds, roster, switching
from relay.services.broadcasting import broadcast_again


def _set_active(row: Relayer, *, is_active: bool) -> str:
    changed = roster.set_active(relayer_id=row.pk, is_active=is_active)
    state = "active" if is_active else "paused"
    return f"It is {state} from now on." if changed else f"It was {state} before."


PAUSE_RELAYER = ReasonedAction(
    name="pause",
    label="Pause",
    permission="relay.pause_relayer",
    effect=lambda row: f"It takes no new calls. Its {row.in_flight} account nonces in flight go on.",
    run=lambda row, decision: _set_active(row, is_active=False),
    applies_to=lambda row: row.is_active,
)
RESUME_RELAYER = ReasonedAction(
    name="resume",
    label="Resume",
    permission="relay.pause_relayer",
    effect=lambda row: "It takes new calls again.",
    run=lambda row, decision: _set_active(row, is_active=True),
    applies_to=lambda row: not row.is_active,
)


def _broadcast_again(row: RelayTransaction, decision: Decision) -> str:
    taken = broadcast_again(relay_transaction_id=row.pk, now=timezone.now())
    return "The node took it." if taken else "The node did not take it; its attempts say why."


BROADCAST_AGAIN = ReasonedAction(
    name="broadcast_again",
    label="Broadcast again",
    permission="relay.rebroadcast_relaytransaction",
    effect=lambda row: (
        "The stored bytes go to the node once more. However often they are sent, they are mined once."
    ),
    run=_broadcast_again,
    reaches_out=True,
    applies_to=lambda row: row.is_in_progress,
)


def _cancel_unsent(row: RelayTransaction, decision: Decision) -> str:
    cancelling.cancel_unsent(relay_transaction_id=row.pk, now=timezone.now())
    return "A self-transfer uses up its account nonce; once that is confirmed, the hold is released."


CANCEL_UNSENT = ReasonedAction(
    name="cancel_unsent",
    label="Cancel unsent",
    permission="relay.cancel_relaytransaction",
    effect=lambda row: (
        "It is never broadcast. A self-transfer that the service pays uses up its account nonce; "
        f"then it ends as Cancelled and {row.hold.amount} credits are released. "
        "Calls behind it in its channel fail with it."
    ),
    run=_cancel_unsent,
    reaches_out=True,
    applies_to=cancelling.may_be_cancelled,
)


def _release(row: CreditHold, decision: Decision) -> str:
    dead_holds.release(hold_id=row.pk, actor=decision.actor, reason=decision.reason, now=timezone.now())
    return f"{row.amount} credits are released."


RELEASE_DEAD_HOLD = ReasonedAction(
    name="release_dead_hold",
    label="Release",
    permission="relay.release_dead_hold",
    effect=lambda row: (
        f"{row.amount} credits are available to the user again. Nothing else could ever close it."
    ),
    run=_release,
    applies_to=lambda row: dead_holds.dead_holds(now=timezone.now()).filter(pk=row.pk).exists(),
)


def _switch(decision: Decision, *, is_open: bool) -> str:
    switching.switch(is_open=is_open, actor=decision.actor, reason=decision.reason)
    return "It goes on." if is_open else "It is paused."


def _is_open(_: RelaySwitch) -> bool:
    return not queries.is_paused()


PAUSE_RELAY = ReasonedAction(
    name="pause",
    label="Pause the whole relay",
    permission="relay.add_relayswitch",
    subject="The whole relay",
    effect=lambda _: "New calls are refused with 503. What was accepted is broadcast and settled as ever.",
    run=lambda _, decision: _switch(decision, is_open=False),
    applies_to=_is_open,
)
RESUME_RELAY = ReasonedAction(
    name="resume",
    label="Resume the relay",
    permission="relay.add_relayswitch",
    subject="The whole relay",
    effect=lambda _: "New calls are accepted again.",
    run=lambda _, decision: _switch(decision, is_open=True),
    applies_to=lambda row: not _is_open(row),
)
