"""Ledger rows as raw SQL sees them, past the code under test."""

from typing import Any

from django.db import connection

_TABLES = ("credits_account", "credits_entry", "credits_hold", "credits_allowance")


def query(sql: str, *params: Any) -> list[tuple[Any, ...]]:
    """Execute SQL and return its rows."""
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return cursor.fetchall() if cursor.description else []


def everything() -> dict[str, list[tuple[Any, ...]]]:
    """Return every row of the ledger, to compare before and after a refusal."""
    return {table: query(f"SELECT * FROM {table} ORDER BY id") for table in _TABLES}  # noqa: S608
