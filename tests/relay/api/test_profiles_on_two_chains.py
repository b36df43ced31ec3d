"""
A new profile on two real chains, with the contracts that LUKSO has released: from the request to the first call.

What judges the service here is not its own: the factory computes the addresses, LUKSO's library signs, and
both chains are asked what came of it.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from eth_abi.abi import decode as abi_decode
from eth_abi.abi import encode as abi_encode
from eth_utils.address import to_checksum_address

from credits.models import CreditAccount
from devstack.rpc import Rpc
from devstack.services.stack import Services
from devstack.world.abi import calldata, selector
from devstack.world.canonical import CANONICAL
from devstack.world.permissions import ALL_PERMISSIONS
from relay.models import RelayTransaction
from tests.relay import official_signer
from tests.relay.api.conftest import Wallet, network_address
from tests.relay.api.test_execute import assert_problem
from tests.relay.api.test_profiles import PATH, server_of
from tests.relay.conftest import Settle
from tests.relay.creating import a_key, address_of, for_profiles
from tests.relay.far_chain import FarChain
from tests.relay.rows import everything
from tests.relay.signing import set_data_payload
from tests.relay.workers import assert_books_agree
from tests.sponsors.sponsorships import make_sponsor

pytestmark = pytest.mark.django_db
_FIRST_CREDITS = 20_000
_TERMS = "(bytes32,uint256,address,bytes),(uint256,address,bytes,bool,bytes),address,bytes"
_DELEGATE_KEY = "0cfc51aec37c55a4d0b1a65c6255c4bf2fbdf6277f3cc0730c45b828b6db8b47"
_PERMISSIONS_PREFIX = "4b80742de2bf82acb3630000"
_CONTROLLERS_KEY = "df30dba06db6a30e65354d9a64c609861f089545ca58c6b4dbe31a5f338cb0e3"
# REENTRANCY and SUPER_SETDATA.
_DELEGATE_PERMISSIONS = 0x20080


@dataclass(frozen=True)
class Side:
    """One of the two chains: where an LSP-15 wallet sends its calls, and how the chain goes on."""

    rpc: Rpc
    chain_id: int
    base: str
    settle: Settle

    def ask(self, contract: str, signature: str, *arguments: Any) -> bytes:
        """Return what a function of the contract returns."""
        return self.ask_raw(contract, calldata(signature, *arguments))

    def ask_raw(self, contract: str, data: bytes) -> bytes:
        answer: str = self.rpc.call("eth_call", {"to": contract, "data": "0x" + data.hex()}, "latest")
        return bytes.fromhex(answer[2:])

    def data_of(self, profile: str, key: bytes) -> bytes:
        """Return the profile's value of a data key."""
        (value,) = abi_decode(["bytes"], self.ask(profile, "getData(bytes32)", key))
        return bytes(value)


@dataclass(frozen=True)
class Lsp15Wallet:
    """A wallet that knows the standard alone: LUKSO's library signs, and the relayer's base path is set."""

    private_key: str
    profile: str
    key_manager: str

    def body(self, side: Side, payload: bytes, **changes: int) -> dict[str, Any]:
        """Return the body of a call at the next nonce of the chain, signed for the chain."""
        (nonce,) = abi_decode(
            ["uint256"],
            side.ask(self.key_manager, "getNonce(address,uint128)", address_of(self.private_key), 0),
        )
        words: dict[str, Any] = {"chain_id": side.chain_id, "nonce": nonce, **changes}
        signature = official_signer.sign(
            self.private_key, key_manager=self.key_manager, payload=payload, **words
        )
        transaction = {"abi": "0x" + payload.hex(), "signature": signature, "nonce": nonce}
        return {"address": self.profile, "transaction": transaction}


@pytest.fixture
def sides(services: Services, far: FarChain, settle: Settle) -> tuple[Side, Side]:
    """Home and the other chain."""
    return (
        Side(services.rpc, services.chain_id, "/api/lsp15", settle),
        Side(far.rpc, far.chain_id, f"/api/lsp15/{far.chain_id}", far.settle),
    )


@pytest.fixture
def server(relayers: object, trusted: None, sides: tuple[Side, Side]) -> Wallet:
    """The server of a sponsor that pays for new profiles on both chains and gives them first credits for both."""
    sponsor = make_sponsor()
    elsewhere = sides[1].chain_id
    for_profiles(sponsor, first_credits=_FIRST_CREDITS, first_days=30, first_chain_ids=[elsewhere])
    for_profiles(sponsor, chain_id=elsewhere, position=1)
    return server_of(sponsor)


def _controllers(address: str) -> dict[str, Any]:
    return {"lsp6ControllerAddress": [address]}


