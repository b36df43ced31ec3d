"""The rows of `users`, one file per noun."""

from users.models.audit import StaffAction
from users.models.challenge import SignInChallenge
from users.models.issuer import IssuerKeySet
from users.models.session import RefreshToken, SignInSession
from users.models.user import User

__all__ = ["IssuerKeySet", "RefreshToken", "SignInChallenge", "SignInSession", "StaffAction", "User"]
