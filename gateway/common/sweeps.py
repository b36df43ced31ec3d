"""Sweeps: one item that fails must not stop those behind it."""

from billiard.exceptions import SoftTimeLimitExceeded
from django.db import InterfaceError, OperationalError, connection

# Raised inside a task whose time is up. Services let it pass; otherwise they know nothing of Celery.
OutOfTime = SoftTimeLimitExceeded


def would_stop_all(error: Exception) -> bool:
    """
    Return whether the items behind the one that raised `error` would fail too: no time is left, or no database.

    A lock that somebody holds, a deadlock and a statement that took too long are errors of one item,
    although Django raises them as it does a lost connection.
    """
    if isinstance(error, OperationalError | InterfaceError):
        return not connection.is_usable()
    return isinstance(error, OutOfTime)
