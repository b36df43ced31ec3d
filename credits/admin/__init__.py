"""What staff see of credits, one file per part."""

from credits.admin import ledger, networks

__all__ = ["ledger", "networks"]
