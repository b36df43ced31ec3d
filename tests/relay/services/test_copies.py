"""Copies of a profile on another chain: at its addresses, once, and never for controllers that home has removed."""

import secrets
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from credits.errors import InsufficientCredits
from credits.models import EntrySource
from credits.queries import balance_of
from credits.services import entries
from devstack.services.stack import Services
from gateway.chain import lsp23
from gateway.chain.client import JsonRpcChainClient
from gateway.chain.config import on_chain
from gateway.chain.lsp23 import PostDeploymentRefused
from gateway.chain.types import ProfileState
from relay.errors import CopyAtHome, CopyUnsafe, FirstDeploymentUnknown
from relay.models import Attempt, Loss, RelayTransaction
from relay.services import copying
from relay.services.accepting.calls import Caller
from relay.services.copying import Copy, FirstDeployment
from signer import deployments
from signer.deployments import RECEIVER_DELEGATE, Deployment, addresses_of
from tests.factories import random_address
from tests.relay import copies
from tests.relay.conftest import Refused, Settle
from tests.relay.copies import Own, a_deployment, sent
from tests.relay.creating import a_key, address_of, create, for_profiles
from tests.relay.two_chains import ForeignChain, foreign_chain
from tests.relay.workers import broadcast_all, track
from tests.sponsors.sponsorships import make_sponsor
from tests.threads import at_once
from users.errors import UntrustedCode
from users.models import TrustedImplementation, User

pytestmark = pytest.mark.django_db


@pytest.fixture
def elsewhere(services: Services, settings: Settings, relayers: object) -> Iterator[ForeignChain]:
    """A chain besides home without any profile."""
    with foreign_chain(services, settings) as chain:
        yield chain


def copy(user: User, first: FirstDeployment | None, chain: ForeignChain) -> Copy:
    return copies.copy(user, first, chain.id)


def settle_on(chain: ForeignChain) -> int:
    with on_chain(chain.id):
        broadcast_all()
        chain.mine(2)
        return track()


def test_a_copy_has_the_addresses_and_the_controllers_of_home_and_costs_its_owner(
    own: Own, elsewhere: ForeignChain
) -> None:
    key = a_key()
    deployment = a_deployment(key)
    user = own(deployment)

    made = copy(user, sent(deployment), elsewhere)

    assert made.addresses == (user.profile_address, addresses_of(deployment).key_manager)
    assert {one.address for one in made.controllers} == {address_of(key), RECEIVER_DELEGATE}
    assert settle_on(elsewhere) == 1
    row = RelayTransaction.objects.get()
    assert (row.status, row.chain_id, row.deploys_profile) == ("Success", elsewhere.id, True)
    assert balance_of(user).balance == 10_000 - row.real_cost < 10_000
    profile = elsewhere.read_profile(
        profile=made.addresses.profile, controller=address_of(key), digest=bytes(32), signature=b""
    )
    assert (profile.owner, profile.permissions) == (made.addresses.key_manager, 0x7F3F7F)
    again = copy(user, sent(deployment), elsewhere)
    assert (again.relayed, RelayTransaction.objects.count()) == (row, 1)


def test_a_profile_that_the_service_created_needs_no_data_for_its_copy(
    relayers: object,
    trusted: None,
    elsewhere: ForeignChain,
    settle: Settle,
    open_account: Callable[..., User],
) -> None:
    sponsor = make_sponsor()
    for_profiles(sponsor)
    row = create(sponsor)
    with pytest.raises(FirstDeploymentUnknown):
        # It does not exist at home yet.
        copy(row.user, None, elsewhere)
    settle()
    entries.grant(user=row.user, credits=10_000, source=EntrySource.VIDEO_ADS, key=secrets.token_hex(8))
    assert copy(row.user, None, elsewhere).addresses.profile == row.profile_address
    assert settle_on(elsewhere) == 1


def test_a_profile_that_a_wallet_created_needs_no_data_either_because_home_has_the_factorys_event(
    own: Own, elsewhere: ForeignChain
) -> None:
    deployment = a_deployment()
    user = own(deployment)
    assert copy(user, None, elsewhere).addresses == addresses_of(deployment)
    assert settle_on(elsewhere) == 1


def test_a_profile_of_an_older_release_is_copied_with_its_own_code_once_staff_trust_it(
    own: Own, elsewhere: ForeignChain, services: Services, refused: Refused
) -> None:
    _, older = deployments.RELEASES
    for there, here in zip(older[:2], deployments.RELEASES[0][:2], strict=True):
        # The code of another release does for the addresses, which follow from those of the code.
        services.rpc.call("anvil_setCode", there, services.rpc.call("eth_getCode", here, "latest"))
        elsewhere.codes[there] = elsewhere.codes[here]
    deployment = _with_delegate(a_deployment(), older.receiver_delegate)._replace(
        profile=older.profile, key_manager=older.key_manager
    )
    user = own(deployment)
    rows = TrustedImplementation.objects.filter(address__in=older[:2])
    assert rows.update(is_active=False) == 2
    with refused(UntrustedCode) as refusal:
        copy(user, sent(deployment), elsewhere)
    assert refusal.value.members == {"profileCode": older.profile, "keyManagerCode": older.key_manager}
    rows.update(is_active=True)
    made = copy(user, sent(deployment), elsewhere)
    assert made.addresses == addresses_of(deployment)
    assert copy(user, None, elsewhere).relayed == made.relayed
    assert settle_on(elsewhere) == 1


