"""Ledger rows as raw SQL sees them, past the code under test."""

from typing import Any

from django.db import connection

from credits.models import Allowance, CreditAccount, CreditEntry, CreditHold
from tests.database import rows_of


def query(sql: str, *params: Any) -> list[tuple[Any, ...]]:
    """Execute SQL and return its rows."""
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return cursor.fetchall() if cursor.description else []


def everything() -> dict[str, list[Any]]:
    """Return every row of the ledger, to compare before and after a refusal."""
    return rows_of(CreditAccount, CreditEntry, CreditHold, Allowance)
