"""What staff see of credits, one file per part."""

from credits.admin import adjustments, networks
from credits.admin.ledger import OwnedAdmin

__all__ = ["OwnedAdmin", "adjustments", "networks"]
