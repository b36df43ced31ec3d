"""Every row that payments may touch, to compare before and after."""

from typing import Any

from django.db.models import Model

from credits.models import Allowance, CreditAccount, CreditEntry
from payments.models import BillingOperation, Clawback, Customer, Payout, StripeEvent, Subscription
from rewards.models import Progress

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
# What tells when a row was written, or names another row by a number that a rollback uses up.
_INCIDENTAL = {
    "id", "created_at", "synced_at", "last_synced_at", "received_at", "processed_at", "next_attempt_at", "entry_id",
    "payout_id", "customer_id", "subscription_id", "account_id", "attempts", "finished_at", "raw_body", "reason",
}  # fmt: skip


def everything() -> dict[str, list[Any]]:
    """Return all rows by table."""
    return {table.__name__: list(table._default_manager.order_by("pk").values()) for table in _TABLES}


def outcome() -> dict[str, list[Any]]:
    """
    Return what everybody has in the end: money, credits and allowances, without the order they came in.

    Running balances depend on the order; their sums do not, and the ledger's own audit holds their chain.
    """
    found = {}
    for table in (Customer, Subscription, Payout, Allowance, CreditAccount, Progress):
        dropped = _INCIDENTAL | ({"version"} if table is CreditAccount else set())
        rows = table._default_manager.values()
        found[table.__name__] = sorted(
            sorted((name, str(value)) for name, value in row.items() if name not in dropped) for row in rows
        )
    return found
