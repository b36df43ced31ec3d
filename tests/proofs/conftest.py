"""A wallet that is signed in, on a chain in memory."""

from tests.users.conftest import chain, client, profile, trusted, wallet

__all__ = ["chain", "client", "profile", "trusted", "wallet"]
