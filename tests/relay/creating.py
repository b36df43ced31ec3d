"""Profiles that a sponsor's server asks for."""

import secrets
from typing import Any

from django.utils import timezone
from eth_account import Account

from devstack.services.stack import Services
from devstack.world.deployer import Call
from devstack.world.profiles import Controller, ControllerPlan, Profile
from relay.models import ProfileCreation, RelayTransaction
from relay.services import creations
from relay.services.creations import Request
from signer import deployments
from sponsors.models import PolicyVersion, Purpose, Sponsor
from tests.database import rows_of
from tests.relay.rows import everything
from tests.sponsors.sponsorships import make_policy
from users.models import User


def for_profiles(sponsor: Sponsor, **terms: Any) -> PolicyVersion:
    """Return the first version of a policy that pays for new profiles."""
    return make_policy(sponsor, purpose=Purpose.PROFILES, **terms)


def a_key() -> str:
    return "0x" + secrets.token_hex(32)


def address_of(private_key: str) -> str:
    return str(Account.from_key(private_key).address)


def a_request(*private_keys: str, key: str = "", **parts: Any) -> Request:
    """Return a request for a profile with the controllers of these keys."""
    addresses = [address_of(each) for each in private_keys or (a_key(),)]
    return Request(key=key or secrets.token_hex(8), controllers=addresses, **parts)


def create(sponsor: Sponsor, request: Request | None = None) -> ProfileCreation:
    """Ask for a profile now."""
    return creations.create(sponsor=sponsor, request=request or a_request(), now=timezone.now())


def deployment_of(row: ProfileCreation) -> RelayTransaction:
    return RelayTransaction.objects.get(hold=row.hold_id)


def profile_of(row: ProfileCreation, private_key: str) -> Profile:
    """Return the profile as its first controller knows it."""
    return Profile(
        row.profile_address,
        row.key_manager_address,
        (Controller(address_of(private_key), private_key, ControllerPlan().permissions),),
    )


def deploy_as_a_stranger(services: Services, request: Request, sponsor: Sponsor) -> None:
    """Have somebody else send exactly the factory's call."""
    calldata = deployments.encode(request.profile(sponsor).new.deployment)
    services.world.deployer.send([Call(deployments.FACTORY, calldata)])


def all_rows() -> dict[str, list[Any]]:
    """Return every row that a creation may touch."""
    return everything() | rows_of(ProfileCreation, User)
