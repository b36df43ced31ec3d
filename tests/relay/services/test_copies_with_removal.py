"""Copies of a profile from which home has removed first controllers: they lose the copy in its own transaction."""

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from credits.models import EntrySource
from credits.queries import balance_of
from credits.services import entries
from devstack.services.stack import Services
from devstack.world.abi import calldata
from gateway.chain.config import on_chain
from gateway.chain.lsp6 import ALL_PERMISSIONS, Permission, permissions_key
from gateway.chain.lsp25 import RelayCall, relay_digest
from relay.errors import CopyNeedsRemoval, CopyTaken, CopyUnsafe
from relay.models import Loss, ProfileCreation, RelayTransaction
from relay.services import copying
from relay.services.accepting.calls import Caller
from relay.services.copying import Copy
from relay.services.creations import Request
from relay.services.fleet import losses
from signer import removals
from signer.deployments import addresses_of, decode
from tests.fakes.profiles import sign
from tests.relay.callers import execute
from tests.relay.conftest import Refused, Settle
from tests.relay.creating import a_key, a_request, address_of, create, deployment_of, for_profiles, profile_of
from tests.relay.signing import sign_call
from tests.relay.sponsoring import account_of, execute_sponsored
from tests.relay.two_chains import ForeignChain, foreign_chain
from tests.relay.workers import assert_books_agree, broadcast_all, track
from tests.sponsors.sponsorships import make_policy, make_sponsor
from tests.threads import at_once
from users.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture
def elsewhere(services: Services, settings: Settings, relayers: object) -> Iterator[ForeignChain]:
    """A chain besides home without any profile."""
    with foreign_chain(services, settings) as chain:
        yield chain


@dataclass(frozen=True)
class Robbed:
    """A profile at home with two first controllers, of which one lost its key."""

    row: ProfileCreation
    stolen: str
    kept: str
    services: Services
    settle: Settle

    @property
    def user(self) -> User:
        return self.row.user

    def set_permissions(self, private_key: str, word: int, *, by: str | None = None) -> None:
        """Change at home what the controller of this key may do."""
        payload = calldata(
            "setData(bytes32,bytes)", permissions_key(address_of(private_key)), word.to_bytes(32, "big")
        )
        call = sign_call(
            services=self.services, profile=profile_of(self.row, by or self.kept), payload=payload
        )
        policy_of = make_sponsor()
        make_policy(policy_of)
        execute_sponsored(self.user, call, policy_of)
        assert self.settle() == 1

    def copy(self, chain: ForeignChain, signature: bytes = b"") -> Copy:
        with on_chain(chain.id):
            return copying.copy(
                caller=Caller(self.user.pk, self.row.profile_address),
                first=None,
                now=timezone.now(),
                removal_signature=signature,
            )

    def sign(
        self, chain: ForeignChain, terms: dict[str, Any], private_key: str = "", **changed: Any
    ) -> bytes:
        """Sign the removal that the refusal names."""
        parts = {
            "chain_id": chain.id,
            "key_manager": terms["keyManagerAddress"],
            "relay_nonce": 0,
            "validity": 0,
            "payload": bytes.fromhex(terms["payload"][2:]),
        }
        return sign(private_key or self.kept, relay_digest(**{**parts, **changed}))

    def deploy_as_a_stranger(self, chain: ForeignChain) -> None:
        deployment = decode(bytes(deployment_of(self.row).payload))
        assert deployment is not None
        held = {address_of(self.stolen): ALL_PERMISSIONS, address_of(self.kept): ALL_PERMISSIONS}
        chain.create_copy(*addresses_of(deployment), held)

    def permissions(self, chain: ForeignChain) -> list[int]:
        """Return what the stolen and the kept key may do on this chain."""
        return chain.read_permissions(
            profile=self.row.profile_address, controllers=[address_of(self.stolen), address_of(self.kept)]
        )


@pytest.fixture
def robbed(relayers: object, trusted: None, services: Services, settle: Settle) -> Robbed:
    stolen, kept, sponsor = a_key(), a_key(), make_sponsor()
    for_profiles(sponsor)
    row = create(sponsor, a_request(stolen, kept))
    assert settle() == 1
    entries.grant(user=row.user, credits=10_000, source=EntrySource.VIDEO_ADS, key=secrets.token_hex(8))
    return Robbed(row, stolen, kept, services, settle)


def settle_on(chain: ForeignChain) -> int:
    with on_chain(chain.id):
        broadcast_all()
        chain.mine(2)
        return track()


def needed(robbed: Robbed, chain: ForeignChain, refused: Refused) -> dict[str, Any]:
    """Ask without a signature; return what has to be signed."""
    with refused(CopyNeedsRemoval) as refusal:
        robbed.copy(chain)
    return refusal.value.members


