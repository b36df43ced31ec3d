"""The ledger: accounts, the entries that explain their balances, holds, allowances, and limits of debt."""

from credits.models.accounts import (
    DISPROOFS,
    FUNCTIONS,
    LARGEST_ADJUSTMENT,
    OF_OTHER_LISTS,
    PROOFS,
    RARE_SOURCES,
    CreditAccount,
    CreditEntry,
    EntrySource,
    ReconciliationRun,
)
from credits.models.debts import Debtor, UnbackedCeiling, UnbackedDay
from credits.models.holds import (
    Allowance,
    CreditHold,
    ExpiringLot,
    ExpiryRule,
    HoldStatus,
    HomeCredits,
    PaidSpending,
)

__all__ = [
    "DISPROOFS",
    "FUNCTIONS",
    "LARGEST_ADJUSTMENT",
    "OF_OTHER_LISTS",
    "PROOFS",
    "RARE_SOURCES",
    "Allowance",
    "CreditAccount",
    "CreditEntry",
    "CreditHold",
    "Debtor",
    "EntrySource",
    "ExpiringLot",
    "ExpiryRule",
    "HoldStatus",
    "HomeCredits",
    "PaidSpending",
    "ReconciliationRun",
    "UnbackedCeiling",
    "UnbackedDay",
]
