"""
Raw SQL, and reads from a standby.

The ORM needs more time to build a statement than PostgreSQL needs to execute it (`docs/performance.md`). Relay calls,
the ledger, postbacks and the gauges of `/metrics` therefore use raw SQL. Unlike the ORM, the functions here send
parameters separately from the text, so the driver prepares repeated statements, and PostgreSQL plans them once per
connection.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar, cast

import psycopg
import psycopg.errors
from django.db import (
    DEFAULT_DB_ALIAS,
    IntegrityError,
    OperationalError,
    connections,
)
from django.db.backends.utils import CursorWrapper
from django.db.models import Model

_Row = TypeVar("_Row", bound=Model)


def first_row(statement: str, params: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """Execute a statement and return its first row, or None without rows."""
    with _cursor() as cursor:
        cursor.execute(statement, params)
        row: tuple[Any, ...] | None = cursor.fetchone()
    return row


def only_row(statement: str, params: Mapping[str, Any]) -> tuple[Any, ...]:
    """Execute a statement that always returns one row, and return it."""
    row = first_row(statement, params)
    if row is None:
        raise RuntimeError("the statement returned no row")
    return row


def all_rows(statement: str, params: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    with _cursor() as cursor:
        cursor.execute(statement, params)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


def connection_error(alias: str) -> str:
    """Try to connect in a separate session; return the error as a sentence, or an empty string."""
    own = connections[alias]
    try:
        psycopg.connect(**own.get_connection_params()).close()
    except psycopg.OperationalError as error:
        place = f"{own.settings_dict['HOST']}:{own.settings_dict['PORT'] or 5432}"
        reason = f"The database {alias} at {place} does not respond: {' '.join(str(error).split())}"
        # PgBouncer's refusal of the limits that the settings pass, in every pool mode.
        return f"{reason} Set DATABASE_POOLING=transaction." if "startup parameter" in reason else reason
    return ""


def _cursor() -> CursorWrapper:
    """Return Django's cursor, which translates errors, around a driver's cursor that binds parameters on the server."""
    # Stored in a variable, because each attribute of `connection` looks up the thread's connection again.
    own = connections[DEFAULT_DB_ALIAS]
    own.ensure_connection()
    # The type stubs do not know the driver's cursors.
    cursor = cast("CursorWrapper", psycopg.Cursor(own.connection))
    return own.make_debug_cursor(cursor) if own.queries_logged else own.make_cursor(cursor)


def violated_constraint(error: IntegrityError) -> str | None:
    """
    Return the constraint or unique index that refused a row; None if PostgreSQL names none.

    Do not search the error's text for a name, because it also quotes the row.
    """
    diagnosis = getattr(error.__cause__, "diag", None)
    return getattr(diagnosis, "constraint_name", None)


def is_lock_timeout(error: OperationalError) -> bool:
    """Return whether the statement waited for a lock for longer than `lock_timeout`."""
    return isinstance(error.__cause__, psycopg.errors.LockNotAvailable)


def limit_lock_waits(milliseconds: int) -> None:
    """Set the lock timeout for the rest of this transaction."""
    first_row("SELECT set_config('lock_timeout', %(limit)s, true)", {"limit": f"{milliseconds}ms"})


def columns(model: type[Model], table: str) -> str:
    """Return the model's columns of `table` for a SELECT; `instance` reads the row."""
    return ", ".join(f"{table}.{field.column}" for field in model._meta.concrete_fields)


def instance(model: type[_Row], row: Sequence[Any]) -> _Row:
    """Return a row selected by `columns` as the model's instance, without the fields' conversions."""
    return model.from_db(DEFAULT_DB_ALIAS, [field.attname for field in model._meta.concrete_fields], row)


REPLICA = "replica"
_reads_from: ContextVar[str] = ContextVar("reads_from", default=DEFAULT_DB_ALIAS)


def has_replica() -> bool:
    """Return whether a standby is configured."""
    return REPLICA in connections


@contextmanager
def reading_from_replica() -> Iterator[None]:
    """
    Make the ORM read from the standby in this block, if one is configured.

    Use it only for reads that may be slightly stale: decisions about credits or account nonces need the primary.
    Writes, SELECT FOR UPDATE and raw SQL always use the primary.
    """
    token = _reads_from.set(REPLICA if has_replica() else DEFAULT_DB_ALIAS)
    try:
        yield
    finally:
        _reads_from.reset(token)


class Router:
    """Database router: the primary, except for reads in a block of `reading_from_replica`."""

    def db_for_read(self, model: type[Model], **hints: Any) -> str:
        return _reads_from.get()

    def db_for_write(self, model: type[Model], **hints: Any) -> str:
        return DEFAULT_DB_ALIAS

    def allow_relation(self, one: Model, other: Model, **hints: Any) -> bool:
        """Allow every relation, because both databases have the same rows."""
        return True

    def allow_migrate(self, alias: str, app_label: str, **hints: Any) -> bool:
        return alias == DEFAULT_DB_ALIAS
