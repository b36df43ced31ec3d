"""The user with credits that the tests of the ledger start from."""

from tests.credits.conftest import funds, key, user

__all__ = ["funds", "key", "user"]
