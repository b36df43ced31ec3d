"""What PostgreSQL refuses to the role as which the service's processes, and the tests, are connected."""

from datetime import date
from typing import Any

import psycopg
import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, ProgrammingError, connection, transaction
from django.utils.timezone import now
from pytest_django import Settings

from accounting.models import CoinRate, Month
from backoffice.privileges import append_only_tables, grant_to_application
from credits.checks import entries_are_out_of_reach
from devstack.services.postgres import APPLICATION_ROLE
from gateway.staff.models import ApprovalRequest
from payments.models import Payout
from tests.credits.rows import query
from tests.database import OWNER, as_owner, rows_of
from tests.factories import UserFactory, make
from users.models import AccountDeletion

pytestmark = pytest.mark.django_db
_REFUSED = [
    "UPDATE credits_entry SET reason = 'rewritten'",
    "UPDATE credits_entry SET amount = amount + 1, balance_after = balance_after + 1",
    "DELETE FROM credits_entry",
    "TRUNCATE credits_entry",
    "INSERT INTO credits_erasedentry (entry_id, profile_hash, reason_hash) VALUES (1, '', '')",
    "UPDATE credits_account SET user_id = user_id",
    "UPDATE credits_account SET sponsor_id = sponsor_id",
    "UPDATE rewards_progress SET user_id = user_id",
    "UPDATE credits_hold SET account_id = account_id",
    "UPDATE payments_payout SET user_id = user_id",
    "UPDATE payments_payoutrate SET credits_per_major_unit = 1",
    "UPDATE payments_clawback SET credits = 0",
    "DELETE FROM payments_furtherpayment",
    "UPDATE credits_accountsalt SET salt = salt",
    "DELETE FROM credits_accountsalt",
    "TRUNCATE credits_entry CASCADE",
    "TRUNCATE credits_account CASCADE",
    "ALTER TABLE credits_entry DISABLE TRIGGER ALL",
    "ALTER TABLE credits_entry DISABLE TRIGGER USER",
    "ALTER TABLE credits_entry DROP CONSTRAINT credits_entry_amount_not_zero",
    "ALTER TABLE credits_entry OWNER TO gateway_app",
    "DROP TABLE credits_entry CASCADE",
    "CREATE RULE quiet AS ON INSERT TO credits_entry DO INSTEAD NOTHING",
    "CREATE TRIGGER other BEFORE INSERT ON credits_entry EXECUTE FUNCTION suppress_redundant_updates_trigger()",
    "CREATE TABLE public.another ()",
    "DELETE FROM django_migrations",
    "SELECT setval('credits_entry_id_seq', 1)",
    "SET session_replication_role = replica",
    "SET LOCAL session_replication_role = replica",
    "SELECT set_config('session_replication_role', 'replica', false)",
    "SET ROLE postgres",
    "SET SESSION AUTHORIZATION postgres",
    "CREATE ROLE another SUPERUSER",
    "ALTER ROLE gateway_app SUPERUSER",
    "COPY credits_entry TO PROGRAM 'cat'",
    "COPY credits_entry TO '/tmp/entries'",
    "COPY credits_entry FROM PROGRAM 'true'",
]


def _refusal(statement: str) -> str | None:
    """Return the SQLSTATE with which PostgreSQL refuses a statement that would be undone otherwise."""
    with pytest.raises(ProgrammingError) as refused, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)
    return getattr(refused.value.__cause__, "sqlstate", None)


@pytest.mark.parametrize("statement", _REFUSED)
def test_the_applications_role_is_refused_statements_of_the_owner(statement: str) -> None:
    assert _refusal(statement) == psycopg.errors.InsufficientPrivilege.sqlstate


def test_no_append_only_table_can_be_changed_or_emptied() -> None:
    tables = append_only_tables()
    assert {
        "credits_entry",
        "credits_root",
        "credits_roottree",
        "django_admin_log",
        "checkin_checkin",
        "rewards_experience",
    } <= set(tables)
    for table in tables:
        for statement in ("DELETE FROM {}", "TRUNCATE {}"):
            assert _refusal(statement.format(table)) == psycopg.errors.InsufficientPrivilege.sqlstate
        ((may,),) = query("SELECT has_table_privilege(%s, 'UPDATE, DELETE, TRUNCATE, TRIGGER')", table)
        assert not may


