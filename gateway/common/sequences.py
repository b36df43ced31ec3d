"""Sequences of ids, which a logical copy of a database leaves at their start."""

from django.apps import apps
from django.db import connection
from django.db.models import AutoField
from psycopg import sql

_BEHIND = sql.SQL(
    "SELECT {name} WHERE (SELECT max({key}) FROM {table})"
    " > coalesce(pg_sequence_last_value(pg_get_serial_sequence({name}, {column})::regclass), 0)"
)


def tables_behind() -> list[str]:
    """Return the tables whose next id is taken already, so that no row can be added."""
    parts = [
        _BEHIND.format(
            name=sql.Literal(model._meta.db_table),
            table=sql.Identifier(model._meta.db_table),
            column=sql.Literal(str(model._meta.pk.column)),
            key=sql.Identifier(str(model._meta.pk.column)),
        )
        for model in apps.get_models()
        if isinstance(model._meta.pk, AutoField) and model._meta.managed and not model._meta.proxy
    ]
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL(" UNION ALL ").join(parts).as_string(cursor.connection))
        return sorted(name for (name,) in cursor.fetchall())
