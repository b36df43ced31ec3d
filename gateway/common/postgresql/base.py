"""
Django's backend for PostgreSQL, which ends sessions that have become unusable.

A primary that was demoted, or whose sessions were made read-only, still answers reads but refuses writes, so Django
would keep using its sessions. This backend ends a session at such a refusal and opens the next one at the current
primary. It raises the refusal as `OperationalError`, like any other outage.
"""

import select
from typing import Any

import psycopg
from django.db import OperationalError
from django.db.backends.postgresql import base
from django.db.utils import DatabaseErrorWrapper
from django.utils.functional import cached_property
from psycopg import errors

from gateway.common import metrics

# The driver raises these as `InternalError`, which Django treats as a programming error.
_ENDS_SESSION = (
    errors.ReadOnlySqlTransaction,
    errors.IdleInTransactionSessionTimeout,
    errors.TransactionTimeout,
)


class _Errors(DatabaseErrorWrapper):
    """Translates the driver's errors to Django's, and ends the session after errors that every query would repeat."""

    wrapper: "DatabaseWrapper"

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if isinstance(error, errors.LockNotAvailable):
            metrics.DATABASE_ERRORS.add(metrics.LOCK_TIMEOUT)
        elif isinstance(error, errors.AdminShutdown):
            metrics.DATABASE_ERRORS.add(metrics.SESSION_LOST)
        elif isinstance(error, errors.DiskFull):
            metrics.DATABASE_ERRORS.add(metrics.DISK_FULL)
        elif isinstance(error, errors.ReadOnlySqlTransaction):
            metrics.DATABASE_ERRORS.add(metrics.READ_ONLY)
        if isinstance(error, _ENDS_SESSION):
            self.wrapper.end_session()
            raise OperationalError(*error.args) from error
        super().__exit__(kind, error, traceback)


class DatabaseWrapper(base.DatabaseWrapper):
    """Django's connection; Django imports it by its name."""

    @cached_property
    def wrap_database_errors(self) -> _Errors:
        return _Errors(self)

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
