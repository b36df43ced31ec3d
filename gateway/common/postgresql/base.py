"""
Django's backend for PostgreSQL, which ends sessions that have become unusable.

A primary that was demoted, or whose sessions were made read-only, still responds to reads but refuses writes, so Django
would keep using its sessions. This backend ends a session at such a refusal and opens the next one at the current
primary. It raises the refusal as `OperationalError`, like any other outage.
"""

import select
from typing import Any

import psycopg
from django.db import DatabaseError, OperationalError
from django.db.backends.postgresql import base
from psycopg import errors

from gateway.common import metrics

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


class DatabaseWrapper(base.DatabaseWrapper):
    """Django's connection; Django imports it by its name."""

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

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """Return a session from the pool that the server has not ended, or a new one."""
        session = super().get_new_connection(conn_params)
        for _ in range(self.pool.max_size if self.pool else 0):
            if not _has_news(session):
                break
            metrics.DATABASE_ERRORS.add(metrics.SESSION_LOST)
            session.close()
            self.pool.putconn(session)
            session = super().get_new_connection(conn_params)
        return session


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
