"""
SQL that is written out, and reads from a standby.

The ORM takes longer to build a statement than PostgreSQL takes to answer it (`docs/performance.md`). Only the path of a
relay call, the ledger's moves, the inbox of postbacks and the gauges of `/metrics` are worth writing out. Unlike the
ORM's, their parameters are sent beside the text, so the driver prepares a repeated statement, and PostgreSQL plans it
once per connection.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar, cast

import psycopg
from django.db import (
    DEFAULT_DB_ALIAS,
    IntegrityError,
    connections,
)
from django.db.backends.utils import CursorWrapper
from django.db.models import Model

logger = logging.getLogger(__name__)
_Row = TypeVar("_Row", bound=Model)


def first_row(statement: str, params: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """Execute a statement and return its first row, or None where there is none."""
    with _cursor() as cursor:
        cursor.execute(statement, params)
        row: tuple[Any, ...] | None = cursor.fetchone()
    return row


def only_row(statement: str, params: Mapping[str, Any]) -> tuple[Any, ...]:
    """Execute a statement that always returns one row, and return it."""
    row = first_row(statement, params)
    if row is None:
        raise RuntimeError("the statement answered no row")
    return row


def all_rows(statement: str, params: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    with _cursor() as cursor:
        cursor.execute(statement, params)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


def _cursor() -> CursorWrapper:
    """Return Django's cursor, which counts and translates errors, around one that binds on the server."""
    # Once, because `connection` looks for that of the thread again with each attribute.
    own = connections[DEFAULT_DB_ALIAS]
    own.ensure_connection()
    # The stubs have only Django's name for the driver's cursors.
    cursor = cast("CursorWrapper", psycopg.Cursor(own.connection))
    return own.make_debug_cursor(cursor) if own.queries_logged else own.make_cursor(cursor)


def violated_constraint(error: IntegrityError) -> str | None:
    """
    Return the constraint or unique index that refused a row; None where PostgreSQL names none.

    The error's text is no place to look: it quotes the row as well.
    """
    diagnosis = getattr(error.__cause__, "diag", None)
    return getattr(diagnosis, "constraint_name", None)


def columns(model: type[Model], table: str) -> str:
    """Return the model's columns as a statement selects them from `table`, for `instance` to read."""
    return ", ".join(f"{table}.{field.column}" for field in model._meta.concrete_fields)


def instance(model: type[_Row], row: Sequence[Any]) -> _Row:
    """Return the row, selected by `columns`, as the model's instance. For models whose fields convert nothing."""
    return model.from_db(DEFAULT_DB_ALIAS, [field.attname for field in model._meta.concrete_fields], row)


REPLICA = "replica"
_reads_from: ContextVar[str] = ContextVar("reads_from", default=DEFAULT_DB_ALIAS)


def has_replica() -> bool:
    """Return whether a standby is configured."""
    return REPLICA in connections


@contextmanager
def reading_from_replica() -> Iterator[None]:
    """
    Have the ORM read from the standby in the block, if one is configured.

    Only for reads that may be a moment old: decisions about credits or account nonces need the primary. Writes, reads
    for an update, and statements that are written out always go to the primary.
    """
    token = _reads_from.set(REPLICA if has_replica() else DEFAULT_DB_ALIAS)
    try:
        yield
    finally:
        _reads_from.reset(token)


class Router:
    """Django's database router: the primary, except for reads in a block of `reading_from_replica`."""

    def db_for_read(self, model: type[Model], **hints: Any) -> str:
        return _reads_from.get()

    def db_for_write(self, model: type[Model], **hints: Any) -> str:
        return DEFAULT_DB_ALIAS

    def allow_relation(self, one: Model, other: Model, **hints: Any) -> bool:
        """Allow every relation: both databases hold the same rows."""
        return True

    def allow_migrate(self, alias: str, app_label: str, **hints: Any) -> bool:
        return alias == DEFAULT_DB_ALIAS
