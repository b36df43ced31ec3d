"""Every row that relaying may touch, to compare before and after a refusal."""

from typing import Any

from django.db.models import Model

from credits.models import CreditAccount, CreditEntry, CreditHold
from relay.models import Attempt, Loss, Quote, Relayer, RelayTransaction
from rewards.models import Progress

_TABLES: tuple[type[Model], ...] = (
    RelayTransaction,
    Attempt,
    Relayer,
    Loss,
    Quote,
    CreditAccount,
    CreditEntry,
    CreditHold,
    Progress,
)


def everything() -> dict[str, list[Any]]:
    """Return all rows by table."""
    return {table.__name__: list(table._default_manager.order_by("pk").values()) for table in _TABLES}
