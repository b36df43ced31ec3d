"""
What the database role of the processes may do, as `migrate` grants it.

The tables belong to the role that migrates. The processes connect as another role, which can read and write rows and
nothing else: it cannot alter tables, switch triggers off or empty a table, and of the rows of append-only tables it
can neither change nor delete any. Triggers say the same once more, and hold against the owner's slips as well.
"""

import logging
from typing import Any

import pgtrigger
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import ProgrammingError, connections, transaction
from psycopg import sql
from psycopg.errors import InsufficientPrivilege

from gateway.common.models import APPEND_ONLY

logger = logging.getLogger(__name__)

_GRANTS = """
REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {role};
REVOKE ALL ON ALL SEQUENCES IN SCHEMA public FROM {role};
GRANT USAGE ON SCHEMA public TO {role};
GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO {role};
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role};
REVOKE UPDATE, DELETE ON {append_only} FROM {role};
REVOKE INSERT, UPDATE, DELETE ON django_migrations FROM {role}
"""
_LIMIT = "ALTER ROLE {role} SET {name} = {limit}"


def append_only_tables() -> list[str]:
    """Return the tables whose rows are never altered, by name."""
    registered = pgtrigger.registered()
    return sorted({model._meta.db_table for model, trigger in registered if trigger.name == APPEND_ONLY.name})


def grant_to_application(*, using: str, **_: Any) -> None:
    """
    Grant the role of `DATABASE_APPLICATION_ROLE` what the processes need, and no more; without one, do nothing.

    Raises:
        ImproperlyConfigured: it is the role that migrates, or there is no such role.
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
        tables = sql.SQL(", ").join(map(sql.Identifier, append_only_tables()))
        grants = sql.SQL(_GRANTS).format(role=sql.Identifier(role), append_only=tables)
        # Nobody ever sees the rights half given.
        with transaction.atomic(using=using):
            cursor.execute(grants.as_string(connection.connection))
        _limit(role, using)


def _limit(role: str, using: str) -> None:
    """Have every session of the role begin with these limits: a pooler of transactions passes none on."""
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
            logger.warning("have an administrator of PostgreSQL execute this: %s", text)
