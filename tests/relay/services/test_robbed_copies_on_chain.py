"""A removed key that attacks the copy on a real chain: with transactions of its own in the block of the copy."""

from dataclasses import dataclass
from typing import Any

import pytest
from django.utils import timezone

from credits.queries import balance_of
from devstack.services.stack import Services
from devstack.world.abi import calldata
from devstack.world.deployer import Call
from devstack.world.keys import sign_transaction
from devstack.world.profiles import Controller, ControllerPlan, Profile
from gateway.chain.client import get_chain_client
from gateway.chain.config import on_chain
from gateway.chain.contracts import encode_execute_relay_call
from gateway.chain.lsp6 import ALL_PERMISSIONS, permissions_key
from gateway.chain.lsp25 import relay_digest
from relay.errors import CopyNeedsRemoval
from relay.models import RelayTransaction
from relay.services import copying
from relay.services.accepting.calls import Caller
from relay.services.copying import Copy
from signer import deployments
from signer.deployments import Addresses, Deployment, addresses_of
from signer.removals import MULTICALL
from tests.fakes.profiles import sign
from tests.relay.conftest import Refused
from tests.relay.copies import Own, a_deployment
from tests.relay.creating import a_key, address_of
from tests.relay.far_chain import FarChain
from tests.relay.signing import sign_call
from tests.relay.two_chains import ETHER, GWEI
from tests.relay.workers import broadcast_all, track
from users.models import User

pytestmark = pytest.mark.django_db


@dataclass
class Robbed:
    """A profile whose first key was stolen and removed at home, and its owner, who wants a copy."""

    user: User
    deployment: Deployment
    stolen: str
    kept: str
    far: FarChain
    _sent: int = 0

    @property
    def addresses(self) -> Addresses:
        return addresses_of(self.deployment)

    def copy(self, signature: bytes = b"") -> Copy:
        with on_chain(self.far.chain_id):
            return copying.copy(
                caller=Caller(self.user.pk, self.addresses.profile),
                first=None,
                now=timezone.now(),
                removal_signature=signature,
            )

    def attack(self, to: str, data: bytes, *, tip_wei: int) -> str:
        """Send a transaction of the stolen key, which waits for the next block; return its hash."""
        newest = self.far.rpc.call("eth_getBlockByNumber", "latest", False)
        fields: dict[str, Any] = {
            "chainId": self.far.chain_id,
            "nonce": self._sent,
            "gas": 2_000_000,
            # The node orders by this.
            "maxFeePerGas": int(newest["baseFeePerGas"], 16) + tip_wei,
            "maxPriorityFeePerGas": tip_wei,
            "to": bytes.fromhex(to[2:]),
            "value": 0,
            "data": data,
        }
        self._sent += 1
        raw = sign_transaction(self.stolen, fields)
        return str(self.far.rpc.call("eth_sendRawTransaction", raw))

    def permissions(self) -> list[int]:
        with on_chain(self.far.chain_id):
            return get_chain_client().read_permissions(
                profile=self.addresses.profile, controllers=[address_of(self.stolen), address_of(self.kept)]
            )


@pytest.fixture
def robbed(services: Services, own: Own, far: FarChain) -> Robbed:
    stolen, kept = a_key(), a_key()
    deployment = a_deployment(stolen, kept)
    user, addresses = own(deployment), addresses_of(deployment)
    profile = Profile(*addresses, (Controller(address_of(kept), kept, ControllerPlan().permissions),))
    removal = sign_call(services=services, profile=profile, payload=_permissions(stolen, b""))
    services.world.deployer.send(
        [
            Call(
                removal.key_manager,
                encode_execute_relay_call(
                    signature=removal.signature,
                    nonce=removal.relay_nonce,
                    validity=removal.validity,
                    payload=removal.payload,
                ),
            )
        ]
    )
    far.world.deployer.fund(ETHER, address_of(stolen))
    return Robbed(user, deployment, stolen, kept, far)


def _permissions(private_key: str, word: bytes) -> bytes:
    return calldata("setData(bytes32,bytes)", permissions_key(address_of(private_key)), word)


def _signed_copy(robbed: Robbed, refused: Refused) -> RelayTransaction:
    with refused(CopyNeedsRemoval) as refusal:
        robbed.copy()
    terms = refusal.value.members
    assert [one["address"] for one in terms["removal"]] == [address_of(robbed.stolen)]
    digest = relay_digest(
        chain_id=robbed.far.chain_id,
        key_manager=terms["keyManagerAddress"],
        relay_nonce=0,
        validity=0,
        payload=bytes.fromhex(terms["payload"][2:]),
    )
    relayed = robbed.copy(sign(robbed.kept, digest)).relayed
    assert relayed is not None
    return relayed


def _mined(robbed: Robbed) -> list[dict[str, Any]]:
    """Broadcast the copy, mine one block, and return the receipts of its transactions in order."""
    with on_chain(robbed.far.chain_id):
        broadcast_all()
        robbed.far.control.mine()
        block = robbed.far.rpc.call("eth_getBlockByNumber", "latest", False)
        robbed.far.control.mine(2)
        assert track() == 1
    return [robbed.far.rpc.call("eth_getTransactionReceipt", one) for one in block["transactions"]]


@pytest.mark.parametrize(("tip_wei", "is_first"), [(40 * GWEI, True), (1, False)])
def test_a_removed_key_gets_nothing_before_or_after_the_copy_in_its_block(
    robbed: Robbed, refused: Refused, tip_wei: int, is_first: bool
) -> None:
    row = _signed_copy(robbed, refused)
    attack = robbed.attack(robbed.addresses.profile, _permissions(robbed.kept, b""), tip_wei=tip_wei)

    receipts = _mined(robbed)

    hashes = [attack, row.transaction_hash] if is_first else [row.transaction_hash, attack]
    assert [one["transactionHash"] for one in receipts] == hashes
    # Before the copy there is no contract to call; after it the key has no permission.
    assert [int(one["status"], 16) for one in receipts] == [1, 1 if is_first else 0]
    row.refresh_from_db()
    assert (row.status, row.key_manager_address) == ("Success", MULTICALL)
    assert robbed.permissions() == [0, ALL_PERMISSIONS]
    assert balance_of(robbed.user).balance == 10_000 - row.real_cost


def test_a_removed_key_that_deploys_first_in_the_block_leaves_no_success_and_no_charge(
    robbed: Robbed, refused: Refused
) -> None:
    row = _signed_copy(robbed, refused)
    first = robbed.attack(deployments.FACTORY, deployments.encode(robbed.deployment), tip_wei=40 * GWEI)
    receipts = _mined(robbed)
    assert [one["transactionHash"] for one in receipts] == [first, row.transaction_hash]
    assert [int(one["status"], 16) for one in receipts] == [1, 0]
    row.refresh_from_db()
    assert (row.status, row.failure_code, row.real_cost) == ("Failed", "copy-taken", 0)
    assert robbed.permissions() == [ALL_PERMISSIONS, ALL_PERMISSIONS]
    assert balance_of(robbed.user).balance == 10_000
