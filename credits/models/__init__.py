"""The rows of `credits`, one file per noun."""

from credits.models.accounts import CreditAccount
from credits.models.allowances import Allowance
from credits.models.entries import CreditEntry, EntrySource
from credits.models.holds import CreditHold, HoldStatus

__all__ = ["Allowance", "CreditAccount", "CreditEntry", "CreditHold", "EntrySource", "HoldStatus"]
