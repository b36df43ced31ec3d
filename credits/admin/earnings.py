"""What staff do about earnings that are held."""

from credits.models import Postback, PostbackState
from credits.services import earnings_release
from gateway.common.decisions import Decision, ReasonedAction


def _is_held(row: Postback) -> bool:
    return row.state == PostbackState.HELD


def _release(row: Postback, decision: Decision) -> str:
    given = earnings_release.release_early(postback_id=row.pk)
    return f"{given.entry.amount if given.entry else 0} credits are posted."


def _forfeit(row: Postback, decision: Decision) -> str:
    earnings_release.forfeit(postback_id=row.pk)
    return "Its credits will never be given."


RELEASE_EARLY = ReasonedAction(
    name="release_early",
    label="Release early",
    permission="credits.decide_earning",
    effect=lambda row: (
        f"What is left of {row.credits} credits is given to {row.user} at once, "
        f"and not at {row.available_at:%Y-%m-%d %H:%M} UTC. "
        "The network may still take it back, also where it has been spent."
    ),
    run=_release,
    applies_to=_is_held,
)
FORFEIT = ReasonedAction(
    name="forfeit",
    label="Forfeit",
    permission="credits.decide_earning",
    effect=lambda row: (
        f"{row.user} never gets the {row.credits} credits. Only an adjustment can make up for it."
    ),
    run=_forfeit,
    applies_to=_is_held,
)
