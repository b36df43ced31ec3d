"""What staff see of credits, one file per part."""

from credits.admin import adjustments, audits, badges, modifiers, networks
from credits.admin.ledger import OwnedAdmin

__all__ = ["OwnedAdmin", "adjustments", "audits", "badges", "modifiers", "networks"]
