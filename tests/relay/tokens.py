"""Tokens and follows on the dev chain."""

import secrets

from eth_abi.abi import encode
from eth_utils.crypto import keccak

from devstack.services.stack import Services
from devstack.toolchain import creation_code
from devstack.world.abi import calldata
from devstack.world.deployer import Call
from gateway.chain.contracts import FOLLOWER_SYSTEM

_CREATED = ["string", "string", "address", "uint256", "uint256"]
# `isFollowing` of LSP-26: answers what storage has at the hash of its two arguments.
_FOLLOWER_SYSTEM = "0x6040600460003760406000205460005260206000f3"


def deploy_fungible(services: Services, *, holder: str, amount: int) -> str:
    """Deploy an LSP-7 token of which the holder has this amount; return its address."""
    token = _deploy(services, "LSP7Mintable")
    _send(services, token, calldata("mint(address,uint256,bool,bytes)", holder, amount, True, b""))
    return token


def deploy_collection(services: Services, *, holder: str, number: int) -> str:
    """Deploy an LSP-8 collection of which the holder has this number of tokens; return its address."""
    collection = _deploy(services, "LSP8Mintable")
    for _ in range(number):
        token_id = secrets.token_bytes(32)
        _send(services, collection, calldata("mint(address,bytes32,bool,bytes)", holder, token_id, True, b""))
    return collection


def follow(services: Services, *, follower: str, followed: str) -> None:
    """Have one profile follow another in a contract that answers like LSP-26's."""
    slot = keccak(encode(["address", "address"], [follower, followed]))
    services.rpc.call("anvil_setCode", FOLLOWER_SYSTEM, _FOLLOWER_SYSTEM)
    services.rpc.call("anvil_setStorageAt", FOLLOWER_SYSTEM, "0x" + slot.hex(), "0x" + "1".zfill(64))


def _deploy(services: Services, name: str) -> str:
    deployer = services.world.deployer
    arguments = encode(_CREATED, ["Token", "T", deployer.address, 0, 0])
    return deployer.deploy(creation_code(name) + arguments)[0]


def _send(services: Services, to: str, data: bytes) -> None:
    services.world.deployer.send([Call(to, data)])
