"""
Reads that may be a moment old, from a standby of PostgreSQL.

Everything reads from the primary unless it says otherwise: a decision about credits or account nonces needs rows as
they are. Dashboards, histories and the admin's pages say otherwise, where `DATABASE_REPLICA_URL` names a standby.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.models import Model

REPLICA = "replica"
_reads_from: ContextVar[str] = ContextVar("reads_from", default=DEFAULT_DB_ALIAS)


def has_replica() -> bool:
    """Return whether there is a standby to read from."""
    return REPLICA in connections


@contextmanager
def reading_from_replica() -> Iterator[None]:
    """
    Have the ORM read from the standby in the block, if there is one.

    Writes, reads for an update, and statements that are written out go to the primary all the same.
    """
    token = _reads_from.set(REPLICA if has_replica() else DEFAULT_DB_ALIAS)
    try:
        yield
    finally:
        _reads_from.reset(token)


class Router:
    """Django's database router: the primary, except for reads in a block of `reading_from_replica`."""

    def db_for_read(self, model: type[Model], **hints: Any) -> str:
        """Return where rows are read."""
        return _reads_from.get()

    def db_for_write(self, model: type[Model], **hints: Any) -> str:
        """Return where rows are written, and read in order to be written."""
        return DEFAULT_DB_ALIAS

    def allow_relation(self, one: Model, other: Model, **hints: Any) -> bool:
        """Let rows refer to each other wherever they were read: they are of one database."""
        return True

    def allow_migrate(self, alias: str, app_label: str, **hints: Any) -> bool:
        """Return whether tables are made there."""
        return alias == DEFAULT_DB_ALIAS
