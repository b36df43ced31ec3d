"""Demo data in the test database."""

from typing import Any

from django.utils import timezone

from devstack.ad_networks.demo import enable_networks, serve_verifier_keys
from devstack.demo.people import generate_people
from devstack.demo.relay_calls import Caller
from devstack.services.stack import Services
from devstack.world.profiles import ProfilePlan
from gateway.chain.signing import get_signer
from relay.services.fleet import relayers
from tests.users.trusted import trust_code
from users.models import User

_CALLERS, _RELAYER_WEI = 4, 4 * 10**18


def generate(services: Services, settings: Any, *, seed: str, staff: User, people: int) -> list[Caller]:
    """Generate this number of people in a service whose ad networks are open; return those who relay calls."""
    with serve_verifier_keys() as google:
        settings.ADMOB_KEYS_URL = google.url
        opened = enable_networks(now=timezone.now())
    contracts = services.world.implementations
    trust_code(profile=contracts.universal_profile, key_manager=contracts.key_manager)
    services.world.fund(_RELAYER_WEI, *get_signer().addresses())
    relayers.sync(now=timezone.now())
    profiles = services.world.create_profiles(*(ProfilePlan() for _ in range(_CALLERS)))
    callers = [
        Caller(profile.profile_address, profile.key_manager_address, profile.controller.private_key)
        for profile in profiles
    ]
    is_new = generate_people(
        seed=seed, people=people, callers=callers, staff=staff, opened=opened, now=timezone.now()
    )
    assert is_new
    assert not generate_people(
        seed=seed, people=people, callers=callers, staff=staff, opened=opened, now=timezone.now()
    )
    return callers
