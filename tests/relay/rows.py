"""Every row that relaying may touch, to compare before and after a refusal."""

from typing import Any

from django.db.models import Model

from credits.models import CreditAccount, CreditEntry, CreditHold
from relay.models import Attempt, Loss, Quote, Relayer, RelayTransaction
from rewards.models import Progress
from tests.database import rows_of

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
    return rows_of(*_TABLES)
