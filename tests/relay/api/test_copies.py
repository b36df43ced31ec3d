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
from gateway.chain.lsp6 import permissions_key
from gateway.chain.lsp25 import relay_digest
from relay.models import ProfileCreation, RelayTransaction
from signer import deployments
from signer.removals import payload_of
from sponsors.models import Sponsor
from tests.fakes.profiles import sign
from tests.relay.api.conftest import Wallet, wallet_of
from tests.relay.api.test_execute import assert_problem
from tests.relay.conftest import Settle
from tests.relay.creating import a_key, a_request, address_of, create, deployment_of, for_profiles, profile_of
from tests.relay.rows import everything
from tests.relay.signing import set_data_payload, sign_call
from tests.relay.sponsoring import execute_sponsored
from tests.relay.two_chains import ForeignChain, foreign_chain
from tests.relay.workers import broadcast_all, track
from tests.sponsors.sponsorships import make_policy, make_sponsor
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


def test_a_removal_is_asked_for_in_full_and_then_sent_with_the_copy(
    relayers: object, trusted: None, settle: Settle, elsewhere: ForeignChain, services: Services
) -> None:
    stolen, kept = a_key(), a_key()
    sponsor: Sponsor = make_sponsor()
    for_profiles(sponsor)
    row = create(sponsor, a_request(stolen, kept))
    assert settle() == 1
    entries.grant(user=row.user, credits=10_000, source=EntrySource.VIDEO_ADS, key=secrets.token_hex(8))
    key = permissions_key(address_of(stolen))
    removal = sign_call(
        services=services, profile=profile_of(row, kept), payload=set_data_payload(b"", key=key)
    )
    make_policy(sponsor, position=1)
    execute_sponsored(row.user, removal, sponsor)
    assert settle() == 1
    pair = sessions.start(
        profile_address=row.profile_address, controller=address_of(kept), now=timezone.now()
    )
    wallet, body, before = Wallet(pair.access, "192.0.2.78"), {"chainId": elsewhere.id}, everything()

    asked = wallet.post(COPY, body)

    assert_problem(asked, 409, "copy-needs-removal")
    payload = payload_of(((key, b""),))
    assert {name: asked.body[name] for name in ("removal", "keyManagerAddress", "payload", "signers")} == {
        "removal": [{"address": address_of(stolen), "permissions": "0x" + "00" * 32}],
        "keyManagerAddress": row.key_manager_address,
        "payload": "0x" + payload.hex(),
        "signers": [address_of(kept)],
    }
    for wrong, code in (
        ("0x", "invalid-request"),
        ("0x" + "ff" * 65, "signature-malformed"),
        (1, "invalid-request"),
    ):
        assert_problem(wallet.post(COPY, body | {"removalSignature": wrong}), 400, code)
    assert everything() == before
    digest = relay_digest(
        chain_id=elsewhere.id,
        key_manager=row.key_manager_address,
        relay_nonce=0,
        validity=0,
        payload=payload,
    )
    made = wallet.post(COPY, body | {"removalSignature": "0x" + sign(kept, digest).hex()})
    assert (made.status, made.body["status"]) == (200, "Pending")
    assert address_of(stolen) not in {one["address"] for one in made.body["controllers"]}
