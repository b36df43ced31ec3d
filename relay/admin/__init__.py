"""What staff see of the relay, and what they do about it."""

from relay.admin import records

__all__ = ["records"]
