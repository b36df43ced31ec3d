"""What support and finance see of payments, and what they do about it."""

from payments.admin import records

__all__ = ["records"]
