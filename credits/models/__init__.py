"""The rows of the ledger, and the signed roots over its entries."""

from pathlib import Path

from credits.models.ledger import (
    DISPROOFS,
    LARGEST_ADJUSTMENT,
    PROOFS,
    RARE_SOURCES,
    Allowance,
    CreditAccount,
    CreditEntry,
    CreditHold,
    EntrySource,
    HoldStatus,
    ReconciliationRun,
)
from credits.models.roots import AccountSalt, ErasedEntry, LedgerRoot, RootTree
from gateway.common import sql_functions

__all__ = [
    "DISPROOFS",
    "FUNCTIONS",
    "LARGEST_ADJUSTMENT",
    "PROOFS",
    "RARE_SOURCES",
    "AccountSalt",
    "Allowance",
    "CreditAccount",
    "CreditEntry",
    "CreditHold",
    "EntrySource",
    "ErasedEntry",
    "HoldStatus",
    "LedgerRoot",
    "ReconciliationRun",
    "RootTree",
]

# Placing holds, set-based.
FUNCTIONS = sql_functions.register(Path(__file__).parents[1])