def test_an_account_is_not_erased_by_the_application() -> None:
    user = UserFactory.create()
    columns = "user_id, status, waits_for, requested_at, billing_ended_at, erased_at"
    values = f"{user.pk}, 'erased', '', now(), now(), now()"
    insert = f"INSERT INTO users_accountdeletion ({columns}) VALUES ({values})"  # noqa: S608
    erased = "UPDATE users_accountdeletion SET status = 'erased', billing_ended_at = now(), erased_at = now()"
    assert _refusal(insert) == psycopg.errors.InsufficientPrivilege.sqlstate
    AccountDeletion.objects.create(user=user, requested_at=now())
    assert _refusal(erased) == psycopg.errors.InsufficientPrivilege.sqlstate
    assert as_owner(erased) == 1


def test_the_tests_are_connected_as_the_application() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT session_user, rolsuper, pg_has_role(session_user, 'postgres', 'MEMBER')"
            " FROM pg_roles WHERE rolname = current_user"
        )
        assert cursor.fetchone() == (APPLICATION_ROLE, False, False)


@pytest.mark.parametrize(
    ("role", "fault"), [(APPLICATION_ROLE, "owns the tables"), ("nobody", "create the role")]
)
def test_a_role_that_cannot_be_granted_anything_is_named(settings: Settings, role: str, fault: str) -> None:
    settings.DATABASE_APPLICATION_ROLE = role
    with pytest.raises(ImproperlyConfigured, match=fault):
        grant_to_application(using="default")


def test_the_deploy_check_warns_of_a_role_that_may_alter_entries(
    settings: Settings, monkeypatch: Any
) -> None:
    assert entries_are_out_of_reach() == []
    settings.DATABASE_APPLICATION_ROLE = OWNER
    (warning,) = entries_are_out_of_reach()
    assert (warning.id, "may change and delete" in warning.msg) == ("credits.W001", True)
    as_owner("GRANT DELETE ON credits_entry TO gateway_app")
    settings.DATABASE_APPLICATION_ROLE = ""
    assert [warning.id for warning in entries_are_out_of_reach()] == ["credits.W001"]


@pytest.mark.parametrize(
    "change",
    [
        {"amount_minor": 1},
        {"credits": 1},
        {"tax_minor": 1},
        {"currency": "chf"},
        {"stripe_payment_intent_id": "pi_another"},
        {"created_at": now()},
    ],
)
def test_of_a_payout_only_what_was_returned_changes(change: dict[str, Any]) -> None:
    payout = make(Payout, amount_minor=500, credits=5_000)
    before = rows_of(Payout)
    with pytest.raises(DatabaseError, match=r"Cannot update"), transaction.atomic():
        Payout.objects.filter(pk=payout.pk).update(**change)
    assert rows_of(Payout) == before
    Payout.objects.filter(pk=payout.pk).update(refunded_minor=7, disputed_minor=9, fraud_warned_at=now())


def test_a_rate_of_a_day_of_a_closed_month_neither_changes_nor_goes_nor_comes() -> None:
    month = make(Month, begins_on=date(2026, 3, 1), status="open")
    rate = CoinRate.objects.create(day=date(2026, 3, 31), coin="LYX", currency="usd", price=7)
    later = CoinRate.objects.create(day=date(2026, 4, 1), coin="LYX", currency="usd", price=7)
    approval = make(ApprovalRequest)
    Month.objects.filter(pk=month.pk).update(status="closed", closed_at=now(), approval=approval)
    before = rows_of(CoinRate)
    for change in (
        lambda: CoinRate.objects.filter(pk=rate.pk).update(price=1),
        lambda: CoinRate.objects.filter(pk=rate.pk).update(day=date(2026, 4, 2)),
        lambda: CoinRate.objects.filter(pk=later.pk).update(day=date(2026, 3, 2)),
        lambda: CoinRate.objects.filter(pk=rate.pk).delete(),
        lambda: CoinRate.objects.create(day=date(2026, 3, 1), coin="LYX", currency="eur", price=7),
    ):
        with pytest.raises(DatabaseError, match="the month of this day is closed"), transaction.atomic():
            change()
    assert rows_of(CoinRate) == before
    CoinRate.objects.filter(pk=later.pk).update(price=8)
