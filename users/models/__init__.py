"""The rows of `users`, one file per noun."""

from users.models.user import User

__all__ = ["User"]
