"""
Users, their sign-in sessions and refresh tokens, sign-in challenges, deletions, and trusted implementations.

A user has a Universal Profile, or is a member of staff with a password. Neither can sign in as the other.
"""

from users.models.accounts import AccountDeletion, Ban, Note, ProfileCard, User, user_created
from users.models.sign_in import IssuerKeySet, RefreshToken, SignInChallenge, SignInSession
from users.models.staff import Invitation, Phone, RecoveryCodes, normalised_code
from users.models.trusted_code import FoundCode, TrustedImplementation

__all__ = [
    "AccountDeletion",
    "Ban",
    "FoundCode",
    "Invitation",
    "IssuerKeySet",
    "Note",
    "Phone",
    "ProfileCard",
    "RecoveryCodes",
    "RefreshToken",
    "SignInChallenge",
    "SignInSession",
    "TrustedImplementation",
    "User",
    "normalised_code",
    "user_created",
]
