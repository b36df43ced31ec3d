"""
Limits on one profile's use of the relayers, so that no profile can starve the others.

Calls that end without effect cost the service account nonces, and gas where they are cancelled, so their rows are
counted. Account nonces in flight are scarce, so a profile gets a share of them, measured in open holds, which
`relay_take_slots` counts under the account's lock.
"""

from datetime import datetime, timedelta

from django.conf import settings

from relay.errors import CallFailedBefore, TooManyCancelledCalls
from relay.queries import CallRows


def check_cancelled_calls(*, rows: CallRows, now: datetime) -> None:
    """
    Refuse a user with too many calls that ended without effect in the last hour or day.

    Raises:
        TooManyCancelledCalls: with the seconds until enough of these calls are outside the window.
    """
    # While the oldest of the allowed calls is in the window, all of them are.
    limits = [
        (rows.daily_limit_since, settings.RELAY_CANCELLED_CALLS_PER_DAY, timedelta(days=1), "a day"),
        (rows.hourly_limit_since, settings.RELAY_CANCELLED_CALLS_PER_HOUR, timedelta(hours=1), "an hour"),
    ]
    for oldest, allowed, window, name in limits:
        if oldest is not None:
            raise TooManyCancelledCalls(
                f"{allowed} calls of the profile ended without effect within {name}.",
                retry_after=int((oldest + window - now).total_seconds()) + 1,
                maximum=allowed,
                windowSeconds=int(window.total_seconds()),
            )


def check_failures(*, rows: CallRows) -> None:
    """
    Refuse a call without a token that has failed before, because its signature is public.

    Raises:
        CallFailedBefore: the call needs a token now.
    """
    if rows.failures >= settings.LSP15_FAILURES_PER_CALL:
        raise CallFailedBefore(
            "This call has failed on chain. Sign in to retry it, or sign a new call.",
            maximum=settings.LSP15_FAILURES_PER_CALL,
        )
