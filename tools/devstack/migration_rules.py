"""
`make lint`: may this migration run while the previous version serves?

It must not lock a table while its rows are scanned or rewritten. The old code must keep working: it inserts rows
without the new columns, and reads the removed ones.
A migration that breaks a rule on purpose gives the reason: `reviewed = {"RemoveField": "not read since version 1.3"}`.
"""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import django
from django.contrib.postgres.operations import (
    AddConstraintNotValid,
    AddIndexConcurrently,
    RemoveIndexConcurrently,
    ValidateConstraint,
)
from django.db import migrations
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.models import NOT_PROVIDED, Field
from pgtrigger.migrations import AddTrigger, RemoveTrigger

from devstack.files import PROJECT

# No version serves before the first release has created its tables.
_FIRST_RELEASE = ("0001_initial", "0002_initial", "0002_starting_data", "0003_starting_data")
_HARMLESS = (
    migrations.CreateModel,
    migrations.AlterModelOptions,
    migrations.AlterModelManagers,
    AddConstraintNotValid,
    ValidateConstraint,
    AddTrigger,
    RemoveTrigger,
)
_CONCURRENT = (AddIndexConcurrently, RemoveIndexConcurrently)
# Operations that a second run repeats. The review of the last two sees to it.
_REPEATABLE = (*_CONCURRENT, migrations.RunPython, migrations.RunSQL)


def complaints(migration: migrations.Migration) -> list[str]:
    """Return the operations of a migration that are unsafe under load and not reviewed."""
    operations = list(_in_database(migration.operations))
    new = {one.name_lower for one in operations if isinstance(one, migrations.CreateModel)}
    reviewed: dict[str, str] = getattr(migration, "reviewed", {})
    errors = []
    for one in operations:
        reason = _objection(one)
        if (
            reason
            and getattr(one, "model_name_lower", None) not in new
            and not reviewed.get(type(one).__name__)
        ):
            errors.append(f"{migration.app_label}.{migration.name}: {one.describe()}: {reason}")
    if migration.atomic and any(isinstance(one, _CONCURRENT) for one in operations):
        errors.append(
            f"{migration.app_label}.{migration.name}: indexes are made concurrently with atomic = False"
        )
    if not migration.atomic and not all(isinstance(one, _REPEATABLE) for one in operations):
        errors.append(
            f"{migration.app_label}.{migration.name}: after an interruption it could not be repeated"
        )
    return errors


def _in_database(operations: Iterable[Operation]) -> Iterator[Operation]:
    for one in operations:
        if isinstance(one, migrations.SeparateDatabaseAndState):
            yield from _in_database(one.database_operations)
        else:
            yield one


def _objection(operation: Operation) -> str:
    """Return why an operation is unsafe on a table in use; empty if it is safe."""
    if isinstance(operation, _HARMLESS + _CONCURRENT):
        return ""
    if isinstance(operation, migrations.AddField):
        return _objection_to(operation.field)
    if isinstance(operation, migrations.AddIndex | migrations.RemoveIndex):
        return "it locks the table; use AddIndexConcurrently or RemoveIndexConcurrently"
    if isinstance(operation, migrations.AddConstraint):
        return "it scans the table under a lock; use AddConstraintNotValid, then ValidateConstraint"
    return "state in `reviewed` why the old code keeps working, and how long the lock is held"


def _objection_to(field: "Field[object, object]") -> str:
    if not field.null and field.db_default is NOT_PROVIDED:
        return "the old code inserts rows without it; add a db_default or allow null"
    # The type stubs lack some attributes of fields.
    if field.unique or getattr(field, "db_index", False):
        return "its index is created under a lock; create it concurrently in another operation"
    return ""


def ours() -> list[migrations.Migration]:
    """Return this project's migrations after the first release."""
    disk = MigrationLoader(None).disk_migrations.values()
    return [one for one in disk if one.name not in _FIRST_RELEASE and _is_ours(one)]


def _is_ours(migration: migrations.Migration) -> bool:
    file = Path(str(sys.modules[type(migration).__module__].__file__))
    return file.is_relative_to(PROJECT) and "site-packages" not in file.parts


def main() -> int:
    """Print the unsafe operations of the project's migrations."""
    django.setup()
    errors = [complaint for migration in ours() for complaint in complaints(migration)]
    sys.stderr.writelines(f"✗ {one}\n" for one in errors)
    return int(bool(errors))


if __name__ == "__main__":
    sys.exit(main())
