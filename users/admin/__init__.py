"""What staff see of people, sessions and of what other staff did."""

from users.admin import audit, records

__all__ = ["audit", "records"]
