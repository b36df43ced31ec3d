"""A relay on the real chain: a profile whose controller signs, relayers with LYX, an account with credits."""

import secrets
from collections.abc import Callable

import pytest
from django.conf import settings
from django.utils import timezone

from credits.models import EntrySource
from credits.services import ledger
from devstack.services import Services
from devstack.world.profiles import Profile, ProfilePlan
from gateway.chain.lsp25 import RelayCall
from gateway.chain.signing import get_signer
from relay.models import Relayer, TrustedImplementation
from relay.services import broadcasting, implementations, roster, tracking
from tests.factories import UserFactory
from tests.relay.signing import sign_call
from users.models import User

LYX = 10**18


@pytest.fixture(scope="session")
def profile(services: Services) -> Profile:
    """A profile whose controller may do everything."""
    return services.world.create_profiles(ProfilePlan())[0]


@pytest.fixture
def relayers(services: Services, db: None) -> list[Relayer]:
    """The relayers of the settings, each with LYX, as rows."""
    services.world.fund(100 * LYX, *get_signer().addresses())
    roster.synchronise(now=timezone.now())
    return list(Relayer.objects.order_by("pk"))


@pytest.fixture
def trusted(services: Services, db: None) -> None:
    """The chain's implementations are vetted."""
    found = services.world.implementations
    implementations.trust(
        kind=TrustedImplementation.Kind.PROFILE, address=found.universal_profile, name="profile"
    )
    implementations.trust(
        kind=TrustedImplementation.Kind.KEY_MANAGER, address=found.key_manager, name="key manager"
    )


@pytest.fixture
def user(profile: Profile, relayers: list[Relayer], trusted: None) -> User:
    """The owner of the profile, with credits."""
    owner = UserFactory.create(profile_address=profile.profile_address)
    ledger.grant(user=owner, credits=10_000, source=EntrySource.VIDEO_ADS, key=secrets.token_hex(8))
    return owner


@pytest.fixture
def new_call(services: Services, profile: Profile) -> Callable[..., RelayCall]:
    """Return a function that signs a setData call of the profile at the chain's next nonce, with changes."""

    def make(**changes: object) -> RelayCall:
        return sign_call(services=services, profile=profile, **changes)  # type: ignore[arg-type]

    return make


@pytest.fixture
def settle(services: Services) -> Callable[[], int]:
    """Return a function that broadcasts, mines the confirmations and tracks; it returns how many were settled."""

    def run() -> int:
        for relayer in Relayer.objects.all():
            broadcasting.broadcast(relayer_id=relayer.pk, now=timezone.now())
        services.rpc.call("anvil_mine", hex(settings.CONFIRMATIONS))
        return tracking.track(now=timezone.now())

    return run
