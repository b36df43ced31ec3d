"""The calldata for LSP-23's factory, against the factory itself."""

import random
import secrets

import pytest
from eth_abi.abi import decode as abi_decode
from eth_abi.abi import encode as abi_encode
from eth_utils.address import to_checksum_address

from devstack.rpc import RpcFailed
from devstack.services.stack import Services
from devstack.world.abi import selector
from devstack.world.canonical import CANONICAL
from signer import deployments
from signer.deployments import Deployment

_PRIMARY, _SECONDARY = "(bytes32,uint256,address,bytes)", "(uint256,address,bytes,bool,bytes)"


def an_address() -> str:
    return to_checksum_address(secrets.token_bytes(20))


def entries() -> list[tuple[bytes, bytes]]:
    return [
        (secrets.token_bytes(32), secrets.token_bytes(random.randrange(70)))
        for _ in range(random.randrange(5))
    ]


def a_deployment(data: bytes | None = None) -> Deployment:
    if data is None:
        data = deployments.encode_entries(entries())
    return Deployment(secrets.token_bytes(32), an_address(), an_address(), an_address(), data)


def test_calldata_is_what_an_abi_encoder_gives_and_reads_back() -> None:
    for _ in range(50):
        deployment = a_deployment(secrets.token_bytes(random.randrange(200)))
        initialize = selector("initialize(address)")
        primary = (
            deployment.salt,
            0,
            deployment.profile,
            initialize + bytes(12) + bytes.fromhex(deployment.module[2:]),
        )
        secondary = (0, deployment.key_manager, initialize, True, b"")
        arguments = abi_encode(
            [_PRIMARY, _SECONDARY, "address", "bytes"],
            [primary, secondary, deployment.module, deployment.module_data],
        )
        calldata = deployments.encode(deployment)
        assert calldata.hex() == (bytes.fromhex("6a66a753") + arguments).hex()
        assert deployments.decode(calldata) == deployment


def test_a_changed_byte_is_another_deployment_or_none() -> None:
    calldata = deployments.encode(a_deployment())
    for at in random.sample(range(len(calldata)), 200):
        changed = bytearray(calldata)
        changed[at] ^= random.randrange(1, 256)
        decoded = deployments.decode(bytes(changed))
        assert decoded is None or deployments.encode(decoded) == bytes(changed)
    # No value of ether: the two words of the fundings.
    for word in (5, 11):
        changed = bytearray(calldata)
        changed[4 + 32 * word + 31] = 1
        assert deployments.decode(bytes(changed)) is None
    assert deployments.decode(calldata + bytes(32)) is None
    assert deployments.decode(calldata[:-32]) is None


def test_entries_are_what_an_abi_encoder_gives_and_read_back() -> None:
    for _ in range(50):
        pairs = entries()
        data = deployments.encode_entries(pairs)
        keys, values = [key for key, _ in pairs], [value for _, value in pairs]
        assert data == abi_encode(["bytes32[]", "bytes[]"], [keys, values])
        assert deployments.decode_entries(data) == pairs


def test_entries_with_any_other_encoding_do_not_read() -> None:
    pairs = [(secrets.token_bytes(32), secrets.token_bytes(20)) for _ in range(3)]
    data = deployments.encode_entries(pairs)
    keys, values = [key for key, _ in pairs], [value for _, value in pairs]
    assert deployments.decode_entries(abi_encode(["bytes32[]", "bytes[]"], [keys[:2], values])) is None
    assert deployments.decode_entries(abi_encode(["bytes32[]", "bytes[]"], [keys, values[:2]])) is None
    for other in (b"", data[:-1], data[:-32], data + b"\0", bytes(len(data)), b"\xff" * len(data)):
        assert deployments.decode_entries(other) is None
    # Padding that is not zero.
    assert deployments.decode_entries(data[:-1] + b"\1") is None


def test_the_addresses_are_those_of_the_factorys_own_computation(services: Services) -> None:
    compute = selector(f"computeERC1167Addresses({_PRIMARY},{_SECONDARY},address,bytes)")
    for _ in range(20):
        deployment = a_deployment()
        data = "0x" + (compute + deployments.encode(deployment)[4:]).hex()
        answer = services.rpc.call("eth_call", {"to": deployments.FACTORY, "data": data}, "latest")
        profile, key_manager = abi_decode(["address", "address"], bytes.fromhex(answer[2:]))
        assert deployments.addresses_of(deployment) == (
            to_checksum_address(profile),
            to_checksum_address(key_manager),
        )


def test_the_factory_deploys_what_the_calldata_says(services: Services) -> None:
    deployment = Deployment(
        secrets.token_bytes(32),
        deployments.PROFILE,
        deployments.KEY_MANAGER,
        deployments.MODULE,
        deployments.encode_entries([(secrets.token_bytes(32), b"value")]),
    )
    call = {"to": deployments.FACTORY, "data": "0x" + deployments.encode(deployment).hex()}
    answer = services.rpc.call("eth_call", call, "latest")
    profile, key_manager = abi_decode(["address", "address"], bytes.fromhex(answer[2:]))
    addresses = deployments.addresses_of(deployment)
    assert (to_checksum_address(profile), to_checksum_address(key_manager)) == addresses
    untaken = deployment._replace(profile=an_address())
    with pytest.raises(RpcFailed):
        services.rpc.call("eth_call", call | {"data": "0x" + deployments.encode(untaken).hex()}, "latest")


def test_the_addresses_are_those_of_the_contracts_on_every_chain() -> None:
    assert (
        CANONICAL.universal_profile,
        CANONICAL.key_manager,
        CANONICAL.factory,
        CANONICAL.post_deployment_module,
        CANONICAL.receiver_delegate,
    ) == (
        deployments.PROFILE,
        deployments.KEY_MANAGER,
        deployments.FACTORY,
        deployments.MODULE,
        deployments.RECEIVER_DELEGATE,
    )