def _with_delegate(deployment: Deployment, delegate: str) -> Deployment:
    data, newest = deployment.module_data, bytes.fromhex(RECEIVER_DELEGATE[2:])
    return deployment._replace(module_data=data.replace(newest, bytes.fromhex(delegate[2:])))


def test_a_new_profile_does_not_get_an_older_receiver_delegate() -> None:
    older = _with_delegate(a_deployment(), deployments.RELEASES[1].receiver_delegate)
    with pytest.raises(PostDeploymentRefused):
        lsp23.profile_of_data(data=older.module_data, salt=older.salt)


def test_without_its_data_or_with_others_a_profile_is_not_copied(
    user: User, elsewhere: ForeignChain, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = a_deployment()
    # The node does not keep old events, or returns another profile's.
    for found in (None, other):
        monkeypatch.setattr(JsonRpcChainClient, "read_first_deployment", lambda *_, found=found, **__: found)
        with refused(FirstDeploymentUnknown):
            copy(user, None, elsewhere)
    for first in (sent(other), FirstDeployment(other.salt, other.module_data[:-32])):
        with refused(FirstDeploymentUnknown):
            copy(user, first, elsewhere)


def test_a_first_deployment_with_something_that_the_service_does_not_deploy_is_not_copied(
    own: Own, elsewhere: ForeignChain, refused: Refused
) -> None:
    deployment, key = a_deployment(), secrets.token_bytes(32)
    entries = deployments.decode_entries(deployment.module_data)
    assert entries is not None
    data = deployments.encode_entries([*entries, (key, b"value")])
    user = own(deployment._replace(module_data=data))
    with refused(PostDeploymentRefused) as refusal:
        copy(user, None, elsewhere)
    assert refusal.value.members["dataKey"] == "0x" + key.hex()


def test_home_gets_no_copy(own: Own, refused: Refused) -> None:
    deployment = a_deployment()
    user = own(deployment)
    with refused(CopyAtHome):
        copying.copy(
            caller=Caller(user.pk, str(user.profile_address)), first=sent(deployment), now=timezone.now()
        )


def test_a_profile_that_was_moved_to_another_key_manager_at_home_is_not_copied(
    own: Own,
    elsewhere: ForeignChain,
    refused: Refused,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    deployment = a_deployment()
    user, read = own(deployment), JsonRpcChainClient.read_profile

    def moved(client: JsonRpcChainClient, **question: Any) -> ProfileState:
        return replace(read(client, **question), owner=random_address())

    monkeypatch.setattr(JsonRpcChainClient, "read_profile", moved)
    with refused(CopyUnsafe) as refusal:
        copy(user, sent(deployment), elsewhere)
    assert refusal.value.members["controllers"] == []


def test_a_profile_of_which_nobody_may_change_the_controllers_is_not_copied(
    own: Own, elsewhere: ForeignChain, refused: Refused
) -> None:
    deployment = a_deployment()
    entries = deployments.decode_entries(deployment.module_data)
    assert entries is not None
    weak = [
        (key, (0x600800).to_bytes(32, "big") if value.endswith(b"\x7f\x3f\x7f") else value)
        for key, value in entries
    ]
    deployment = deployment._replace(module_data=deployments.encode_entries(weak))
    user = own(deployment)
    with refused(
        CopyUnsafe,
    ):
        copy(user, sent(deployment), elsewhere)


def test_a_copy_that_a_stranger_deploys_first_is_the_same_and_costs_its_owner_nothing(
    own: Own, elsewhere: ForeignChain
) -> None:
    before, meanwhile = a_deployment(), a_deployment()
    users = [own(before), own(meanwhile)]
    _copied_by_a_stranger(before, elsewhere)
    assert copy(users[0], sent(before), elsewhere).relayed is None

    made = copy(users[1], sent(meanwhile), elsewhere)
    _copied_by_a_stranger(meanwhile, elsewhere)
    assert settle_on(elsewhere) == 1
    assert made.relayed is not None
    made.relayed.refresh_from_db()
    assert (made.relayed.status, made.relayed.real_cost) == ("ExecutedExternally", 0)
    assert [balance_of(user).balance for user in users] == [10_000, 10_000]
    assert Loss.objects.get().kind == "overtaken"


def _copied_by_a_stranger(deployment: Deployment, chain: ForeignChain) -> None:
    addresses = addresses_of(deployment)
    chain.create_copy(addresses.profile, addresses.key_manager, {})


def test_a_copy_without_credits_is_refused(own: Own, elsewhere: ForeignChain, refused: Refused) -> None:
    deployment = a_deployment()
    user = own(deployment)
    entries.adjust(user=user, credits=-9_999, key=secrets.token_hex(8), actor=user, reason="spent")
    with refused(InsufficientCredits):
        copy(user, sent(deployment), elsewhere)


@pytest.mark.django_db(transaction=True)
def test_equal_requests_for_a_copy_at_once_are_one(own: Own, elsewhere: ForeignChain) -> None:
    deployment = a_deployment()
    user = own(deployment)
    results = at_once([partial(copy, user, sent(deployment), elsewhere)] * 8)
    assert {one.relayed for one in results if isinstance(one, Copy)} == {RelayTransaction.objects.get()}
    assert all(isinstance(one, Copy) for one in results), results
    assert Attempt.objects.count() == 1
    assert settle_on(elsewhere) == 1
