"""The wallet of a profile on a chain in memory, as sign-in is tested with it."""

from tests.users.conftest import chain, client, profile, trusted, wallet

__all__ = ["chain", "client", "profile", "trusted", "wallet"]
