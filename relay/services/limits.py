"""
Limits on what one profile may take from the relayers, so that nobody can use up what others need.

Calls that end without effect cost the service account nonces, and gas where they are
cancelled, so they are counted by their rows. Account nonces in flight are few, so one
profile gets a share of them.
"""

from datetime import datetime, timedelta

from django.conf import settings

from gateway.chain.config import get_chain
from gateway.common import db
from relay.errors import CallFailedBefore, RelayShareUsed, TooManyCancelledCalls
from relay.queries import CallHistory
from relay.services import cancellation, relayers, statements
from users.models import User

_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)
_NAMED = {_HOUR: "an hour", _DAY: "a day"}


def check_cancelled_calls(*, user: User, now: datetime) -> None:
    """
    Refuse a user whose calls ended without effect too often, in the last hour or in the last day.

    Raises:
        TooManyCancelledCalls: with the seconds until enough of them lie outside the window.
    """
    most = max(settings.RELAY_CANCELLED_CALLS_PER_HOUR, settings.RELAY_CANCELLED_CALLS_PER_DAY)
    params = {
        "user": user.pk,
        "since": now - _DAY,
        "most": most,
        "predecessor_failed": cancellation.PREDECESSOR_FAILED,
    }
    newest = [settled_at for (settled_at,) in db.all_rows(statements.CANCELLED_CALLS_OF_USER, params)]
    limits: list[tuple[int, timedelta]] = [
        (settings.RELAY_CANCELLED_CALLS_PER_DAY, _DAY),
        (settings.RELAY_CANCELLED_CALLS_PER_HOUR, _HOUR),
    ]
    for allowed, window in limits:
        # As long as the oldest of `allowed` calls lies in the window, all of them do.
        oldest = newest[allowed - 1] if len(newest) >= allowed else None
        if oldest is not None and oldest + window > now:
            ends_at = oldest + window
            raise TooManyCancelledCalls(
                f"{allowed} calls of the profile ended without effect within {_NAMED[window]}.",
                retry_after=int((ends_at - now).total_seconds()) + 1,
                maximum=allowed,
                windowSeconds=int(window.total_seconds()),
            )


def check_failures(*, history: CallHistory) -> None:
    """
    Refuse a call without a token that has failed before: its signature is public.

    Raises:
        CallFailedBefore: it is tried again only with a token.
    """
    if history.failures >= settings.LSP15_FAILURES_PER_CALL:
        raise CallFailedBefore(
            "This call has failed on chain. Sign in to try it again, or sign a new call.",
            maximum=settings.LSP15_FAILURES_PER_CALL,
        )


def check_share(*, user: User) -> None:
    """
    Refuse a user whose calls already hold a full share of all account nonces in flight.

    Runs inside the accepting transaction after the credit account is locked: that
    lock makes the user's count final.

    Raises:
        RelayShareUsed: until one of them is mined.
    """
    if settings.RELAY_USER_SHARE_PERCENT == 100:
        return
    relayer_count, waiting = db.only_row(statements.SHARE_OF_USER, {"chain": get_chain().id, "user": user.pk})
    capacity = relayer_count * settings.RELAY_MAX_IN_FLIGHT
    allowed = max(1, capacity * settings.RELAY_USER_SHARE_PERCENT // 100)
    if waiting >= allowed:
        raise RelayShareUsed(
            f"{allowed} calls of the profile wait to be mined.",
            retry_after=relayers.seconds_until_next_block(),
            maximum=allowed,
        )
