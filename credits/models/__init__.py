"""The rows of `credits`, one file per noun."""

from credits.models.accounts import CreditAccount
from credits.models.allowances import Allowance
from credits.models.badges import Badge, BadgeTrack
from credits.models.entries import CreditEntry, EntrySource
from credits.models.experience import ExperienceEntry
from credits.models.holds import CreditHold, HoldStatus
from credits.models.modifiers import Modifier, ModifierType

__all__ = [
    "Allowance",
    "Badge",
    "BadgeTrack",
    "CreditAccount",
    "CreditEntry",
    "CreditHold",
    "EntrySource",
    "ExperienceEntry",
    "HoldStatus",
    "Modifier",
    "ModifierType",
]