def _salt_and_data(address: str) -> dict[str, Any]:
    """Return the other form, with data as LUKSO's wallets encode them."""
    delegate = CANONICAL.receiver_delegate
    pairs = [(bytes.fromhex(_CONTROLLERS_KEY), (2).to_bytes(16, "big"))]
    for place, (one, permissions) in enumerate(
        [(address, int(ALL_PERMISSIONS)), (delegate, _DELEGATE_PERMISSIONS)]
    ):
        element = bytes.fromhex(_CONTROLLERS_KEY)[:16] + place.to_bytes(16, "big")
        pairs.append((element, bytes.fromhex(one[2:])))
        pairs.append((bytes.fromhex(_PERMISSIONS_PREFIX + one[2:]), permissions.to_bytes(32, "big")))
    pairs.append((bytes.fromhex(_DELEGATE_KEY), bytes.fromhex(delegate[2:])))
    keys, values = [key for key, _ in pairs], [value for _, value in pairs]
    data = abi_encode(["bytes32[]", "bytes[]"], [keys, values])
    return {"salt": "0x" + secrets.token_hex(32), "postDeploymentCallData": "0x" + data.hex()}


def _created(server: Wallet, sides: tuple[Side, Side], body: dict[str, Any]) -> dict[str, Any]:
    """Ask for a profile on both chains; return the response once it is there."""
    response = server.post(PATH, body | {"chainIds": [side.chain_id for side in sides]})
    assert response.status == 200, response.body
    assert [side.settle() for side in sides] == [1, 1]
    ended = server.send("get", response.body["statusPath"]).body
    assert [(one["chainId"], one["status"]) for one in ended["chains"]] == [
        (side.chain_id, "Success") for side in sides
    ]
    return ended


def _computed(side: Side, transaction_hash: str) -> tuple[str, ...]:
    """Return the profile and the key manager that the factory computes for what was sent to it."""
    sent = side.rpc.call("eth_getTransactionByHash", transaction_hash)
    assert to_checksum_address(sent["to"]) == CANONICAL.factory
    terms = bytes.fromhex(sent["input"][2:])[4:]
    answer = side.ask_raw(CANONICAL.factory, selector(f"computeERC1167Addresses({_TERMS})") + terms)
    return tuple(to_checksum_address(one) for one in abi_decode(["address", "address"], answer))


def _proxy_of(implementation: str) -> str:
    """Return the code of a minimal proxy (ERC-1167)."""
    return f"0x363d3d373d3d3d363d73{implementation[2:].lower()}5af43d82803e903d91602b57fd5bf3"


@pytest.mark.parametrize("form", [_controllers, _salt_and_data])
def test_a_new_profile_has_the_factorys_address_on_both_chains_and_acts_by_an_unchanged_wallet(
    server: Wallet, sides: tuple[Side, Side], form: Callable[[str], dict[str, Any]]
) -> None:
    key = a_key()
    created = _created(server, sides, form(address_of(key)))
    profile, key_manager = created["universalProfileAddress"], created["keyManagerAddress"]
    for side, shown in zip(sides, created["chains"], strict=True):
        assert _computed(side, shown["transactionHash"]) == (profile, key_manager)
        codes = [side.rpc.call("eth_getCode", one, "latest") for one in (profile, key_manager)]
        assert codes == [_proxy_of(CANONICAL.universal_profile), _proxy_of(CANONICAL.key_manager)]
        assert abi_decode(["address"], side.ask(profile, "owner()")) == (key_manager.lower(),)
        assert abi_decode(["address"], side.ask(key_manager, "target()")) == (profile.lower(),)

    wallet, anonymous = Lsp15Wallet(key, profile, key_manager), Wallet(None, network_address())
    data_key = secrets.token_bytes(32)
    for side in sides:
        value = secrets.token_bytes(40)
        assert side.data_of(profile, data_key) == b""
        body = wallet.body(side, set_data_payload(value, key=data_key))
        relayed = anonymous.post(f"{side.base}/execute", body)
        assert relayed.status == 200, relayed.body
        assert side.settle() == 1
        assert side.data_of(profile, data_key) == value
        row = RelayTransaction.objects.get(transaction_hash=relayed.body["transactionHash"])
        assert (row.status, row.chain_id, row.profile_address) == ("Success", side.chain_id, profile)
    spent = sum(row.real_cost for row in RelayTransaction.objects.order_by("-pk")[:2])
    assert CreditAccount.objects.get(user__profile_address=profile).balance == _FIRST_CREDITS - spent
    assert_books_agree()


def test_what_an_unchanged_wallet_signs_for_one_chain_does_nothing_on_the_other(
    server: Wallet, sides: tuple[Side, Side]
) -> None:
    key = a_key()
    created = _created(server, sides, _controllers(address_of(key)))
    wallet = Lsp15Wallet(key, created["universalProfileAddress"], created["keyManagerAddress"])
    anonymous, data_key = Wallet(None, network_address()), secrets.token_bytes(32)
    # The first chain is home; on another one, home is asked whether it knows the signer.
    codes = ("signer-not-a-controller", "home-permission-missing")
    for here, there, code in zip(sides, sides[::-1], codes, strict=True):
        body = wallet.body(here, set_data_payload(key=data_key), chain_id=there.chain_id)
        before = everything()
        assert_problem(anonymous.post(f"{here.base}/execute", body), 403, code)
        assert everything() == before
        assert here.settle() == 0
        assert here.data_of(wallet.profile, data_key) == b""
