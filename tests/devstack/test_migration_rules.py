"""Which migrations may run while the version before them serves."""

from typing import Any

import pytest
from django.contrib.postgres.operations import AddConstraintNotValid, AddIndexConcurrently
from django.db import migrations, models
from django.db.migrations.operations.base import Operation

from devstack.migration_rules import complaints, ours

_INDEX = models.Index(fields=["name"], name="by_name")
_POSITIVE = models.CheckConstraint(condition=models.Q(age__gt=0), name="positive")


def migration(*operations: Operation, **attributes: object) -> migrations.Migration:
    made = type("Migration", (migrations.Migration,), {"operations": list(operations), **attributes})
    one: migrations.Migration = made("0003_more", "relay")
    return one


def add(kind: Any, *args: Any, **options: Any) -> Operation:
    return migrations.AddField("relayer", "extra", kind(*args, **options))


def test_every_migration_of_the_project_keeps_the_rules() -> None:
    assert [complaint for one in ours() for complaint in complaints(one)] == []


def test_the_projects_migrations_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("devstack.migration_rules._FIRST_RELEASE", ())
    apps = {one.app_label for one in ours()}
    assert {"relay", "credits", "gateway_common"} <= apps
    assert not {"auth", "axes"} & apps


@pytest.mark.parametrize(
    "operation",
    [
        add(models.BooleanField, null=True),
        add(models.BooleanField, db_default=False),
        add(models.ForeignKey, "relay.Relayer", models.PROTECT, null=True, db_index=False),
        AddConstraintNotValid("relayer", _POSITIVE),
        migrations.CreateModel("Extra", [("id", models.BigAutoField(primary_key=True))]),
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.RemoveField("relayer", "balance_wei")]
        ),
    ],
)
def test_a_short_lock_that_suits_the_old_code_is_no_complaint(operation: Operation) -> None:
    assert complaints(migration(operation)) == []


@pytest.mark.parametrize(
    "operation",
    [
        add(models.BooleanField, default=False),
        add(models.BooleanField, null=True, db_index=True),
        add(models.CharField, null=True, unique=True),
        add(models.ForeignKey, "relay.Relayer", models.PROTECT, null=True),
        migrations.AddIndex("relayer", _INDEX),
        migrations.AddConstraint("relayer", _POSITIVE),
        migrations.RemoveField("relayer", "balance_wei"),
        migrations.RenameField("relayer", "balance_wei", "wei"),
        migrations.AlterField("relayer", "address", models.TextField()),
        migrations.RunSQL("UPDATE relay_relayer SET balance_wei = 0"),
        migrations.SeparateDatabaseAndState(database_operations=[migrations.DeleteModel("Relayer")]),
    ],
)
def test_a_long_lock_or_a_break_of_the_old_code_is_a_complaint(operation: Operation) -> None:
    assert len(complaints(migration(operation))) == 1


def test_a_table_of_the_same_migration_has_no_users_yet() -> None:
    made = migrations.CreateModel("Relayer", [("id", models.BigAutoField(primary_key=True))])
    assert complaints(migration(made, migrations.AddIndex("relayer", _INDEX))) == []


def test_an_index_is_made_concurrently_outside_a_transaction() -> None:
    assert complaints(migration(AddIndexConcurrently("relayer", _INDEX), atomic=False)) == []
    assert complaints(migration(AddIndexConcurrently("relayer", _INDEX)))


def test_a_rule_is_broken_with_a_reason() -> None:
    removed = migrations.RemoveField("relayer", "balance_wei")
    assert complaints(migration(removed, reviewed={"RemoveField": "not read since version 1.3"})) == []
    assert complaints(migration(removed, reviewed={"RemoveField": ""}))
