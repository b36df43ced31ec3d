"""
Limits on what one profile may take from the relayers, so that nobody can use up what others need.

Calls that end without effect cost the service account nonces, and gas where they are cancelled, so they are
counted by their rows. Account nonces in flight are few, so one profile gets a share of them: as many open
holds, which `relay_take_slots` counts under the account's lock.
"""

from datetime import datetime, timedelta

from django.conf import settings

from relay.errors import CallFailedBefore, TooManyCancelledCalls
from relay.queries import CallRows


def check_cancelled_calls(*, rows: CallRows, now: datetime) -> None:
    """
    Refuse a user whose calls ended without effect too often, in the last hour or in the last day.

    Raises:
        TooManyCancelledCalls: with the seconds until enough of them lie outside the window.
    """
    # As long as the oldest of the allowed calls lies in the window, all of them do.
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
    Refuse a call without a token that has failed before: its signature is public.

    Raises:
        CallFailedBefore: it is tried again only with a token.
    """
    if rows.failures >= settings.LSP15_FAILURES_PER_CALL:
        raise CallFailedBefore(
            "This call has failed on chain. Sign in to try it again, or sign a new call.",
            maximum=settings.LSP15_FAILURES_PER_CALL,
        )
