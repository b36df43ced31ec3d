"""Entries are written once; the database itself refuses the rest."""

import secrets

import psycopg
import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction
from pgtrigger import registered

from credits.models import CreditAccount, CreditEntry, EntrySource
from tests.credits.rows import everything, query
from tests.database import OWNER, as_owner
from users.models import User


@pytest.fixture
def entry(user: User) -> CreditEntry:
    return CreditEntry.objects.get(account__user=user)


def test_an_entry_is_not_updated_by_the_orm(entry: CreditEntry) -> None:
    before = everything()
    entry.reason = "rewritten"
    with pytest.raises(DatabaseError, match="permission denied"), transaction.atomic():
        entry.save()
    with pytest.raises(DatabaseError, match="permission denied"), transaction.atomic():
        CreditEntry.objects.update(reason="rewritten")
    assert everything() == before


def test_an_entry_is_not_deleted_by_the_orm(entry: CreditEntry) -> None:
    before = everything()
    with pytest.raises(DatabaseError, match="permission denied"), transaction.atomic():
        entry.delete()
    with pytest.raises(DatabaseError, match="permission denied"), transaction.atomic():
        CreditEntry.objects.all().delete()
    assert everything() == before


@pytest.mark.parametrize(
    "sql", ["UPDATE credits_entry SET reason = 'rewritten'", "DELETE FROM credits_entry"]
)
def test_an_entry_is_not_changed_by_sql(entry: CreditEntry, sql: str) -> None:
    before = everything()
    with pytest.raises(DatabaseError, match="permission denied"), transaction.atomic():
        query(sql)
    with pytest.raises(DatabaseError, match="Cannot update or delete"), transaction.atomic():
        as_owner(sql)
    assert everything() == before


@pytest.mark.parametrize(
    ("change", "constraint"),
    [
        ({"amount": 0, "balance_after": 10}, "credits_entry_amount_not_zero"),
        ({"balance_after": 16}, "credits_entry_after_is_before_plus_amount"),
        ({"account_version": 1}, "credits_entry_account_version"),
        ({"account_version": 0}, "credits_entry_version_starts_at_1"),
        ({"source": "GIFT"}, "credits_entry_source_known"),
        ({"source": EntrySource.STAFF_ADJUSTMENT}, "credits_entry_adjustment_has_reason"),
    ],
)
def test_a_forged_entry_is_refused(entry: CreditEntry, change: dict[str, int | str], constraint: str) -> None:
    before = everything()
    forged = {
        "account": entry.account,
        "amount": 5,
        "source": EntrySource.SURVEYS,
        "key": secrets.token_hex(16),
        "balance_before": 10,
        "balance_after": 15,
        "account_version": 2,
    }
    with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
        CreditEntry.objects.create(**{**forged, **change})
    assert everything() == before


def test_a_key_posts_once_even_past_the_services(entry: CreditEntry) -> None:
    with pytest.raises(IntegrityError, match="credits_entry_key"), transaction.atomic():
        CreditEntry.objects.create(
            account=entry.account,
            amount=1,
            source=EntrySource.SURVEYS,
            key=entry.key,
            balance_before=entry.balance_after,
            balance_after=entry.balance_after + 1,
            account_version=2,
        )


def test_an_account_with_entries_cannot_be_deleted(entry: CreditEntry) -> None:
    before = everything()
    with pytest.raises(IntegrityError):
        entry.account.delete()
    query("SET CONSTRAINTS ALL IMMEDIATE")
    with pytest.raises(IntegrityError, match="credits_entry"), transaction.atomic():
        query("DELETE FROM credits_account")
    assert everything() == before


@pytest.mark.parametrize("column", ["held", "version"])
def test_held_credits_and_versions_are_never_negative(user: User, column: str) -> None:
    with pytest.raises(IntegrityError, match=f"credits_account_{column}_not_negative"), transaction.atomic():
        CreditAccount.objects.update(**{column: -1})


def test_the_entries_of_a_service_database_cannot_be_truncated(db: None) -> None:
    """Databases named test_… are the exception, so this one is named otherwise."""
    name = f"service_{secrets.token_hex(6)}"
    parameters = {**connection.get_connection_params(), "autocommit": True, "user": OWNER}
    parameters.pop("cursor_factory", None), parameters.pop("context", None)
    triggers = [t.compile(model).install_sql for model, t in registered("credits.CreditEntry:never_emptied")]
    with psycopg.connect(**parameters) as outside:
        outside.execute(f"CREATE DATABASE {name}")
        try:
            with psycopg.connect(**{**parameters, "dbname": name}) as service:
                service.execute("CREATE TABLE credits_entry AS SELECT 1 AS id")
                for sql in triggers:
                    service.execute(sql)
                with pytest.raises(psycopg.Error, match="append-only"):
                    service.execute("TRUNCATE credits_entry")
                assert service.execute("SELECT count(*) FROM credits_entry").fetchone() == (1,)
        finally:
            outside.execute(f"DROP DATABASE {name} WITH (FORCE)")
