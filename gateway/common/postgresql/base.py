"""
Django's backend for PostgreSQL, which ends sessions that have become unusable.

A primary that was demoted, or whose sessions were made read-only, still responds to reads but refuses writes, so Django
would keep using its sessions. This backend ends a session at such a refusal and opens the next one at the current
primary. It raises the refusal as `OperationalError`, like any other outage.

A firewall may forget an idle connection without a reset. A session that was idle is therefore verified before its use.
The first one that is lost also ends the other sessions that have been idle since then.
"""

import logging
import os
import select
import socket
import time
from typing import Any, ClassVar

import psycopg
from django.db import DatabaseError, OperationalError
from django.db.backends.postgresql import base
from psycopg import errors
from psycopg_pool import ConnectionPool

from gateway.common import metrics
from signer.client import LOST_SECONDS, REUSED

# The driver raises these as `InternalError`, which Django treats as a programming error.
_ENDS_SESSION = (
    errors.ReadOnlySqlTransaction,
    errors.IdleInTransactionSessionTimeout,
    errors.TransactionTimeout,
)
_COUNTED: dict[type[object], str] = {
    errors.LockNotAvailable: metrics.LOCK_TIMEOUT,
    errors.AdminShutdown: metrics.SESSION_LOST,
    errors.DiskFull: metrics.DISK_FULL,
    errors.ReadOnlySqlTransaction: metrics.READ_ONLY,
}
logger = logging.getLogger(__name__)

# A session that was idle for longer is verified by a round trip.
_VERIFIED_AFTER_SECONDS = 5.0


class DatabaseWrapper(base.DatabaseWrapper):
    """Django's connection; Django imports it by its name."""

    # By alias: when a session was last found lost.
    _lost_at: ClassVar[dict[str, float]] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.execute_wrappers.append(metrics.observed)

    def _commit(self) -> None:
        try:
            super()._commit()  # type: ignore[misc] # missing in the stubs
        except DatabaseError as error:
            self.count_error(error)
            raise

    def count_error(self, error: DatabaseError) -> None:
        """
        Count an error of this session, and end the session if every further statement would fail with it.

        Raises:
            OperationalError: instead of an error that ended the session.
        """
        cause = error.__cause__
        if name := _COUNTED.get(type(cause)):
            metrics.DATABASE_ERRORS.add(name)
        if isinstance(cause, _ENDS_SESSION):
            self.end_session()
            raise OperationalError(*error.args) from cause

    def end_session(self) -> None:
        """End the session instead of returning it to the pool; a transaction in progress is rolled back."""
        if self.connection is not None:
            self.connection.close()
        self.close()

    def _close(self) -> None:
        """Return the session to the pool, with the time from which it is idle."""
        if self.connection is not None:
            self.connection.idle_since = time.monotonic()
        super()._close()  # type: ignore[misc]  # the stubs lack it

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """Return a session from the pool that has not ended, or a new one."""
        session = super().get_new_connection(conn_params)
        for _ in range(self.pool.max_size if self.pool else 0):
            if not self._has_ended(session):
                break
            metrics.DATABASE_ERRORS.add(metrics.SESSION_LOST)
            session.close()
            self.pool.putconn(session)
            session = super().get_new_connection(conn_params)
        return session

    def _has_ended(self, session: Any) -> bool:
        if _has_news(session):
            return True
        now = time.monotonic()
        idle_since = getattr(session, "idle_since", now)
        if idle_since <= self._lost_at.get(self.alias, 0.0):
            return True
        if now - idle_since < _VERIFIED_AFTER_SECONDS or _responds(session):
            return False
        if time.monotonic() - now >= LOST_SECONDS:
            self._lost_at[self.alias] = time.monotonic()
            logger.warning(
                "an idle session of the database %s is lost; all idle ones are replaced", self.alias
            )
        return True


def _has_news(session: "psycopg.Connection[Any]") -> bool:
    """
    Return whether the server has closed this idle session or changed its settings: it has sent an unread message.

    Costs no round trip.
    """
    if session.closed:
        return True
    poll = select.poll()
    poll.register(session.fileno(), select.POLLIN)
    return bool(poll.poll(0))


def _responds(session: "psycopg.Connection[Any]") -> bool:
    """Return whether the server responds to an empty statement. A lost connection ends within `LOST_SECONDS`."""
    with socket.socket(fileno=os.dup(session.fileno())) as handle:
        is_remote = handle.family != socket.AF_UNIX
        usual = handle.getsockopt(*REUSED[:2]) if is_remote else 0
        if is_remote:
            handle.setsockopt(*REUSED)
        try:
            ConnectionPool.check_connection(session)
        except psycopg.Error:
            return False
        if is_remote:
            handle.setsockopt(*REUSED[:2], usual)
    return True
