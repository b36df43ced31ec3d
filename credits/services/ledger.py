"""
The ledger's services under one name: `from credits.services import ledger`.

Every one of them joins the caller's transaction and is safe to repeat.
"""

from credits.services.holding import HoldResult, capture, hold, raise_hold, release
from credits.services.posting import adjust, grant, lock_account, open_account, reverse

__all__ = [
    "HoldResult",
    "adjust",
    "capture",
    "grant",
    "hold",
    "lock_account",
    "open_account",
    "raise_hold",
    "release",
    "reverse",
]
