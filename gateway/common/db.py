"""
SQL that is written out, notifications, and runs over many items.

The ORM takes longer to build a statement than PostgreSQL takes to answer it (`docs/performance.md`).
Only the path of a relay call, the ledger's moves, the inbox of postbacks and the gauges of `/metrics`
are worth writing out. Parameters travel beside the text here, unlike the ORM's, so a statement that
is repeated is prepared by the driver and planned once per connection.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, cast

import pgtrigger
import psycopg
from billiard.exceptions import SoftTimeLimitExceeded
from django.conf import settings
from django.db import (
    DEFAULT_DB_ALIAS,
    IntegrityError,
    InterfaceError,
    OperationalError,
    connection,
    connections,
)
from django.db.backends.utils import CursorWrapper
from django.db.models import Model
from psycopg import sql

from gateway.common.errors import DomainError

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


APPEND_ONLY = pgtrigger.Protect(name="append_only", operation=pgtrigger.Update | pgtrigger.Delete)


def never_emptied(noun: str) -> pgtrigger.Trigger:
    """Return the trigger that keeps an append-only table from being truncated, as `manage.py flush` would."""
    return pgtrigger.Trigger(
        name="never_emptied",
        level=pgtrigger.Statement,
        when=pgtrigger.Before,
        operation=pgtrigger.Truncate,
        # Databases named test_… are emptied that way between transactional tests.
        condition=pgtrigger.Condition("left(current_database()::text, 5) <> 'test_'"),
        func=f"RAISE EXCEPTION '{noun} is append-only: % cannot be truncated', TG_TABLE_NAME;",
    )


class Listener:
    """
    Waits for notifications of one channel, on the connection of the thread that waits.

    Behind a pooler of transactions it has a session of its own past it, or hears nothing: callers look by the
    clock as well.
    """

    def __init__(self, channel: str) -> None:
        self._channel = channel
        self._session: Any = None
        self._direct: Any = None

    def wait(self, *, seconds: float) -> bool:
        """Return True once the channel was notified since the last wait, False after so many seconds."""
        if settings.DATABASE_POOLING == "transaction" and not settings.DATABASE_DIRECT_URL:
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
            url = settings.DATABASE_DIRECT_URL
            self._direct = psycopg.connect(url, autocommit=True, connect_timeout=5)
        return self._direct


# Raised inside a task whose time is up. Services let it pass; otherwise they know nothing of Celery.
OutOfTime = SoftTimeLimitExceeded


class LeaseLost(Exception):
    """Another process has taken over this work (`gateway.common.leases`); its name is the argument."""


class Item:
    """One item of a run, and how it ended: a context that keeps most errors to itself."""

    def __init__(self, what: str, expected: tuple[type[Exception], ...]) -> None:
        self._what, self._expected = what, expected
        self.succeeded = False
        # It met an error that nobody expected.
        self.failed = False

    def __enter__(self) -> "Item":
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        if error is None:
            self.succeeded = True
        elif not isinstance(error, Exception) or _ends_the_run(error):
            return False
        elif isinstance(error, self._expected):
            logger.warning("%s is left for the next run: %s", self._what, type(error).__name__)
        else:
            self.failed = True
            logger.error("%s failed; the others go on", self._what, exc_info=error)
        return True


def isolated(what: str, *, expected: tuple[type[Exception], ...] = ()) -> Item:
    """
    Log the error of one item of a run, so that the run goes on; the next run tries the item again.

    Errors of the `expected` kinds are logged as warnings, others with their traceback.

    Raises:
        DomainError: with `is_outage`: the node or Stripe is away, for the other items too.
        OutOfTime: the worker must stop.
        LeaseLost: another process does the work now.
        OperationalError, InterfaceError: the database is away.
    """
    return Item(what, expected)


def _ends_the_run(error: Exception) -> bool:
    """
    Return whether the other items would fail too.

    A lock that somebody holds, a deadlock and a statement that took too long are errors of one item,
    although Django raises them as it does a lost connection.
    """
    if isinstance(error, OperationalError | InterfaceError):
        return not connection.is_usable()
    return isinstance(error, OutOfTime | LeaseLost) or (isinstance(error, DomainError) and error.is_outage)


class NothingSucceeded(Exception):
    """Each item of a sweep met an error, so the fault is not in the items. Makes the task count as failed."""


class Sweep:
    """A run over many items, each of them `isolated`; a `DomainError` is expected, and counts neither way."""

    def __init__(self, noun: str) -> None:
        self.noun = noun
        self._items: list[Item] = []

    def item(self, identifier: object) -> Item:
        item = isolated(f"{self.noun} {identifier}", expected=(DomainError,))
        self._items.append(item)
        return item

    @property
    def succeeded(self) -> int:
        return sum(item.succeeded for item in self._items)

    def finish(self) -> None:
        """
        End the sweep.

        Raises:
            NothingSucceeded: at least one item met an unexpected error, and none succeeded.
        """
        failed = sum(item.failed for item in self._items)
        if failed and not self.succeeded:
            raise NothingSucceeded(f"{failed} of {failed}: {self.noun}")
