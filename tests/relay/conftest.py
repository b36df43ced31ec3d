"""A relay on the real chain: a profile whose controller signs, relayers with LYX, an account with credits."""

import os
import random
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.utils import timezone
from pytest_django import Settings

from credits.models import EntrySource
from credits.services import entries
from devstack.services.stack import Services
from devstack.world.profiles import ControllerPlan, Profile, ProfilePlan
from gateway.chain.client import set_chain_client
from gateway.chain.lsp25 import RelayCall
from gateway.chain.node import Node
from gateway.chain.signing import get_signer
from gateway.common.errors import DomainError
from relay.models import Relayer, RelayTransaction
from relay.queries.prices import watch
from relay.services.accepting import limits, submission
from relay.services.fleet import relayers as relay_relayers
from rewards.models import Badge
from signer.client import SignerClient
from tests.factories import UserFactory
from tests.relay.callers import execute
from tests.relay.chain import GWEI, Chain, FaultyClient
from tests.relay.copies import Own, owning
from tests.relay.far_chain import FarChain, running_far_chain, served
from tests.relay.remote_signers import RemoteSigners, remote_signing
from tests.relay.rows import everything
from tests.relay.signing import sign_call
from tests.relay.two_chains import ForeignChain, foreign_chain
from tests.relay.workers import broadcast_all, track
from tests.transactions import assert_none_is_open
from tests.users.trusted import trust_code
from users.models import User

LYX = 10**18
# What an account has at the beginning.
CREDITS = 10_000
Accept = Callable[..., RelayTransaction]
Settle = Callable[[], int]


@pytest.fixture(autouse=True)
def _no_node_request_in_a_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail every request to the node or a signer that is made while a transaction of ours is open."""
    batch, request = Node.batch, SignerClient.request

    def checked(node: Node, *args: Any, **options: Any) -> list[Any]:
        assert_none_is_open()
        return batch(node, *args, **options)

    def checked_signer(client: SignerClient, *args: Any) -> bytes:
        assert_none_is_open()
        return request(client, *args)

    monkeypatch.setattr(Node, "batch", checked)
    monkeypatch.setattr(SignerClient, "request", checked_signer)


@pytest.fixture(autouse=True)
def refused_calls(monkeypatch: pytest.MonkeyPatch) -> limits.RefusedCalls:
    """The refused calls that this process counts; all tests share a profile, so each begins at none."""
    counted = limits.RefusedCalls()
    monkeypatch.setattr(submission, "refused_calls", counted)
    return counted


@pytest.fixture(autouse=bool(os.environ.get("TEST_SIGNER_ELSEWHERE")))
def signers(services: Services, tmp_path: Path, settings: Settings) -> Iterator[RemoteSigners]:
    """A signer elsewhere that responds. With TEST_SIGNER_ELSEWHERE=1 all tests of the relay run before one."""
    with remote_signing(services, tmp_path, settings) as remote, remote.serving():
        yield remote


@pytest.fixture(autouse=True)
def _prices_are_read_again() -> None:
    watch.forget()


@pytest.fixture(scope="session")
def profile(services: Services) -> Profile:
    """A profile whose controller may do everything."""
    return services.world.create_profiles(ProfilePlan())[0]


@pytest.fixture
def chain(services: Services) -> Iterator[Chain]:
    """The chain; it mines only on demand, and its pool is empty before and after."""
    services.rpc.call("evm_setAutomine", False)
    control = Chain(services)
    control.set_base_fee(random.randint(GWEI // 2, 2 * GWEI))
    yield control
    control.drop_pool()
    services.rpc.call("evm_setAutomine", True)


@pytest.fixture
def node(services: Services) -> Iterator[FaultyClient]:
    """The service's chain client, whose responses a test may change."""
    client = FaultyClient(services)
    set_chain_client(client)
    yield client
    set_chain_client(None)


@pytest.fixture
def relayers(services: Services, chain: Chain, db: None) -> list[Relayer]:
    """The relayers of the settings, each with LYX, as rows."""
    services.world.fund(100 * LYX, *get_signer().addresses())
    relay_relayers.sync(now=timezone.now())
    return list(Relayer.objects.order_by("pk"))


