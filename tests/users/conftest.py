"""A chain in memory whose code is trusted, a profile on it, and a client with a network address of its own."""

import secrets
from collections.abc import Iterator

import pytest
from rest_framework.test import APIClient

from gateway.chain.client import set_chain_client
from tests.fakes.chain import FakeChain
from tests.fakes.profiles import Profile
from tests.users.auth_client import Wallet
from tests.users.trusted import trust_code


@pytest.fixture
def chain() -> Iterator[FakeChain]:
    """The chain that the service asks."""
    fake = FakeChain()
    set_chain_client(fake)
    yield fake
    set_chain_client(None)


@pytest.fixture
def trusted(chain: FakeChain, db: None) -> None:
    """The chain's two implementations are trusted."""
    trust_code(profile=chain.universal_profile, key_manager=chain.key_manager)


@pytest.fixture
def profile(chain: FakeChain, trusted: None) -> Profile:
    """A profile of trusted code whose one controller may do everything."""
    return chain.create_profile()


@pytest.fixture
def client() -> APIClient:
    """A client that shares its rate limits with no other test."""
    return APIClient(REMOTE_ADDR=f"2001:db8:{secrets.token_hex(2)}:{secrets.token_hex(2)}::1")


@pytest.fixture
def wallet(client: APIClient, profile: Profile) -> Wallet:
    """The wallet of the profile, speaking HTTP."""
    return Wallet(client, profile)
