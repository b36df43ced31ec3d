"""A wallet that checks in over HTTP."""

import pytest
from django.utils import timezone

from tests.factories import random_address
from tests.relay.api.conftest import Wallet, network_address
from users.models import User
from users.services import sessions


def wallet_of(user: User) -> Wallet:
    """Return the wallet of a user, with an access token."""
    pair = sessions.start(
        profile_address=str(user.profile_address), controller=random_address(), now=timezone.now()
    )
    return Wallet(pair.access, network_address())


@pytest.fixture
def wallet(proven: User) -> Wallet:
    """The wallet of a user who has earned something."""
    return wallet_of(proven)


@pytest.fixture
def anonymous() -> Wallet:
    """A caller without a token."""
    return Wallet(None, network_address())
