"""What staff see of credits, one file per part."""

from credits.admin import networks
from credits.admin.ledger import OwnedAdmin

__all__ = ["OwnedAdmin", "networks"]
