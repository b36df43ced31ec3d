"""Tokens and follows on the dev chain."""

import secrets

from eth_abi.abi import encode

from devstack.services.stack import Services
from devstack.toolchain import artifact, creation_code
from devstack.world.abi import calldata
from devstack.world.deployer import Call
from gateway.chain.contracts import FOLLOWER_SYSTEM

_CREATED = ["string", "string", "address", "uint256", "uint256"]


def deploy_fungible(services: Services, *, holder: str, amount: int) -> str:
    """Deploy an LSP-7 token of which the holder has this amount; return its address."""
    token = _deploy(services, "LSP7Mintable")
    mint(services, token, holder=holder, amount=amount)
    return token


def mint(services: Services, token: str, *, holder: str, amount: int) -> None:
    """Give the holder more of an LSP-7 token."""
    _send(services, token, calldata("mint(address,uint256,bool,bytes)", holder, amount, True, b""))


def deploy_collection(services: Services, *, holder: str, number: int) -> str:
    """Deploy an LSP-8 collection of which the holder has this number of tokens; return its address."""
    collection = _deploy(services, "LSP8Mintable")
    for _ in range(number):
        token_id = secrets.token_bytes(32)
        _send(services, collection, calldata("mint(address,bytes32,bool,bytes)", holder, token_id, True, b""))
    return collection


def follow(services: Services, *, follower: str, followed: str) -> None:
    """Have one address follow another in the contract of LSP-26."""
    _as_follower(services, follower, calldata("follow(address)", followed))


def unfollow(services: Services, *, follower: str, followed: str) -> None:
    """Have one address follow another no longer."""
    _as_follower(services, follower, calldata("unfollow(address)", followed))


def _as_follower(services: Services, sender: str, data: bytes) -> None:
    """Send a transaction of any address, which gets LYX for the gas, to the contract at its address on every chain."""
    rpc = services.rpc
    services.world.fund(10**18, sender)
    rpc.call("anvil_setCode", FOLLOWER_SYSTEM, artifact("LSP26FollowerSystem")["deployedBytecode"])
    rpc.call("anvil_impersonateAccount", sender)
    call = {
        "from": sender,
        "to": FOLLOWER_SYSTEM,
        "data": "0x" + data.hex(),
        "gas": hex(500_000),
        "gasPrice": hex(10**10),
    }
    sent = rpc.call("eth_sendTransaction", call)
    rpc.call("evm_mine")
    assert rpc.call("eth_getTransactionReceipt", sent)["status"] == "0x1"


def _deploy(services: Services, name: str) -> str:
    deployer = services.world.deployer
    arguments = encode(_CREATED, ["Token", "T", deployer.address, 0, 0])
    return deployer.deploy(creation_code(name) + arguments)[0]


def _send(services: Services, to: str, data: bytes) -> None:
    services.world.deployer.send([Call(to, data)])
