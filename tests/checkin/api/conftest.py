"""A wallet that checks in over HTTP."""

import pytest

from tests.relay.api.conftest import Wallet, anonymous, wallet_of
from users.models import User

__all__ = ["anonymous"]


@pytest.fixture
def wallet(proven: User) -> Wallet:
    """The wallet of a user who has earned something."""
    return wallet_of(proven)
