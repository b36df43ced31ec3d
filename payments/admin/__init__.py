"""What support and finance see of payments, and what they do about it."""

from payments.admin import rates, records

__all__ = ["rates", "records"]
