"""Django's schema editor, whose concurrently made indexes can be repeated after any interruption."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from django.db import DatabaseError
from django.db.backends.postgresql import schema
from django.db.models import Index, Model


class SchemaEditor(schema.DatabaseSchemaEditor):
    """
    Concurrent operations wait for other transactions without a limit, because they keep no reader or writer waiting.

    A run that is killed may leave an invalid index, which the next run replaces, or a valid one that Django has not
    recorded, which it keeps.
    """

    def add_index(self, model: type[Model], index: Index, concurrently: bool = False) -> None:
        """Create the index; concurrently, unless there is a valid one of its name."""
        if not concurrently or self.collect_sql:
            super().add_index(model, index, concurrently)
            return
        with self._waiting_for_all():
            match self._is_valid(index.name):
                case True:
                    return
                case False:
                    super().remove_index(model, index, concurrently=True)
            super().add_index(model, index, concurrently)

    def remove_index(self, model: type[Model], index: Index, concurrently: bool = False) -> None:
        """Drop the index."""
        if not concurrently or self.collect_sql:
            super().remove_index(model, index, concurrently)
            return
        with self._waiting_for_all():
            super().remove_index(model, index, concurrently)

    def _is_valid(self, index: str) -> bool | None:
        """Return whether the index is valid; None if there is none."""
        row = self._row(
            "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(quote_ident(%s))", index
        )
        return bool(row[0]) if row else None

    @contextmanager
    def _waiting_for_all(self) -> Iterator[None]:
        change = "SELECT set_config('lock_timeout', %s, false)"
        (usual,) = self._row("SELECT current_setting('lock_timeout')") or ("0",)
        self._row(change, "0")
        try:
            yield
        finally:
            # The session may have ended, and with it its settings.
            with suppress(DatabaseError):
                self._row(change, usual)

    def _row(self, statement: str, *params: str) -> tuple[Any, ...] | None:
        with self.connection.cursor() as cursor:
            cursor.execute(statement, params)
            row: tuple[Any, ...] | None = cursor.fetchone()
        return row
