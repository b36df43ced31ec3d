"""
The test database: who is connected to it, and how it comes back to the state that the migrations left.

Tests connect as the service's processes do, as a role that owns nothing. What only the owner may do, such as
tampering, goes through `as_owner` and `tamper`.

Django's flush truncates every table and sends `post_migrate` to every app, which takes longer than most tests.
Here only tables that were written are emptied, and their first rows are copied back. Rows that many tests of
a module begin with are written once, and each test rolls back to them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.conf import settings
from django.db import connection, transaction
from django.db.models import Manager, Model, QuerySet
from django.db.models.sql.subqueries import DeleteQuery, UpdateQuery
from django.test import TransactionTestCase
from psycopg.conninfo import conninfo_to_dict

from devstack.services.postgres import APPLICATION_ROLE
from devstack.services.stack import Services

# Creates and owns the test database; a superuser.
OWNER = "postgres"
_KEEP_FIRST_ROWS = """
CREATE SCHEMA first_rows;
GRANT USAGE ON SCHEMA first_rows TO PUBLIC;

CREATE FUNCTION first_rows.as_owner(statement text, triggers text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE number bigint;
BEGIN
    PERFORM set_config('session_replication_role', triggers, true);
    EXECUTE statement;
    GET DIAGNOSTICS number = ROW_COUNT;
    SET LOCAL session_replication_role = origin;
    RETURN number;
END $$;

CREATE VIEW first_rows.written AS
    SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'django_migrations';

DO $$
DECLARE
    name text;
    has_rows boolean;
BEGIN
    FOR name IN SELECT written.name FROM first_rows.written LOOP
        EXECUTE format('SELECT EXISTS (TABLE public.%I)', name) INTO has_rows;
        IF has_rows THEN
            EXECUTE format('CREATE TABLE first_rows.%1$I AS TABLE public.%1$I', name);
        END IF;
    END LOOP;
END $$;

CREATE FUNCTION first_rows.restore() RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    kept text[] := ARRAY(SELECT tablename FROM pg_tables WHERE schemaname = 'first_rows');
    name text;
    number bigint;
    differs boolean;
BEGIN
    -- Neither triggers nor foreign keys look at single tables while the rows of all are put back.
    SET LOCAL session_replication_role = replica;
    FOR name IN SELECT written.name FROM first_rows.written WHERE written.name <> ALL(kept) LOOP
        EXECUTE format('SELECT count(*) FROM (SELECT FROM public.%I LIMIT 1000) AS row', name) INTO number;
        IF number = 1000 THEN
            -- Every later test would read over deleted rows.
            EXECUTE format('TRUNCATE public.%I CASCADE', name);
        ELSIF number > 0 THEN
            EXECUTE format('DELETE FROM public.%I', name);
        END IF;
    END LOOP;
    FOREACH name IN ARRAY kept LOOP
        EXECUTE format(
            'SELECT (SELECT ARRAY[count(*), sum(hashtextextended(row::text, 0))] FROM public.%1$I AS row)'
            ' <> (SELECT ARRAY[count(*), sum(hashtextextended(row::text, 0))] FROM first_rows.%1$I AS row)', name
        ) INTO differs;
        IF differs THEN
            EXECUTE format('DELETE FROM public.%I', name);
            EXECUTE format('INSERT INTO public.%1$I TABLE first_rows.%1$I', name);
        END IF;
    END LOOP;
END $$;
"""


def connect_as(role: str) -> None:
    """Have every connection that is opened from now on log in as that role."""
    connection.close()
    connection.settings_dict["USER"] = role


def rows_of(*models: type[Model]) -> dict[str, list[Any]]:
    """Return all rows of these models, to compare before and after."""
    return {model.__name__: list(model._default_manager.order_by("pk").values()) for model in models}


@contextmanager
def pooled(services: Services) -> Iterator[None]:
    """
    Have every connection that is opened in the block go through the pooler of transactions, if there is one.

    The database is created, and dropped, past it: its sessions would be in the way.
    """
    pooler = services.pooler
    if pooler is None:
        yield
        return
    database, direct = connection.settings_dict, connection.settings_dict["HOST"]
    database["HOST"] = str(pooler.directory)
    settings.DATABASE_DIRECT = conninfo_to_dict(
        services.postgres.url(str(database["NAME"]), role=APPLICATION_ROLE)
    )
    yield
    database["HOST"] = direct
    pooler.stop()


def as_owner(statement: str, *params: Any) -> int:
    """Execute a statement as the owner, in the session and transaction of the test; return how many rows it altered."""
    return _execute(statement, params, triggers="origin")


def tamper(statement: str, *params: Any) -> int:
    """The same, past triggers and foreign keys, which a superuser can switch off."""
    with connection.cursor() as cursor:
        # Foreign keys of the rows written so far are still to be verified.
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED")
    return _execute(statement, params, triggers="replica")


def _execute(statement: str, params: tuple[Any, ...], *, triggers: str) -> int:
    with connection.cursor() as cursor:
        composed = psycopg.ClientCursor(connection.connection).mogrify(statement, params or None)
        cursor.execute("SELECT first_rows.as_owner(%s, %s)", [composed, triggers])
        (count,) = cursor.fetchone()
    return int(count)


def keep_first_rows() -> None:
    """Remember every row that is there now, and end transactional tests by restoring just these."""
    with connection.cursor() as cursor:
        cursor.execute(_KEEP_FIRST_ROWS)
    TransactionTestCase._fixture_teardown = _restore_first_rows  # type: ignore[attr-defined]


@contextmanager
def rows_of_a_module() -> Iterator[None]:
    """Keep rows written inside for tests that roll back, until the block ends; for a fixture of a module."""
    outer: Any = transaction.atomic()
    # As Django's own test cases do, so that a durable block may begin in it.
    outer._from_testcase = True
    with outer:
        yield
        transaction.set_rollback(True)


def _restore_first_rows(test: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT first_rows.restore()")


def rewrite(rows: QuerySet[Any] | Manager[Any], **values: Any) -> int:
    """Update rows that the application may not update; return how many."""
    query: Any = rows.all().query.chain(UpdateQuery)
    query.add_update_values(values)
    return _past_triggers(query)


def erase(rows: QuerySet[Any] | Manager[Any]) -> int:
    """Delete rows that the application may not delete; return how many."""
    return _past_triggers(rows.all().query.chain(DeleteQuery))


def _past_triggers(query: Any) -> int:
    statement, params = query.get_compiler(connection=connection).as_sql()
    return tamper(statement, *params)