@pytest.mark.parametrize("word", [0, ALL_PERMISSIONS & ~Permission.TRANSFERVALUE, int(Permission.CALL)])
def test_what_home_has_taken_from_a_first_controller_is_taken_in_the_transaction_of_the_copy(
    robbed: Robbed, elsewhere: ForeignChain, refused: Refused, word: int
) -> None:
    robbed.set_permissions(robbed.stolen, word)
    terms = needed(robbed, elsewhere, refused)
    assert terms["removal"] == [{"address": address_of(robbed.stolen), "permissions": f"0x{word:064x}"}]
    assert terms["signers"] == [address_of(robbed.kept)]

    made = robbed.copy(elsewhere, robbed.sign(elsewhere, terms))

    held = {one.address: one.permissions for one in made.controllers}
    assert held.get(address_of(robbed.stolen), 0) == word
    assert held[address_of(robbed.kept)] == ALL_PERMISSIONS
    assert settle_on(elsewhere) == 1
    row = RelayTransaction.objects.get(chain_id=elsewhere.id)
    assert (row.status, row.key_manager_address, row.attempts.count()) == ("Success", removals.MULTICALL, 1)
    assert balance_of(robbed.user).balance == 10_000 - row.real_cost < 10_000
    assert robbed.permissions(elsewhere) == [word, ALL_PERMISSIONS]
    # A repeat is the same copy, and needs no signature any more.
    assert robbed.copy(elsewhere).relayed == row


def test_a_signature_of_the_removed_controller_or_over_anything_else_sends_nothing(
    robbed: Robbed, elsewhere: ForeignChain, refused: Refused, services: Services
) -> None:
    robbed.set_permissions(robbed.stolen, 0)
    terms = needed(robbed, elsewhere, refused)
    for signature in (
        robbed.sign(elsewhere, terms, robbed.stolen),
        robbed.sign(elsewhere, terms, a_key()),
        robbed.sign(elsewhere, terms, chain_id=services.chain_id),
        robbed.sign(elsewhere, terms, relay_nonce=1),
        robbed.sign(elsewhere, terms, validity=1),
        robbed.sign(elsewhere, terms, payload=b""),
    ):
        with refused(CopyNeedsRemoval) as refusal:
            robbed.copy(elsewhere, signature)
        assert refusal.value.members == terms


def test_a_removal_that_home_has_overtaken_has_to_be_signed_again(
    robbed: Robbed, elsewhere: ForeignChain, refused: Refused
) -> None:
    robbed.set_permissions(robbed.stolen, int(Permission.CALL))
    weaker = robbed.sign(elsewhere, needed(robbed, elsewhere, refused))
    robbed.set_permissions(robbed.stolen, 0)
    with refused(CopyNeedsRemoval) as refusal:
        robbed.copy(elsewhere, weaker)
    robbed.copy(elsewhere, robbed.sign(elsewhere, refusal.value.members))
    assert settle_on(elsewhere) == 1
    assert robbed.permissions(elsewhere) == [0, ALL_PERMISSIONS]


def test_a_copy_with_no_first_controller_that_home_trusts_is_refused(
    robbed: Robbed, elsewhere: ForeignChain, refused: Refused
) -> None:
    # The kept controller may still change others at home, and has lost TRANSFERVALUE there.
    robbed.set_permissions(robbed.kept, ALL_PERMISSIONS & ~Permission.TRANSFERVALUE)
    robbed.set_permissions(robbed.stolen, 0)
    with refused(CopyUnsafe) as refusal:
        robbed.copy(elsewhere)
    assert set(refusal.value.members["controllers"]) == {address_of(robbed.kept), address_of(robbed.stolen)}


def test_without_the_known_multicall_on_the_chain_the_copy_is_refused(
    robbed: Robbed, elsewhere: ForeignChain, refused: Refused
) -> None:
    robbed.set_permissions(robbed.stolen, 0)
    for code in (b"", secrets.token_bytes(64)):
        elsewhere.codes[removals.MULTICALL] = code
        with refused(CopyUnsafe):
            robbed.copy(elsewhere)


def test_a_stranger_who_deploys_first_leaves_the_removal_to_do_and_costs_the_owner_nothing(
    robbed: Robbed, elsewhere: ForeignChain, refused: Refused
) -> None:
    robbed.set_permissions(robbed.stolen, 0)
    terms = needed(robbed, elsewhere, refused)
    signature = robbed.sign(elsewhere, terms)
    made = robbed.copy(elsewhere, signature)
    robbed.deploy_as_a_stranger(elsewhere)
    assert settle_on(elsewhere) == 1
    row = made.relayed
    assert row is not None
    row.refresh_from_db()
    assert (row.status, row.failure_code, row.real_cost) == ("Failed", "copy-taken", 0)
    assert balance_of(robbed.user).balance == 10_000
    assert Loss.objects.get().kind == "overtaken"
    assert_books_agree()
    with refused(CopyTaken) as refusal:
        robbed.copy(elsewhere, signature)
    payload = bytes.fromhex(refusal.value.members["payload"][2:])

    # The same signature is that of a relay call.
    with on_chain(elsewhere.id):
        execute(
            user=robbed.user,
            call=RelayCall(robbed.row.key_manager_address, payload, signature, relay_nonce=0),
            now=timezone.now(),
        )
    assert settle_on(elsewhere) == 1
    assert robbed.permissions(elsewhere) == [0, ALL_PERMISSIONS]
    assert robbed.copy(elsewhere).relayed is None


