"""
The privileges of the processes' database role, as granted by `migrate`.

The tables belong to the role that migrates. The processes connect as another role, which can only read and write rows:
it cannot alter or truncate tables, or disable triggers. It also cannot

- update or delete rows of append-only tables, which triggers prevent as well;
- move a row to another user or account;
- mark an entry of the ledger as erased, or delete the salts that its proofs need.

After a backwards migration, tables of the code may be missing; they get their privileges when they are created again.
"""

import logging
from collections.abc import Iterator
from typing import Any

import pgtrigger
from django.apps import apps
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import ProgrammingError, connections, models, transaction
from psycopg import sql
from psycopg.errors import InsufficientPrivilege

from credits.models import CreditAccount
from gateway.common.models import APPEND_ONLY
from gateway.common.statements import Statements
from proofs.models import AccountSalt, ErasedEntry
from sponsors.models import Sponsor
from users.models import User

logger = logging.getLogger(__name__)

_LIMIT = "ALTER ROLE {role} SET {name} = {limit}"


class _Sql(Statements, file=__file__):
    grants: str
    all_columns_but: str
    other_columns: str


def append_only_tables() -> list[str]:
    """Return the tables whose rows are never altered, by name."""
    registered = pgtrigger.registered()
    return sorted({model._meta.db_table for model, trigger in registered if trigger.name == APPEND_ONLY.name})


def owner_columns() -> dict[str, list[str]]:
    """Return, by table, the columns that reference the owner of a row: required, protected foreign keys."""
    columns = ((model._meta.db_table, list(_owner_columns_of(model))) for model in apps.get_models())
    return {table: names for table, names in columns if names and table not in append_only_tables()}


def _owner_columns_of(model: type[models.Model]) -> Iterator[str]:
    for field in model._meta.concrete_fields:
        if (
            isinstance(field, models.ForeignKey)
            and field.related_model in (User, CreditAccount, Sponsor)
            and field.remote_field.on_delete is models.PROTECT
            # An account has one of two owners, so both are nullable.
            and (model is CreditAccount or not field.null)
        ):
            yield field.column


def _withheld() -> dict[str, list[str]]:
    """Return, for each statement that withholds privileges, its tables."""
    return {
        "REVOKE UPDATE, DELETE ON {tables} FROM {role}": [*append_only_tables(), AccountSalt._meta.db_table],
        "REVOKE INSERT, UPDATE, DELETE ON {tables} FROM {role}": [
            "django_migrations",
            ErasedEntry._meta.db_table,
        ],
    }


def grant_to_application(*, using: str, **_: Any) -> None:
    """
    Grant `DATABASE_APPLICATION_ROLE` the privileges that the processes need, and no others; if it is empty, do nothing.

    Raises:
        ImproperlyConfigured: the role is the one that migrates, or does not exist.
    """
    role, connection = settings.DATABASE_APPLICATION_ROLE, connections[using]
    if not role:
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_user = %s, to_regrole(quote_ident(%s)) IS NULL", [role, role])
        is_own, is_missing = cursor.fetchone()
        if is_own:
            raise ImproperlyConfigured(
                f"DATABASE_APPLICATION_ROLE: {role} owns the tables. Name another role."
            )
        if is_missing:
            raise ImproperlyConfigured(
                f"DATABASE_APPLICATION_ROLE: create the role first. CREATE ROLE {role} LOGIN PASSWORD '…'"
            )
        # One transaction, so that no session sees only a part of the grants.
        with transaction.atomic(using=using):
            existing = set(connection.introspection.table_names(cursor))
            _execute(cursor, _Sql.grants, role=role)
            for table, columns in owner_columns().items():
                if table not in existing:
                    continue
                cursor.execute(_Sql.other_columns, [table, columns])
                others = [name for (name,) in cursor.fetchall()]
                _execute(cursor, _Sql.all_columns_but, role=role, table=table, columns=others)
            for statement, tables in _withheld().items():
                _execute(cursor, statement, role=role, tables=[name for name in tables if name in existing])
        _limit(role, using)


def _execute(cursor: Any, statement: str, **names: str | list[str]) -> None:
    """Execute the statement with its placeholders replaced by these identifiers or lists of identifiers."""
    identifiers = {
        place: sql.Identifier(name)
        if isinstance(name, str)
        else sql.SQL(", ").join(map(sql.Identifier, name))
        for place, name in names.items()
    }
    cursor.execute(sql.SQL(statement).format(**identifiers).as_string(cursor.connection))


def _limit(role: str, using: str) -> None:
    """Set session limits as defaults of the role, because a transaction pooler does not pass on those of a session."""
    connection = connections[using]
    for name, limit in settings.DATABASE_ROLE_LIMITS.items():
        names = {"role": sql.Identifier(role), "name": sql.Identifier(name)}
        text = sql.SQL(_LIMIT).format(limit=sql.Literal(limit), **names).as_string(connection.connection)
        try:
            with transaction.atomic(using=using), connection.cursor() as cursor:
                cursor.execute(text)
        except ProgrammingError as error:
            if not isinstance(error.__cause__, InsufficientPrivilege):
                raise
            logger.warning("a PostgreSQL administrator must execute this: %s", text)
