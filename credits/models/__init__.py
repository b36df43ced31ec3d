"""The rows of `credits`, one file per noun."""

from credits.models.accounts import CreditAccount
from credits.models.adjustments import AdjustmentDecision, AdjustmentRequest
from credits.models.allowances import Allowance
from credits.models.audits import LedgerAudit
from credits.models.badges import Badge, BadgeTrack
from credits.models.entries import CreditEntry, EntrySource
from credits.models.experience import ExperienceEntry
from credits.models.holds import CreditHold, HoldStatus
from credits.models.modifiers import Modifier, ModifierType
from credits.models.networks import AdNetwork, NetworkUser, VerifierKeySet
from credits.models.postbacks import Postback, PostbackKind, PostbackState, Refusal

__all__ = [
    "AdNetwork",
    "AdjustmentDecision",
    "AdjustmentRequest",
    "Allowance",
    "Badge",
    "BadgeTrack",
    "CreditAccount",
    "CreditEntry",
    "CreditHold",
    "EntrySource",
    "ExperienceEntry",
    "HoldStatus",
    "LedgerAudit",
    "Modifier",
    "ModifierType",
    "NetworkUser",
    "Postback",
    "PostbackKind",
    "PostbackState",
    "Refusal",
    "VerifierKeySet",
]
