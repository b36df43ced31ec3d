"""
The functions of the database. Their source is in the code; `migrate` creates them.

An app registers its `functions.sql`. After the last migration, `replace` creates or replaces every function that
differs, in one transaction. During an upgrade, processes of the previous version still call these functions, so a
signature never changes: a function with other arguments or another result gets a new name, and the old one moves to
`retired.sql` for one release.

Each function has a comment in the database: a hash of the registered text and of the definition as PostgreSQL has it.
`differing` compares both, so it finds functions of another version and functions that were edited by hand.
"""

import hashlib
import json
import logging
import re
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags
from django.core.checks import register as register_check
from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS, DatabaseError, ProgrammingError, connections, transaction
from django.db.migrations.loader import MigrationLoader
from django.db.models import NOT_PROVIDED, Model
from psycopg import sql
from psycopg.errors import AmbiguousFunction, InvalidFunctionDefinition

from gateway.common.statements import Statements, fill

logger = logging.getLogger(__name__)

_FUNCTION = re.compile(r"^CREATE OR REPLACE FUNCTION (\w+)\(.*?\$\$.*?\$\$;$", re.DOTALL | re.MULTILINE)
_COMMENT = re.compile(r"^--.*$", re.MULTILINE)
# The registered functions by name, in the order in which they are created.
FUNCTIONS: dict[str, str] = {}

_STAMP = "SELECT md5(%s || pg_get_functiondef(%s::regproc))"
# Two concurrent runs of `migrate` must not replace the same function.
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('gateway.sql_functions', 0))"


class _Sql(Statements, file=__file__):
    differing: str


def register(folder: Path, values: Mapping[str, str] | None = None) -> str:
    """
    Register the functions of an app's `functions.sql`, and of its `retired.sql` if it has one; return their text.

    `values` replaces each `@name@` in the text.

    Raises:
        KeyError: the text has an `@name@` without a value.
        ValueError: the text contains anything else than functions and comments.
    """
    files = [folder / name for name in ("functions.sql", "retired.sql")]
    text = "\n".join(file.read_text() for file in files if file.exists())
    text = fill(text, values or {})
    if rest := _COMMENT.sub("", _FUNCTION.sub("", text)).strip():
        raise ValueError(f"{folder.name}: not a function: {rest[:60]}")
    FUNCTIONS.update((match[1], match[0]) for match in _FUNCTION.finditer(text))
    return text


def columns(model: type[Model], *, without: str = "") -> str:
    """Return the columns for an `INSERT`: all except the primary key and the column `without`."""
    fields = (field for field in model._meta.concrete_fields if not field.primary_key)
    return ", ".join(str(field.column) for field in fields if field.column != without)


def defaults(model: type[Model]) -> str:
    """Return the constant defaults of a model's fields as a JSON object by column, written in SQL."""
    values: dict[str, Any] = {}
    for field in model._meta.concrete_fields:
        value = field.default if field.db_default is NOT_PROVIDED else field.db_default
        if value is not NOT_PROVIDED and not callable(value):
            values[str(field.column)] = value
    return f"'{json.dumps(values)}'::jsonb"


def differing(using: str = DEFAULT_DB_ALIAS) -> list[str]:
    """Return the names of functions that the database lacks, or has with another definition than the code."""
    hashes = {name: _hash(text) for name, text in FUNCTIONS.items()}
    with connections[using].cursor() as cursor:
        cursor.execute(_Sql.differing, {"names": list(hashes), "hashes": list(hashes.values())})
        names = {name for (name,) in cursor.fetchall()}
    return [name for name in FUNCTIONS if name in names]


def replace(*, using: str = DEFAULT_DB_ALIAS, **_: Any) -> None:
    """
    Create or replace the registered functions if every migration has been applied; otherwise do nothing.

    All are replaced in one transaction. A function that is replaced keeps its privileges, and
    `DATABASE_APPLICATION_ROLE` may execute each of them.

    Raises:
        ImproperlyConfigured: the database has a function of the same name with another signature.
    """
    loader = MigrationLoader(connections[using])
    if not set(loader.graph.leaf_nodes()) <= set(loader.applied_migrations):
        return
    with transaction.atomic(using=using), connections[using].cursor() as cursor:
        cursor.execute(_LOCK)
        for name in differing(using):
            try:
                _replace(cursor, name)
            except ProgrammingError as error:
                if not isinstance(error.__cause__, AmbiguousFunction | InvalidFunctionDefinition):
                    raise
                raise ImproperlyConfigured(
                    f"{name}: a function with another signature needs another name."
                ) from error


def _replace(cursor: Any, name: str) -> None:
    text, function = FUNCTIONS[name], sql.Identifier(name)
    cursor.execute(text)
    cursor.execute(_STAMP, [_hash(text), name])
    (stamp,) = cursor.fetchone()
    _execute(cursor, sql.SQL("COMMENT ON FUNCTION {} IS {}").format(function, sql.Literal(stamp)))
    if role := settings.DATABASE_APPLICATION_ROLE:
        _execute(cursor, sql.SQL("GRANT EXECUTE ON FUNCTION {} TO {}").format(function, sql.Identifier(role)))


def _execute(cursor: Any, statement: sql.Composed) -> None:
    cursor.execute(statement.as_string(cursor.connection))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@register_check(Tags.database)
def functions_are_those_of_the_code(
    *, databases: Sequence[str] | None = None, **_: Any
) -> list[CheckMessage]:
    """Report functions of the database that differ from the code; runs only with `--database`."""
    return [
        Error(
            f"The function {name} is missing in the database or differs from the code.",
            hint="Run migrate.",
            id="gateway.E001",
        )
        for using in databases or []
        if using == DEFAULT_DB_ALIAS
        for name in differing(using)
    ]


def log_differing() -> threading.Thread:
    """
    Log the functions that differ, in a separate thread, which is returned.

    The process starts anyway, because during an upgrade the functions belong to another version.
    """
    thread = threading.Thread(target=_log_differing, name="sql-functions", daemon=True)
    thread.start()
    return thread


def _log_differing() -> None:
    try:
        names = differing()
    except DatabaseError as error:
        logger.warning("The functions of the database cannot be compared: %s", type(error).__name__)
    else:
        if names:
            logger.error("These functions of the database differ from the code: %s", ", ".join(names))
    finally:
        connections.close_all()
