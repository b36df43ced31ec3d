"""Notifications of PostgreSQL, by which an accepted call wakes the relay worker."""

import time
from typing import Any

import psycopg
from django.conf import settings
from django.db import connection
from psycopg import sql


class Listener:
    """
    Waits for notifications of one channel, on the calling thread's connection.

    Behind a transaction pooler, it opens a separate session that bypasses the pooler. If there is no such session, no
    notification arrives, so callers must also poll.
    """

    def __init__(self, channel: str) -> None:
        self._channel = channel
        self._session: Any = None
        self._direct: Any = None

    def wait(self, *, seconds: float) -> bool:
        """Return True if the channel was notified since the last wait; False after the timeout."""
        if settings.DATABASE_POOLING == "transaction" and not settings.DATABASE_DIRECT:
            time.sleep(seconds)
            return False
        with connection.wrap_database_errors:
            session = self._open()
            if self._session is not session:
                session.execute(sql.SQL("LISTEN {}").format(sql.Identifier(self._channel)))
                self._session = session
            notifications = list(session.notifies(timeout=seconds, stop_after=1))
        return bool(notifications)

    def _open(self) -> Any:
        if settings.DATABASE_POOLING == "session":
            connection.ensure_connection()
            return connection.connection
        if self._direct is None or self._direct.closed:
            parameters: dict[str, Any] = settings.DATABASE_DIRECT
            self._direct = psycopg.connect(**parameters, autocommit=True)
        return self._direct