@pytest.fixture
def trusted(services: Services, db: None) -> None:
    """The chain's implementations are trusted."""
    implementations = services.world.implementations
    trust_code(profile=implementations.universal_profile, key_manager=implementations.key_manager)


@pytest.fixture
def open_account(relayers: list[Relayer], trusted: None) -> Callable[..., User]:
    """Return a function that makes the owner of a profile, with credits; no badge gives any back."""
    # Some tests spend so much that a badge is earned on the way, and add up the rest.
    Badge.objects.update(credits_back_percent=0)

    def make(profile: Profile, credits: int = CREDITS) -> User:
        owner = UserFactory.create(profile_address=profile.profile_address)
        entries.grant(user=owner, credits=credits, source=EntrySource.VIDEO_ADS, key=secrets.token_hex(8))
        return owner

    return make


@pytest.fixture
def user(profile: Profile, open_account: Callable[..., User]) -> User:
    """The owner of the profile, with credits."""
    return open_account(profile)


@pytest.fixture
def foreign(
    services: Services, settings: Settings, relayers: list[Relayer], profile: Profile
) -> Iterator[ForeignChain]:
    """A chain besides home, with a copy of the profile."""
    with foreign_chain(services, settings) as chain:
        chain.copy(profile)
        yield chain


@pytest.fixture
def create_profile(services: Services, chain: Chain) -> Callable[..., Profile]:
    """Return a function that makes a profile with these controllers."""

    def make(*controllers: ControllerPlan, balance_wei: int = LYX) -> Profile:
        plan = ProfilePlan(controllers or (ControllerPlan(),), balance_wei)
        return services.world.create_profiles(plan)[0]

    return make


@pytest.fixture
def new_call(services: Services, profile: Profile) -> Callable[..., RelayCall]:
    """Return a function that signs a setData call of the profile at the chain's next nonce, with changes."""

    def make(**changes: object) -> RelayCall:
        return sign_call(services=services, profile=profile, **changes)  # type: ignore[arg-type]

    return make


@pytest.fixture
def accept(user: User, new_call: Callable[..., RelayCall]) -> Accept:
    """Return a function that has a call accepted, given or signed with changes, and returns its row."""

    def run(call: RelayCall | None = None, **changes: object) -> RelayTransaction:
        transaction_hash = execute(user=user, call=call or new_call(**changes), now=timezone.now())
        return RelayTransaction.objects.get(attempts__transaction_hash=transaction_hash)

    return run


@pytest.fixture
def settle(chain: Chain) -> Settle:
    """Return a function that broadcasts, mines the confirmations and tracks; it returns how many were settled."""

    def run() -> int:
        broadcast_all()
        chain.mine(django_settings.CONFIRMATIONS)
        return track()

    return run


@dataclass(frozen=True)
class Refused:
    """Expects a refusal, and nothing else to happen: no row, no hold, nothing sent."""

    chain: Chain

    @contextmanager
    def __call__(self, kind: type[DomainError]) -> Iterator["pytest.ExceptionInfo[DomainError]"]:
        before = everything(), self.chain.position()
        with pytest.raises(kind) as refusal:
            yield refusal
        assert type(refusal.value) is kind
        assert (everything(), self.chain.position()) == before

    def call(
        self, kind: type[DomainError], user: User, call: RelayCall, *, now: datetime | None = None
    ) -> DomainError:
        """Submit the call and return the refusal."""
        with self(kind) as refusal:
            execute(user=user, call=call, now=now or timezone.now())
        return refusal.value


@pytest.fixture
def refused(chain: Chain) -> Refused:
    """Return what expects a refusal."""
    return Refused(chain)


@pytest.fixture
def own(services: Services, open_account: Callable[..., User]) -> Own:
    """Return what deploys a profile at home, as a wallet does, and makes its owner, who has credits."""
    return owning(services, open_account)


@pytest.fixture(scope="module")
def far_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FarChain]:
    """Another real chain with the same contracts."""
    with running_far_chain(tmp_path_factory.mktemp("far")) as running:
        yield running


@pytest.fixture
def far(far_node: FarChain, settings: Settings, relayers: object) -> Iterator[FarChain]:
    """Another real chain of the service, without any profile."""
    with served(far_node, settings):
        yield far_node
