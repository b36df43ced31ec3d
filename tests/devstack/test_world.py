"""The contracts of the dev chain behave as LUKSO's do on mainnet."""

import random
import secrets
from collections.abc import Sequence
from typing import Any

import pytest
from eth_abi.abi import decode
from eth_account import Account
from eth_account.messages import encode_intended_validator
from eth_utils.address import to_checksum_address
from eth_utils.crypto import keccak

from devstack.rpc import Rpc, RpcFailed
from devstack.services.stack import Services
from devstack.toolchain import artifact
from devstack.world.abi import calldata
from devstack.world.canonical import CANONICAL, deploy_canonical_contracts
from devstack.world.deployer import Call, Deployer, TransactionReverted
from devstack.world.keys import address_of, sign_digest, sign_transaction
from devstack.world.permissions import ALL_PERMISSIONS, Permission
from devstack.world.profiles import Controller, ControllerPlan, Profile, ProfilePlan

_PERMISSIONS_KEY = bytes.fromhex("4b80742de2bf82acb3630000")
_RECEIVER_KEY = bytes.fromhex("0cfc51aec37c55a4d0b1a65c6255c4bf2fbdf6277f3cc0730c45b828b6db8b47")


def ask(services: Services, answer_type: str, to: str, signature: str, *arguments: Any) -> Any:
    """Return the response of a view function."""
    data = "0x" + calldata(signature, *arguments).hex()
    raw = bytes.fromhex(services.rpc.call("eth_call", {"to": to, "data": data}, "latest")[2:])
    return decode([answer_type], raw)[0]


def relay_call(services: Services, profile: Profile, controller: Controller, payload: bytes) -> Call:
    """Return the signed LSP-25 call, ready for anyone to send."""
    manager = profile.key_manager_address
    nonce = ask(services, "uint256", manager, "getNonce(address,uint128)", controller.address, 0)
    words = b"".join(number.to_bytes(32, "big") for number in (25, services.chain_id, nonce, 0, 0))
    message = encode_intended_validator(manager, primitive=words + payload)
    signature = bytes(Account.sign_message(message, controller.private_key).signature)
    data = calldata("executeRelayCall(bytes,uint256,uint256,bytes)", signature, nonce, 0, payload)
    return Call(manager, data, gas=500_000)


def transfer(to: str, wei: int, data: bytes = b"") -> bytes:
    """Return the payload that sends value from a profile."""
    return calldata("execute(uint256,address,uint256,bytes)", 0, to, wei, data)


def test_a_profile_is_a_proxy_pair_whose_two_halves_name_each_other(services: Services) -> None:
    profile = services.world.create_profiles(ProfilePlan())[0]
    owner = ask(services, "address", profile.profile_address, "owner()")
    target = ask(services, "address", profile.key_manager_address, "target()")
    assert to_checksum_address(owner) == profile.key_manager_address
    assert to_checksum_address(target) == profile.profile_address
    for proxy, implementation in (
        (profile.profile_address, services.world.implementations.universal_profile),
        (profile.key_manager_address, services.world.implementations.key_manager),
    ):
        code = services.rpc.call("eth_getCode", proxy, "latest")
        assert code == f"0x363d3d373d3d3d363d73{implementation[2:].lower()}5af43d82803e903d91602b57fd5bf3"


def test_controllers_the_receiver_delegate_and_the_balance_are_as_planned(services: Services) -> None:
    signer = ControllerPlan(permissions=Permission.SIGN)
    profile = services.world.create_profiles(ProfilePlan((ControllerPlan(), signer), balance_wei=7))[0]
    for controller, expected in zip(profile.controllers, (ALL_PERMISSIONS, Permission.SIGN), strict=True):
        key = _PERMISSIONS_KEY + bytes.fromhex(controller.address[2:])
        value = ask(services, "bytes", profile.profile_address, "getData(bytes32)", key)
        assert int.from_bytes(value, "big") == expected
    delegate = ask(services, "bytes", profile.profile_address, "getData(bytes32)", _RECEIVER_KEY)
    assert to_checksum_address(delegate) == services.world.implementations.receiver_delegate
    assert int(services.rpc.call("eth_getBalance", profile.profile_address, "latest"), 16) == 7


