"""
A new profile and a copy, whose processes are killed between each two steps of their deployment.

Meanwhile a stranger deploys the same, or the chain is reorganised, or both: it is one profile, charged once, to the
right payer.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import pytest
from django.conf import settings as django_settings

from credits.models import CreditAccount, CreditHold, HoldStatus
from devstack.services.stack import Services
from devstack.world.deployer import Call
from gateway.chain.client import JsonRpcChainClient
from gateway.chain.config import on_chain
from relay.models import RelayTransaction
from relay.services.accepting import acceptance, deployments, unsigned
from relay.services.sending import broadcasting
from relay.services.settling import settlement, tracking
from signer.client import SignerClient
from signer.deployments import FACTORY, Deployment, addresses_of, encode
from tests.killing import Point, around, killed
from tests.relay import creating
from tests.relay.chain import Chain
from tests.relay.copies import Own, a_deployment, copy, sent
from tests.relay.creating import a_request, create, for_profiles
from tests.relay.far_chain import FarChain
from tests.relay.remote_signers import RemoteSigners
from tests.relay.sponsoring import account_of
from tests.relay.workers import assert_books_agree, broadcast_all, later, track
from tests.sponsors.sponsorships import make_sponsor
from users.models import User

pytestmark = pytest.mark.django_db
BEFORE_MINED = [
    Point(acceptance, "take_and_store", True),
    Point(deployments, "_accept", True),
    *around(JsonRpcChainClient, "send_raw_transactions"),
    Point(broadcasting, "_mark_sent", True),
]
MINED = [
    *around(tracking, "_update_receipts"),
    *around(settlement, "_settle_credits"),
    *around(settlement, "_settle"),
]
# With a signer elsewhere, the call is stored before it is signed.
SIGNING = [*around(SignerClient, "sign"), *around(unsigned, "_store")]


@dataclass
class Deploying:
    """A profile that is to be deployed on a real chain, and the account that pays."""

    chain: Chain
    chain_id: int
    deployment: Deployment
    payer: Callable[[], CreditAccount]
    ask: Callable[[], object]
    by_stranger: Callable[[], object]
    credits: int = field(init=False)
    seconds: int = 0

    def __post_init__(self) -> None:
        self.credits = self.payer().balance

    def go_on(self) -> None:
        """Do what the workers do in some minutes."""
        self.seconds += 600
        with on_chain(self.chain_id):
            unsigned.sweep(now=later(10))
            broadcast_all()
            broadcasting.resend(now=later(self.seconds))
            self.chain.mine(django_settings.CONFIRMATIONS)
            track()

    def overtaken(self) -> None:
        """Have a stranger deploy the same; nodes have dropped the service's transaction."""
        self.chain.drop_pool()
        self.by_stranger()

    def reorganised(self) -> None:
        """Take back the blocks of the deployment, and its transaction."""
        self.chain.reorganise(django_settings.CONFIRMATIONS)

    def assert_once(self, *, is_ours: bool) -> None:
        """There is one profile, which the payer paid once, unless a stranger deployed it."""
        addresses = addresses_of(self.deployment)
        assert User.objects.filter(profile_address=addresses.profile).count() == 1
        rows = list(RelayTransaction.objects.filter(profile_address=addresses.profile))
        cost = rows[0].real_cost if rows else 0
        statuses = [row.status for row in rows]
        assert statuses in ([["Success"]] if is_ours else [[], ["ExecutedExternally"]])
        assert (cost > 0) is is_ours
        payer = self.payer()
        assert (payer.balance, payer.held, payer.open_holds) == (self.credits - cost, 0, 0)
        charged = CreditHold.objects.filter(captured_amount__gt=0)
        assert [hold.account_id for hold in charged] == [payer.pk] * is_ours
        assert not CreditHold.objects.filter(status=HoldStatus.HELD).exists()
        assert_books_agree()


@pytest.fixture
def creation(services: Services, relayers: object, trusted: None, chain: Chain) -> Deploying:
    """A new profile at home, which a sponsor asks for."""
    sponsor, request = make_sponsor(), a_request()
    for_profiles(sponsor, campaign_calls=1)
    return Deploying(
        chain,
        services.chain_id,
        request.profile(sponsor).new.deployment,
        partial(account_of, sponsor),
        partial(create, sponsor, request),
        partial(creating.deploy_as_a_stranger, services, request, sponsor),
    )


@pytest.fixture
def a_copy(own: Own, far: FarChain) -> Deploying:
    """The copy of a profile on another chain, which its owner asks for."""
    deployment = a_deployment()
    user = own(deployment)
    return Deploying(
        far.control,
        far.chain_id,
        deployment,
        lambda: CreditAccount.objects.get(user=user),
        partial(copy, user, sent(deployment), far.chain_id),
        lambda: far.world.deployer.send([Call(FACTORY, encode(deployment))]),
    )


@pytest.fixture(params=["creation", "a_copy"])
def deploying(request: pytest.FixtureRequest) -> Deploying:
    """A new profile, or a copy."""
    return request.getfixturevalue(request.param)  # type: ignore[no-any-return]


def _killed_at(point: Point, deploying: Deploying) -> None:
    with killed(point):
        deploying.ask()
        deploying.go_on()


def _come_to_an_end(deploying: Deploying) -> None:
    deploying.ask()
    for _ in range(3):
        deploying.go_on()


@pytest.mark.parametrize("is_overtaken", [False, True])
@pytest.mark.parametrize("point", BEFORE_MINED, ids=str)
def test_a_kill_before_the_deployment_is_mined(
    deploying: Deploying, point: Point, is_overtaken: bool
) -> None:
    _killed_at(point, deploying)
    if is_overtaken:
        deploying.overtaken()
    _come_to_an_end(deploying)
    deploying.assert_once(is_ours=not is_overtaken)


@pytest.mark.parametrize("fate", ["nothing", "reorganised", "overtaken"])
@pytest.mark.parametrize("point", MINED, ids=str)
def test_a_kill_after_the_deployment_is_mined(deploying: Deploying, point: Point, fate: str) -> None:
    _killed_at(point, deploying)
    if fate != "nothing":
        deploying.reorganised()
    if fate == "overtaken":
        deploying.overtaken()
    _come_to_an_end(deploying)
    deploying.assert_once(is_ours=fate != "overtaken")


@pytest.mark.parametrize("is_overtaken", [False, True])
def test_a_settled_deployment_that_a_reorganisation_takes_back(
    deploying: Deploying, is_overtaken: bool
) -> None:
    _come_to_an_end(deploying)
    deploying.assert_once(is_ours=True)
    deploying.chain.reorganise(3 * django_settings.CONFIRMATIONS)
    if is_overtaken:
        deploying.overtaken()
    _come_to_an_end(deploying)
    deploying.assert_once(is_ours=not is_overtaken)


@pytest.mark.parametrize("is_overtaken", [False, True])
@pytest.mark.parametrize("point", SIGNING, ids=str)
def test_a_kill_while_another_process_signs(
    signers: RemoteSigners, creation: Deploying, point: Point, is_overtaken: bool
) -> None:
    with signers.serving():
        _killed_at(point, creation)
        if is_overtaken:
            creation.overtaken()
        _come_to_an_end(creation)
    creation.assert_once(is_ours=not is_overtaken)


def test_a_profile_that_a_stranger_deployed_and_a_reorganisation_took_back_is_deployed(
    deploying: Deploying,
) -> None:
    deploying.overtaken()
    deploying.ask()
    assert not RelayTransaction.objects.exists()
    deploying.reorganised()
    _come_to_an_end(deploying)
    deploying.assert_once(is_ours=True)
