"""What `migrate` makes of functions that differ; the tests are the owner of the tables, as it is."""

from io import StringIO

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from pytest_django import Settings

from devstack.services.postgres import APPLICATION_ROLE
from gateway.common import sql_functions
from tests.credits.rows import query

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("owner_connection")]
_NAME, _KEPT = "credits_withdraw_holds", "credits_place_holds"
_OTHER = """
CREATE OR REPLACE FUNCTION credits_withdraw_holds(holds bigint[]) RETURNS void LANGUAGE sql AS $$ SELECT $$
"""


def _execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def _definition(name: str = _NAME) -> str:
    ((text,),) = query("SELECT pg_get_functiondef(%s::regproc)", name)
    return str(text)


def _version(name: str) -> object:
    """Return what changes with each replacement."""
    return query("SELECT xmin, ctid FROM pg_proc WHERE oid = %s::regproc", name)


def _may_execute(name: str = _NAME) -> bool:
    ((may,),) = query("SELECT has_function_privilege(%s, %s::regproc, 'EXECUTE')", APPLICATION_ROLE, name)
    return bool(may)


@pytest.mark.parametrize("arguments", [(), ("sessions",)])
def test_migrate_puts_the_function_of_the_code_back(arguments: tuple[str, ...]) -> None:
    before, kept = _definition(), _version(_KEPT)
    _execute(_OTHER)
    assert _definition() != before

    call_command("migrate", *arguments, verbosity=0)

    assert (_definition(), sql_functions.differing()) == (before, [])
    assert _version(_KEPT) == kept


def test_rights_are_kept_and_the_application_has_them_on_a_new_function(settings: Settings) -> None:
    settings.DATABASE_APPLICATION_ROLE = APPLICATION_ROLE
    _execute(f"REVOKE EXECUTE ON FUNCTION {_NAME} FROM PUBLIC")
    _execute(f"GRANT EXECUTE ON FUNCTION {_NAME} TO pg_monitor")
    _execute(f"DROP FUNCTION {_KEPT}")
    _execute("ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC")
    _execute(_OTHER)
    _execute(f"REVOKE EXECUTE ON FUNCTION {_NAME} FROM {APPLICATION_ROLE}")
    assert not _may_execute()

    sql_functions.replace()

    assert _may_execute()
    assert _may_execute(_KEPT)
    ((others,),) = query("SELECT proacl::text FROM pg_proc WHERE oid = %s::regproc", _NAME)
    assert "pg_monitor=X/" in others
    assert ",=X/" not in others


@pytest.mark.parametrize(
    "other",
    [
        f"CREATE FUNCTION {_NAME}(hold bigint) RETURNS void",
        f"DROP FUNCTION {_NAME}; CREATE FUNCTION {_NAME}(holds bigint[]) RETURNS text",
        f"DROP FUNCTION {_NAME}; CREATE FUNCTION {_NAME}(ids bigint[]) RETURNS void",
    ],
    ids=["other types", "another result", "other names"],
)
def test_a_changed_signature_needs_another_name_and_nothing_is_replaced(other: str) -> None:
    _execute(f"{other} LANGUAGE plpgsql AS $$ BEGIN END $$")
    _execute(f"ALTER FUNCTION {_KEPT} STABLE")
    before = _definition(_KEPT)

    with pytest.raises(ImproperlyConfigured, match=f"{_NAME}: a function with another signature"):
        sql_functions.replace()

    assert _definition(_KEPT) == before


def test_nothing_is_replaced_before_the_last_migration() -> None:
    _execute(_OTHER)
    before = _definition()
    (last,) = MigrationLoader(connection).graph.leaf_nodes("relay")
    MigrationRecorder(connection).record_unapplied(*last)

    sql_functions.replace()

    assert _definition() == before


def test_migrate_repairs_differences_and_is_not_blocked_by_them() -> None:
    _execute(_OTHER)
    errors = StringIO()

    call_command("migrate", skip_checks=False, verbosity=0, stderr=errors)

    assert (sql_functions.differing(), errors.getvalue().count("gateway.E001")) == ([], 0)
