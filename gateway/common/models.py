"""The table of leases, and the trigger that protects append-only tables from being truncated."""

import pgtrigger
from django.db import models

APPEND_ONLY = pgtrigger.Protect(name="append_only", operation=pgtrigger.Update | pgtrigger.Delete)


def never_emptied(noun: str) -> pgtrigger.Trigger:
    """Return the trigger that refuses to truncate an append-only table, as `manage.py flush` would."""
    return pgtrigger.Trigger(
        name="never_emptied",
        level=pgtrigger.Statement,
        when=pgtrigger.Before,
        operation=pgtrigger.Truncate,
        # Transactional tests truncate the tables of databases named test_….
        condition=pgtrigger.Condition("left(current_database()::text, 5) <> 'test_'"),
        func=f"RAISE EXCEPTION '{noun} is append-only: % cannot be truncated', TG_TABLE_NAME;",
    )


class Lease(models.Model):
    """
    A lease on work that only one process may do at a time: its owner, and its expiry by the database's clock.

    The fencing number is unique to one holder, even if the row was deleted in between.
    """

    fence = models.BigAutoField(primary_key=True)
    name = models.CharField(max_length=255, unique=True)
    owner = models.CharField(max_length=255)
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.name}, held by {self.owner}"
