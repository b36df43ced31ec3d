"""What staff filter for again and again is found by an index, however many other rows lie between."""

from typing import Any

import pytest
from django.db import connection, models

from credits.models import RARE_SOURCES, CreditEntry
from credits.services import entries
from relay.models import RelayTransaction
from tests.credits.rows import query
from tests.factories import UserFactory

pytestmark = pytest.mark.django_db
_UNSUCCESSFUL = ["Failed", "Expired", "Cancelled", "ExecutedExternally"]


def plan_of(model: type[models.Model], **wanted: str) -> str:
    """Return how PostgreSQL reads a page of such a list where it would rather not read the table whole."""
    rows: Any = model._default_manager.filter(**wanted).order_by("-pk")[:50]
    with connection.cursor() as cursor:
        # An empty table is read whole whatever indexes there are.
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_sort = off")
    return str(rows.explain())


@pytest.mark.parametrize("status", _UNSUCCESSFUL)
def test_failed_calls_are_found_by_an_index(status: str) -> None:
    assert "relaytransaction_unsuccessful" in plan_of(RelayTransaction, status=status)


@pytest.mark.parametrize("source", RARE_SOURCES)
def test_entries_of_rare_sources_are_found_by_an_index(source: str) -> None:
    # While the table is empty, the primary key costs the same.
    entries.open_account(user_id=UserFactory.create().pk)
    query(
        """
        INSERT INTO credits_entry
            (account_id, amount, source, key, balance_before, balance_after, account_version, reason)
        SELECT id, 1, 'RELAY_TRANSACTION', gen_random_uuid(), 0, 1, n + 1, ''
        FROM credits_account, generate_series(1, 1000) n
        """
    )
    assert "credits_entry_finance" in plan_of(CreditEntry, source=source)


def test_frequent_rows_are_in_neither_index() -> None:
    assert "unsuccessful" not in plan_of(RelayTransaction, status="Success")
    assert "rare_sources" not in plan_of(CreditEntry, source="RELAY_TRANSACTION")
