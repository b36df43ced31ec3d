"""The copy of a profile over HTTP: what is sent, what comes back, and who may ask."""

import secrets
from collections.abc import Iterator

import pytest
from django.utils import timezone
from pytest_django import Settings

from credits.models import EntrySource
from credits.services import entries
from devstack.services.stack import Services
from gateway.chain.config import on_chain
from relay.models import ProfileCreation, RelayTransaction
from signer import deployments
from sponsors.models import Sponsor
from tests.relay.api.conftest import Wallet, wallet_of
from tests.relay.api.test_execute import assert_problem
from tests.relay.conftest import Settle
from tests.relay.creating import create, deployment_of, for_profiles
from tests.relay.rows import everything
from tests.relay.two_chains import ForeignChain, foreign_chain
from tests.relay.workers import broadcast_all, track
from tests.sponsors.sponsorships import make_sponsor
from users.services import sessions

pytestmark = pytest.mark.django_db
COPY, STATUS = "/api/relay/copyProfile", "/api/relay/transactionStatus"


@pytest.fixture
def elsewhere(services: Services, settings: Settings, relayers: object) -> Iterator[ForeignChain]:
    """A chain besides home without any profile."""
    with foreign_chain(services, settings) as chain:
        yield chain


@pytest.fixture
def created(relayers: object, trusted: None, settle: Settle) -> ProfileCreation:
    """A profile that the service has deployed, whose owner has credits."""
    sponsor: Sponsor = make_sponsor()
    for_profiles(sponsor)
    row = create(sponsor)
    assert settle() == 1
    entries.grant(user=row.user, credits=10_000, source=EntrySource.VIDEO_ADS, key=secrets.token_hex(8))
    return row


def owner_of(created: ProfileCreation) -> Wallet:
    """Return the wallet of the profile's first controller, signed in."""
    pair = sessions.start(
        profile_address=created.profile_address,
        controller=created.controllers[0]["address"],
        now=timezone.now(),
    )
    return Wallet(pair.access, "192.0.2.77")


def test_an_owner_copies_the_profile_and_follows_the_transaction(
    created: ProfileCreation, elsewhere: ForeignChain
) -> None:
    wallet = owner_of(created)
    response = wallet.post(COPY, {"chainId": elsewhere.id})
    relayed = RelayTransaction.objects.latest("pk")
    assert response.body == {
        "universalProfileAddress": created.profile_address,
        "keyManagerAddress": created.key_manager_address,
        "chainId": elsewhere.id,
        "status": "Pending",
        "transactionHash": relayed.transaction_hash,
        "controllers": created.controllers,
    }
    with on_chain(elsewhere.id):
        broadcast_all()
        elsewhere.mine(2)
        assert track() == 1
    status = wallet.post(STATUS, {"transactionHash": relayed.transaction_hash}).body
    assert (status["status"], status["chainId"]) == ("Success", elsewhere.id)
    assert wallet.post(COPY, {"chainId": elsewhere.id}).body["status"] == "Success"


def test_the_data_of_the_first_deployment_may_be_sent(
    created: ProfileCreation, elsewhere: ForeignChain
) -> None:
    deployment = deployments.decode(bytes(deployment_of(created).payload))
    assert deployment is not None
    first = {
        "salt": "0x" + deployment.salt.hex(),
        "postDeploymentCallData": "0x" + deployment.module_data.hex(),
    }
    wallet = owner_of(created)
    before = everything()
    other = wallet.post(
        COPY, {"chainId": elsewhere.id, "firstDeployment": first | {"salt": "0x" + "12" * 32}}
    )
    assert_problem(other, 422, "first-deployment-unknown")
    assert everything() == before
    assert wallet.post(COPY, {"chainId": elsewhere.id, "firstDeployment": first}).status == 200


def test_a_session_whose_controller_home_does_not_know_gets_no_copy(
    created: ProfileCreation, elsewhere: ForeignChain
) -> None:
    stranger, before = wallet_of(created.user), everything()
    assert_problem(stranger.post(COPY, {"chainId": elsewhere.id}), 401, "session-ended")
    assert everything() == before


def test_home_unknown_chains_and_strangers_get_no_copy(
    created: ProfileCreation, elsewhere: ForeignChain, services: Services
) -> None:
    wallet, before = owner_of(created), everything()
    assert_problem(wallet.post(COPY, {"chainId": services.chain_id}), 422, "copy-at-home")
    assert_problem(wallet.post(COPY, {"chainId": 987654321}), 404, "chain-unknown")
    assert_problem(wallet.post(COPY, {}), 400, "invalid-request")
    assert_problem(Wallet(None, "192.0.2.1").post(COPY, {"chainId": elsewhere.id}), 401, "not-authenticated")
    assert everything() == before
