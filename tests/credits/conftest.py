"""What every test of the ledger starts from."""

import random
import secrets

import pytest

from credits.models import EntrySource
from credits.services import entries
from tests.factories import UserFactory
from users.models import User


@pytest.fixture
def key() -> str:
    """Return a key that no other test uses."""
    return secrets.token_hex(16)


@pytest.fixture
def funds() -> int:
    """Return an amount of credits that no test may know beforehand."""
    return random.randint(1_000, 10**9)


@pytest.fixture
def user(db: None, funds: int) -> User:
    """Return a user with `funds` credits, posted by one entry."""
    owner = UserFactory.create()
    entries.grant(user=owner, credits=funds, source=EntrySource.SURVEYS, key=secrets.token_hex(16))
    return owner
