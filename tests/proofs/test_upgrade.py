"""A database of the version in which the roots were part of `credits` is taken over as it is."""

from collections.abc import Iterator
from typing import Any

import pgtrigger
import pytest
from django.contrib.auth.models import Group, Permission
from django.core.management import call_command
from django.db import ProgrammingError, transaction
from pytest_django import Settings

from backoffice import roles
from credits.models import CreditEntry
from devstack.services.postgres import APPLICATION_ROLE
from proofs.models import LedgerRoot
from proofs.services.proving import prove
from proofs.services.roots import close_roots
from tests.credits.rows import query
from tests.proofs.roots import audited, covered_ledger, erase_with_account, export_faults, grant

pytestmark = [
    pytest.mark.usefixtures("owner_connection", "migrated"),
    pytest.mark.django_db(transaction=True),
]

_MODELS = ("accountsalt", "erasedentry", "ledgerroot", "roottree")
_TABLES = ("credits_accountsalt", "credits_erasedentry", "credits_root", "credits_roottree")


def _rows() -> list[list[tuple[Any, ...]]]:
    return [query(f"SELECT table_.*::text FROM {table} AS table_ ORDER BY 1") for table in _TABLES]  # noqa: S608


def _permissions(app: str) -> set[str]:
    rows = Permission.objects.filter(content_type__app_label=app, content_type__model__in=_MODELS)
    return set(rows.values_list("codename", flat=True))


def _triggers() -> set[str]:
    rows = query(
        "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal AND tgrelid IN ('credits_root'::regclass,"
        " 'credits_roottree'::regclass)"
    )
    return {name for (name,) in rows}


def _privileges(table: str) -> tuple[bool, bool]:
    """Return whether the application's role may add rows to the table, and whether it may change them."""
    ((may_add, may_change),) = query(
        "SELECT has_table_privilege(%s, %s, 'INSERT'), has_table_privilege(%s, %s, 'UPDATE, DELETE')",
        *(APPLICATION_ROLE, table) * 2,
    )
    return may_add, may_change


def _migrate(*target: str) -> None:
    call_command("migrate", *target, verbosity=0)


@pytest.fixture
def migrated(owner_connection: None, settings: Settings) -> Iterator[None]:
    """Migrate the database to the end after each test, also if it failed, with the privileges of the processes."""
    yield
    settings.DATABASE_APPLICATION_ROLE = APPLICATION_ROLE
    _migrate()


def test_rows_proofs_and_permissions_stay_the_triggers_are_new_and_the_audit_finds_nothing(
    settings: Settings,
) -> None:
    ledger = covered_ledger()
    erase_with_account(ledger.other)
    rows, proofs = _rows(), prove(CreditEntry.objects.order_by("pk"))
    settings.DATABASE_APPLICATION_ROLE = APPLICATION_ROLE
    _migrate("credits", "0001")
    assert query("SELECT to_regclass('credits_debtor'), to_regclass('credits_unbackedceiling')") == [
        (None, None)
    ]
    # A migration backwards leaves the privileges of the other tables.
    assert _privileges("credits_entry") == (True, False)
    auditors = Group.objects.create(name="auditors")
    auditors.permissions.set(roles.permissions_of("credits.view_ledgerroot"))
    permissions = _permissions("credits")
    assert (len(permissions), _permissions("proofs")) == (16, set())
    assert "pgtrigger_append_only_c4b6f" in _triggers()

    _migrate()

    assert _privileges("credits_unbackedceiling") == (True, False)
    assert (_rows(), prove(CreditEntry.objects.order_by("pk"))) == (rows, proofs)
    assert (audited(), export_faults()) == ([], [])
    assert (_permissions("proofs"), _permissions("credits")) == (permissions, set())
    for group in (auditors, *Group.objects.filter(name__in=roles.ROLES)):
        assert group.permissions.filter(content_type__app_label="proofs", codename="view_ledgerroot").exists()
    grant(ledger.user, 9)
    (root,) = close_roots()
    assert (root.number, root.entry_count, audited()) == (3, 1, [])
    ours = [
        (model, trigger) for model, trigger in pgtrigger.registered() if model._meta.app_label == "proofs"
    ]
    assert _triggers() == {trigger.get_pgid(model) for model, trigger in ours}
    assert [trigger.get_installation_status(model) for model, trigger in ours] == [("INSTALLED", True)] * 4
    with pytest.raises(ProgrammingError, match="Cannot update or delete"), transaction.atomic():
        LedgerRoot.objects.update(entry_count=0)
    with pytest.raises(ProgrammingError, match="Cannot update or delete"), transaction.atomic():
        query("DELETE FROM credits_roottree")