def test_beyond_the_budget_of_the_service_the_owner_pays_for_a_copy_that_was_taken(
    robbed: Robbed, elsewhere: ForeignChain, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    robbed.set_permissions(robbed.stolen, 0)
    made = robbed.copy(elsewhere, robbed.sign(elsewhere, needed(robbed, elsewhere, refused)))
    robbed.deploy_as_a_stranger(elsewhere)
    monkeypatch.setattr(losses, "reserve", lambda **_: False)
    assert settle_on(elsewhere) == 1
    row = made.relayed
    assert row is not None
    row.refresh_from_db()
    assert (row.status, row.failure_code) == ("Failed", "copy-taken-charged")
    assert balance_of(robbed.user).balance == 10_000 - row.real_cost < 10_000
    assert_books_agree()


def test_a_copy_that_a_stranger_deploys_and_cleans_first_is_the_wanted_one(
    robbed: Robbed, elsewhere: ForeignChain, refused: Refused
) -> None:
    robbed.set_permissions(robbed.stolen, 0)
    made = robbed.copy(elsewhere, robbed.sign(elsewhere, needed(robbed, elsewhere, refused)))
    robbed.deploy_as_a_stranger(elsewhere)
    held = {address_of(robbed.kept): ALL_PERMISSIONS}
    elsewhere.create_copy(robbed.row.profile_address, robbed.row.key_manager_address, held)
    assert settle_on(elsewhere) == 1
    assert made.relayed is not None
    made.relayed.refresh_from_db()
    assert (made.relayed.status, made.relayed.real_cost) == ("ExecutedExternally", 0)


@pytest.mark.django_db(transaction=True)
def test_equal_requests_for_a_copy_with_removal_at_once_are_one(
    robbed: Robbed, elsewhere: ForeignChain, refused: Refused
) -> None:
    robbed.set_permissions(robbed.stolen, 0)
    signature = robbed.sign(elsewhere, needed(robbed, elsewhere, refused))
    results = at_once([partial(robbed.copy, elsewhere, signature)] * 8)
    assert all(isinstance(one, Copy) for one in results), results
    (row,) = RelayTransaction.objects.filter(chain_id=elsewhere.id)
    assert {one.relayed for one in results if isinstance(one, Copy)} == {row}


def test_a_reorganisation_that_lets_a_stranger_deploy_first_takes_the_copy_back(
    robbed: Robbed, elsewhere: ForeignChain, refused: Refused
) -> None:
    robbed.set_permissions(robbed.stolen, 0)
    made = robbed.copy(elsewhere, robbed.sign(elsewhere, needed(robbed, elsewhere, refused)))
    assert settle_on(elsewhere) == 1
    elsewhere.take_back(2)
    robbed.deploy_as_a_stranger(elsewhere)
    with on_chain(elsewhere.id):
        elsewhere.mine(3)
        track()
        elsewhere.mine(2)
        track()
    assert made.relayed is not None
    made.relayed.refresh_from_db()
    assert (made.relayed.status, made.relayed.failure_code) == ("Failed", "copy-taken")
    assert balance_of(robbed.user).balance == 10_000


def test_a_sponsor_pays_for_the_copy_of_a_profile_that_exists_but_not_for_removed_controllers(
    robbed: Robbed, services: Services, relayers: object, elsewhere: ForeignChain, refused: Refused
) -> None:
    deployment = decode(bytes(deployment_of(robbed.row).payload))
    assert deployment is not None
    payer = make_sponsor()
    for_profiles(payer, chain_id=elsewhere.id)
    request = Request(key="", salt=deployment.salt, data=deployment.module_data)
    for word in (0, int(Permission.CALL)):
        robbed.set_permissions(robbed.stolen, word)
        with on_chain(elsewhere.id), refused(CopyUnsafe) as refusal:
            create(payer, request)
        assert refusal.value.members["controllers"] == [address_of(robbed.stolen)]
    robbed.set_permissions(robbed.stolen, ALL_PERMISSIONS)
    with on_chain(elsewhere.id):
        row = create(payer, request)
    assert row.profile_address == robbed.row.profile_address
    assert settle_on(elsewhere) == 1
    assert balance_of(robbed.user).balance == 10_000
    assert account_of(payer).balance < 100_000
