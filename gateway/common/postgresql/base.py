"""
Django's backend for PostgreSQL, which ends sessions that have become unusable.

A primary that was demoted, or whose sessions were made read-only, still responds to reads but refuses writes, so Django
would keep using its sessions. This backend ends a session at such a refusal and opens the next one at the current
primary. It raises the refusal as `OperationalError`, like any other outage. It replaces a session whose prepared
statements no longer work in the same way.

A firewall may forget a connection without a reset; the next statement would then wait in vain. A session that was not
verified for some seconds is therefore verified before its use. The first lost one also ends all others of its database
that were verified before.
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
from psycopg.pq import ExecStatus, TransactionStatus

from gateway.common import metrics
from gateway.common.postgresql.schema import SchemaEditor
from signer.client import REUSED

logger = logging.getLogger(__name__)

_VERIFIED_SECONDS = 5.0

# The driver raises these as errors of the program. The last three concern prepared statements: one whose table or
# function was changed, for example by an upgrade ("cached plan must not change result type"), and those that a pooler
# has discarded or kept.
_ENDS_SESSION = (
    errors.ReadOnlySqlTransaction,
    errors.IdleInTransactionSessionTimeout,
    errors.TransactionTimeout,
    errors.FeatureNotSupported,
    errors.InvalidSqlStatementName,
    errors.DuplicatePreparedStatement,
)
_COUNTED: dict[type[object], str] = {
    errors.LockNotAvailable: metrics.LOCK_TIMEOUT,
    errors.AdminShutdown: metrics.SESSION_LOST,
    errors.DiskFull: metrics.DISK_FULL,
    errors.ReadOnlySqlTransaction: metrics.READ_ONLY,
}


class DatabaseWrapper(base.DatabaseWrapper):
    """Django's connection; Django imports it by its name."""

    SchemaEditorClass = SchemaEditor
    # By alias: sessions that were verified last before this time are replaced.
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

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """Return a session from the pool that works, or a new one."""
        session = super().get_new_connection(conn_params)
        for _ in range(self.pool.max_size if self.pool else 0):
            if self._works(session):
                break
            metrics.DATABASE_ERRORS.add(metrics.SESSION_LOST)
            session.close()
            self.pool.putconn(session)
            session = super().get_new_connection(conn_params)
        return session

    def is_usable(self) -> bool:
        """Return whether the server takes statements in this session; a lost connection ends within a second."""
        session = self.connection
        if session is None or session.closed or session.info.transaction_status == TransactionStatus.INERROR:
            return False
        return _responds(session)

    def _configure_connection(self, connection: Any) -> bool:
        """Prepare a new session, which counts as verified."""
        connection.verified_at = time.monotonic()
        return bool(super()._configure_connection(connection))  # type: ignore[misc] # missing in the stubs

    def _works(self, session: Any) -> bool:
        now, lost_at = time.monotonic(), self._lost_at.get(self.alias, 0.0)
        if _has_news(session) or session.verified_at <= lost_at:
            return False
        if now - session.verified_at < _VERIFIED_SECONDS:
            return True
        if _responds(session):
            session.verified_at = time.monotonic()
            return True
        if session.verified_at > self._lost_at.get(self.alias, 0.0):
            self._lost_at[self.alias] = now
            logger.warning("a session of the database %s was lost; all idle ones are replaced", self.alias)
        return False


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
    """Return whether the server responds to an empty statement, for which a lost connection has less than a second."""
    with socket.socket(fileno=os.dup(session.fileno())) as handle:
        is_remote = handle.family != socket.AF_UNIX
        usual = handle.getsockopt(*REUSED[:2]) if is_remote else 0
        if is_remote:
            handle.setsockopt(*REUSED)
        try:
            # Begins no transaction, in whatever state the session is.
            result = session.pgconn.exec_(b"")
        except psycopg.OperationalError:
            return False
        if is_remote:
            handle.setsockopt(*REUSED[:2], usual)
    return result.status == ExecStatus.EMPTY_QUERY
