"""
Limits on one profile's use of the relayers, so that no profile can starve the others.

Calls that end without effect use up account nonces, and gas if they are cancelled; the service counts them from their
rows. Account nonces in flight are scarce, so each profile gets a share of them. `relay_take_slots` measures the share
in open holds, under the account's lock. A call that the chain refuses has no row, and no user pays for its simulation;
each process counts such calls in memory. Of the threads of a process that may wait for nodes, each user has a share.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import cache

from django.conf import settings

from gateway.chain.config import get_chain
from gateway.common.errors import TooManyRequests
from gateway.common.guards import NoShare, Shares
from relay.errors import CallFailedBefore, RelayShareUsed, TooManyCancelledCalls
from relay.queries.calls import CallRows


def check_cancelled_calls(*, rows: CallRows, now: datetime) -> None:
    """
    Refuse a user with too many calls that ended without effect in the last hour or day.

    Raises:
        TooManyCancelledCalls: `retry_after` is the time until enough of these calls are outside the window.
    """
    # The limit is reached while the oldest of the allowed number of calls is in the window.
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


# How long a request waits for others of the same user.
_SHARE_SECONDS = 0.7


@cache
def _readers(_chain_id: int) -> Shares:
    """Return the threads that read from a chain's nodes; one user's may take half of a node's places."""
    return Shares(total=settings.WEB_THREADS, each=_share())


def _share() -> int:
    return max(2, settings.WEB_THREADS // 8)


@contextmanager
def share_of_nodes(user_id: int) -> Iterator[None]:
    """
    Hold one of the user's threads that may read from nodes, outside the batches of calls.

    Raises:
        RelayShareUsed: other requests of the user have them all.
    """
    try:
        with _readers(get_chain().id).place(user_id, wait_seconds=_SHARE_SECONDS):
            yield
    except NoShare as error:
        raise RelayShareUsed(
            f"At most {_share()} requests of the profile can read from the chain at once.",
            retry_after=1,
            maximum=_share(),
        ) from error


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


class RefusedCalls:
    """
    A leaky bucket for each sender: counts calls that were refused after the node had executed them, less one a second.

    Each process has its own. Thread-safe.
    """

    def __init__(self, *, most: int = 30, most_senders: int = 10_000) -> None:
        self._most, self._most_senders = most, most_senders
        self._lock = threading.Lock()
        # By sender: the level, and the time on the monotonic clock at which it was last updated.
        self._counts: dict[str, tuple[float, float]] = {}

    def add(self, sender: str) -> None:
        """Count a refused call."""
        with self._lock:
            if len(self._counts) >= self._most_senders:
                self._counts = {one: count for one, count in self._counts.items() if self._left(one)}
            if len(self._counts) < self._most_senders:
                self._counts[sender] = (self._left(sender) + 1, time.monotonic())

    def check(self, sender: str) -> None:
        """
        Refuse a sender whose calls were refused too often, before a node is queried.

        Raises:
            TooManyRequests: the sender may retry after a second.
        """
        if self._left(sender) >= self._most:
            raise TooManyRequests(
                f"The chain refused {self._most} calls in a short time. Send one call a second.",
                retry_after=1,
            )

    def _left(self, sender: str) -> float:
        number, counted_at = self._counts.get(sender, (0.0, 0.0))
        return max(0.0, number - (time.monotonic() - counted_at)) if number else 0.0


class OversizedProfiles:
    """
    Profiles whose contracts have returned too much data in the last minutes.

    Such a response forces the process to read the rest of a batch again, so their calls are read alone. Thread-safe.
    """

    def __init__(self, *, seconds: float = 300.0, most: int = 10_000) -> None:
        self._seconds, self._most = seconds, most
        self._lock = threading.Lock()
        # By chain and profile: the end on the monotonic clock.
        self._until: dict[tuple[int, str], float] = {}

    def add(self, profile: tuple[int, str]) -> None:
        """Read the profile's calls alone for some minutes from now."""
        now = time.monotonic()
        with self._lock:
            if len(self._until) >= self._most:
                self._until = {one: until for one, until in self._until.items() if until > now}
            if len(self._until) < self._most:
                self._until[profile] = now + self._seconds

    def has(self, profile: tuple[int, str]) -> bool:
        """Return whether the profile's calls are read alone."""
        return self._until.get(profile, 0.0) > time.monotonic()