def test_a_hundred_profiles_are_created_in_one_batch_each_with_its_own_key(services: Services) -> None:
    profiles = services.world.create_profiles(*(ProfilePlan() for _ in range(100)))
    assert len({profile.profile_address for profile in profiles}) == 100
    assert len({profile.controller.private_key for profile in profiles}) == 100
    assert all(ask(services, "address", item.key_manager_address, "target()") for item in profiles[::33])


class ForgetfulNode(Rpc):
    """The node, but one of the first transactions that it gets together never arrives."""

    lost: str | None = None

    def batch(self, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
        if self.lost or calls[0][0] != "eth_sendRawTransaction":
            return super().batch(calls)
        place = random.randrange(len(calls) - 1)
        self.lost = "0x" + keccak(hexstr=calls[place][1]).hex()
        results = super().batch([call for index, call in enumerate(calls) if index != place])
        return [*results[:place], self.lost, *results[place:]]


def test_the_deployer_resends_transactions_that_the_node_holds_back_and_none_twice(
    services: Services,
) -> None:
    node = ForgetfulNode(services.rpc_url)
    deployer = Deployer(node, "0x" + secrets.token_hex(32))
    friends = [to_checksum_address(secrets.token_bytes(20)) for _ in range(5)]
    receipts = deployer.send([Call(friend, value=3) for friend in friends])
    assert node.lost is not None
    assert [to_checksum_address(receipt["to"]) for receipt in receipts] == friends
    assert {int(node.call("eth_getBalance", friend, "latest"), 16) for friend in friends} == {3}
    assert int(node.call("eth_getTransactionCount", deployer.address, "latest"), 16) == 5


def test_a_relay_call_signed_by_a_controller_executes_on_the_real_key_manager(services: Services) -> None:
    profile = services.world.create_profiles(ProfilePlan())[0]
    friend, wei = to_checksum_address(secrets.token_bytes(20)), secrets.randbelow(10**17) + 1
    call = relay_call(services, profile, profile.controller, transfer(friend, wei))
    receipt = services.world.deployer.send([call])[0]
    assert receipt["status"] == "0x1"
    assert int(services.rpc.call("eth_getBalance", friend, "latest"), 16) == wei
    with pytest.raises(TransactionReverted):  # the relay nonce is used up
        services.world.deployer.send([call])


def test_a_flipped_target_makes_a_relay_call_revert_that_was_fine_before(services: Services) -> None:
    flaky = services.world.deploy_flaky()
    profile = services.world.create_profiles(ProfilePlan())[0]
    call = relay_call(services, profile, profile.controller, transfer(flaky.address, 1))
    services.rpc.call("eth_call", {"to": call.to, "data": "0x" + call.data.hex()}, "latest")
    flaky.flip()
    with pytest.raises(TransactionReverted):
        services.world.deployer.send([call])
    flaky.flip()
    services.world.deployer.send([call])
    assert flaky.successes == 1


def test_an_impostor_claims_its_own_identity_and_accepts_every_signature(services: Services) -> None:
    impostor = services.world.deploy_impostor()
    assert to_checksum_address(ask(services, "address", impostor, "owner()")) == impostor
    assert to_checksum_address(ask(services, "address", impostor, "target()")) == impostor
    magic = ask(services, "bytes4", impostor, "isValidSignature(bytes32,bytes)", b"\7" * 32, b"no signature")
    assert magic.hex() == "1626ba7e"
    assert ask(services, "bool", impostor, "supportsInterface(bytes4)", b"\x24\x87\x1b\x3d")
    assert ask(services, "bytes", impostor, "getData(bytes32)", b"\7" * 32) == b"\xff" * 32


def test_a_stray_key_manager_points_at_a_profile_that_does_not_know_it(services: Services) -> None:
    profile = services.world.create_profiles(ProfilePlan())[0]
    stray = services.world.deploy_stray_key_manager(profile.profile_address)
    assert to_checksum_address(ask(services, "address", stray, "target()")) == profile.profile_address
    owner = ask(services, "address", profile.profile_address, "owner()")
    assert to_checksum_address(owner) == profile.key_manager_address != stray


def test_an_untrusted_profile_works_without_being_a_proxy(services: Services) -> None:
    profile = services.world.deploy_untrusted_profile()
    code = services.rpc.call("eth_getCode", profile.profile_address, "latest")
    assert not code.startswith("0x363d3d373d3d3d363d73")
    friend = to_checksum_address(secrets.token_bytes(20))
    services.world.deployer.send([relay_call(services, profile, profile.controller, transfer(friend, 5))])
    assert int(services.rpc.call("eth_getBalance", friend, "latest"), 16) == 5


def test_permissions_are_listed_by_name() -> None:
    assert (Permission.SIGN | Permission.CALL).names == ["CALL", "SIGN"]


def test_keys_are_addressed_and_sign_as_with_eth_account() -> None:
    private_key, digest = "0x" + secrets.token_hex(32), secrets.token_bytes(32)
    fields = {
        "chainId": 42,
        "nonce": 7,
        "maxPriorityFeePerGas": 1,
        "maxFeePerGas": 10**9,
        "gas": 21_000,
        "to": secrets.token_bytes(20),
        "value": 5,
        "data": b"\x01\x02",
    }
    account = Account.from_key(private_key)
    assert address_of(private_key) == account.address
    assert sign_digest(private_key, digest) == account.unsafe_sign_hash(digest).signature
    signed = account.sign_transaction({"type": 2, **fields})
    assert sign_transaction(private_key, fields) == signed.raw_transaction.to_0x_hex()


def test_transactions_are_mined_also_where_the_base_fee_is_that_of_blocks_that_never_were(
    services: Services,
) -> None:
    snapshot = services.rpc.call("evm_snapshot")
    services.rpc.call("anvil_setNextBlockBaseFeePerGas", hex(100 * 10**9))
    services.rpc.call("evm_mine")
    services.rpc.call("evm_revert", snapshot)
    deployer = services.world.deployer
    assert len(deployer.send([Call(deployer.address)])) == 1
    # Empty blocks make it cheap again for the tests to come.
    services.rpc.call("anvil_mine", hex(60))


def test_the_contracts_have_the_addresses_and_the_code_that_they_have_on_every_chain(
    services: Services,
) -> None:
    contracts = {
        CANONICAL.universal_profile: "UniversalProfileInit",
        CANONICAL.key_manager: "LSP6KeyManagerInit",
        CANONICAL.receiver_delegate: "LSP1UniversalReceiverDelegateUP",
        CANONICAL.post_deployment_module: "UniversalProfileInitPostDeploymentModule",
    }
    assert services.world.implementations == CANONICAL
    for address, name in contracts.items():
        assert services.rpc.call("eth_getCode", address, "latest") == artifact(name)["deployedBytecode"]
    # The hash of the factory's sources is that of the deployed build.
    factory = services.rpc.call("eth_getCode", CANONICAL.factory, "latest")
    assert factory[:-104] == artifact("LSP23LinkedContractsFactory")["deployedBytecode"][:-104]


@pytest.mark.parametrize("name", ["universal_profile", "key_manager", "post_deployment_module"])
def test_no_stranger_initializes_an_implementation(services: Services, name: str) -> None:
    data = "0x" + calldata("initialize(address)", to_checksum_address(secrets.token_bytes(20))).hex()
    with pytest.raises(RpcFailed, match="already initialized"):
        services.rpc.call("eth_call", {"to": getattr(CANONICAL, name), "data": data}, "latest")


def test_contracts_that_a_chain_has_are_not_deployed_again(services: Services) -> None:
    another = Deployer(services.rpc, "0x" + secrets.token_hex(32))
    assert deploy_canonical_contracts(another) == CANONICAL
    assert int(services.rpc.call("eth_getTransactionCount", another.address, "latest"), 16) == 0
