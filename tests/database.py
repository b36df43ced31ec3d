"""
Bring the test database back to the state that the migrations left, after a test that committed.

Django's flush truncates every table and sends `post_migrate` to every app, which takes longer than most tests.
Here only tables that were written are emptied, and their first rows are copied back.
"""

from typing import Any

from django.db import connection
from django.test import TransactionTestCase

_KEEP_FIRST_ROWS = """
CREATE SCHEMA first_rows;

DO $$
DECLARE name text;
BEGIN
    FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'django_migrations' LOOP
        EXECUTE format('CREATE TABLE first_rows.%1$I AS TABLE public.%1$I', name);
    END LOOP;
END $$;

CREATE FUNCTION first_rows.restore() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    names text[] := ARRAY(SELECT tablename FROM pg_tables WHERE schemaname = 'first_rows');
    name text;
    number bigint;
BEGIN
    -- Neither triggers nor foreign keys look at single tables while the rows of all are put back.
    SET LOCAL session_replication_role = replica;
    FOREACH name IN ARRAY names LOOP
        EXECUTE format('SELECT count(*) FROM (SELECT FROM public.%I LIMIT 1000) AS row', name) INTO number;
        IF number = 1000 THEN
            -- Every later test would read over deleted rows.
            EXECUTE format('TRUNCATE public.%I CASCADE', name);
        ELSIF number > 0 THEN
            EXECUTE format('DELETE FROM public.%I', name);
        END IF;
    END LOOP;
    FOREACH name IN ARRAY names LOOP
        EXECUTE format('INSERT INTO public.%1$I TABLE first_rows.%1$I', name);
    END LOOP;
END $$;
"""


def keep_first_rows() -> None:
    """Remember every row that is there now, and end transactional tests by restoring just these."""
    with connection.cursor() as cursor:
        cursor.execute(_KEEP_FIRST_ROWS)
    TransactionTestCase._fixture_teardown = _restore_first_rows  # type: ignore[attr-defined]


def _restore_first_rows(test: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT first_rows.restore()")
