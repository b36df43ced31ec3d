"""All rows that payments may write, to compare before and after."""

from typing import Any

from django.db.models import Model

from credits.models import Allowance, CreditAccount, CreditEntry
from payments.models import BillingOperation, Clawback, Customer, Payout, StripeEvent, Subscription
from rewards.models import Progress
from tests.database import rows_of

_TABLES: tuple[type[Model], ...] = (
    Customer,
    Subscription,
    BillingOperation,
    StripeEvent,
    Payout,
    Clawback,
    Allowance,
    CreditAccount,
    CreditEntry,
    Progress,
)
# When a row was written, and ids of other rows, which differ after a rollback.
_INCIDENTAL = {
    "id", "created_at", "synced_at", "last_synced_at", "received_at", "processed_at", "next_attempt_at", "entry_id",
    "payout_id", "customer_id", "subscription_id", "account_id", "attempts", "finished_at", "raw_body", "reason",
}  # fmt: skip


def all_rows() -> dict[str, list[Any]]:
    """Return all rows by table."""
    return rows_of(*_TABLES)


def final_rows() -> dict[str, list[Any]]:
    """
    Return the final money, credits and allowances, without the order in which they were written.

    Running balances depend on the order; their sums do not, and the ledger's own audit holds their chain.
    """
    rows_by_table = {}
    for table in (Customer, Subscription, Payout, Allowance, CreditAccount, Progress):
        dropped = _INCIDENTAL | ({"version"} if table is CreditAccount else set())
        rows = table._default_manager.values()
        rows_by_table[table.__name__] = sorted(
            sorted((name, str(value)) for name, value in row.items() if name not in dropped) for row in rows
        )
    return rows_by_table
