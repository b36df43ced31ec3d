"""
Moves rows back in time, only for demo data.

Some columns are filled from PostgreSQL's clock. The rows that a service has just written are updated here, with the
triggers disabled that forbid updates.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from checkin.models import CheckIn, DailySeed
from credits.models import CreditAccount, CreditEntry, CreditHold
from payments.models import MoneyReturn
from rewards.models import CashbackEntry, ExperienceEntry, Modifier
from users.models import User

# The first column is the row's creation time; the others are moved by the same interval.
_COLUMNS: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (User, ("date_joined",)),
    (CreditAccount, ("created_at",)),
    (CreditEntry, ("created_at",)),
    (CreditHold, ("closed_at",)),
    (CreditHold, ("created_at",)),
    (MoneyReturn, ("created_at",)),
    (ExperienceEntry, ("created_at",)),
    (CashbackEntry, ("created_at",)),
    (Modifier, ("created_at", "expires_at")),
    (CheckIn, ("created_at",)),
    (DailySeed, ("revealed_at",)),
    (DailySeed, ("created_at",)),
)


@contextmanager
def written_at(moment: datetime) -> Iterator[None]:
    """Backdate the rows that the block writes to this time."""
    started = timezone.now()
    yield
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")  # no triggers
        for model, columns in _COLUMNS:
            moved = ", ".join(
                f"{column} = {column} - make_interval(secs => %(seconds)s)" for column in columns
            )
            cursor.execute(
                f"UPDATE {model._meta.db_table} SET {moved} WHERE {columns[0]} >= %(started)s",  # noqa: S608
                {"seconds": (started - moment).total_seconds(), "started": started},
            )
        cursor.execute("SET LOCAL session_replication_role = DEFAULT")
