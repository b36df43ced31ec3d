"""The same sign-in against LUKSO's own contracts on a real node."""

from collections.abc import Callable

import pytest
from django.utils.timezone import now

from devstack.services.stack import Services
from devstack.world.permissions import ALL_PERMISSIONS, Permission
from devstack.world.profiles import ControllerPlan, ProfilePlan
from gateway.chain.signatures import personal_sign_digest
from tests.fakes.profiles import Controller, random_address, sign
from tests.users.auth_client import CALLER
from tests.users.trusted import trust_code
from users.errors import ProfileNotDeployed, SignatureNotByController, SignPermissionMissing, UntrustedCode
from users.models import SignInSession
from users.services import sessions, sign_in
from users.services.sessions import TokenPair

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _trusted(services: Services, db: None) -> None:
    code = services.world.implementations
    trust_code(profile=code.universal_profile, key_manager=code.key_manager)


def _sign_in(profile_address: str, private_key: str) -> TokenPair:
    challenge = sign_in.issue_challenge(profile_address=profile_address, client=CALLER, now=now())
    signature = sign(private_key, personal_sign_digest(challenge.message.encode()))
    return sign_in.sign_in(nonce=challenge.nonce, signature=signature, client=CALLER, now=now())


def test_controllers_sign_in_by_their_permissions(services: Services) -> None:
    everything, only_sign = ControllerPlan(), ControllerPlan(Permission.SIGN)
    all_but_sign = ControllerPlan(ALL_PERMISSIONS & ~Permission.SIGN)
    plan = ProfilePlan((everything, only_sign, all_but_sign))
    (profile,) = services.world.create_profiles(plan)

    for controller in (everything, only_sign):
        pair = _sign_in(profile.profile_address, controller.private_key)
        assert sessions.refresh(token=pair.refresh, now=now()).profile_address == profile.profile_address
    with pytest.raises(SignPermissionMissing):
        _sign_in(profile.profile_address, all_but_sign.private_key)
    with pytest.raises(SignatureNotByController):
        _sign_in(profile.profile_address, Controller().private_key)

    assert set(SignInSession.objects.values_list("controller_address", flat=True)) == {
        controller.address for controller in profile.controllers[:2]
    }


@pytest.mark.parametrize(
    ("address_of", "refusal"),
    [
        (lambda services: random_address(), ProfileNotDeployed),
        (lambda services: services.world.deploy_impostor(), UntrustedCode),
        (lambda services: services.world.implementations.universal_profile, UntrustedCode),
    ],
)
def test_an_address_that_is_not_a_profile_is_not_trusted(
    services: Services, address_of: Callable[[Services], str], refusal: type[Exception]
) -> None:
    with pytest.raises(refusal):
        _sign_in(address_of(services), Controller().private_key)
    assert not SignInSession.objects.exists()
