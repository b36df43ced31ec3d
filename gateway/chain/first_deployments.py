"""
Finds the call of LSP-23's factory that deployed a profile, by the factory's event.

Most nodes search the whole chain for an event of one profile. Others limit the range of blocks; then the block is
found first, by whether the profile had code at an earlier block, which takes a request for each halving of the chain.
Nothing that a node returns here is trusted: the addresses of a deployment follow from its data.
"""

from collections.abc import Callable, Sequence
from typing import Any

from eth_abi.abi import decode
from eth_abi.exceptions import DecodingError
from eth_hash.auto import keccak

from gateway.chain import responses
from gateway.chain.rpc import Call, MalformedResponse, RpcError
from gateway.common.fields import checksum
from signer.deployments import FACTORY, PRIMARY, SECONDARY, Deployment

_EVENT = keccak(f"DeployedERC1167Proxies(address,address,{PRIMARY},{SECONDARY},address,bytes)".encode())
# The latest block of a chain is below 2^40.
_MOST_HALVINGS = 40
Batch = Callable[[Sequence[Call]], list[Any]]


def find(batch: Batch, *, profile: str, head: int) -> Deployment | None:
    """
    Return the deployment of the profile; None if the node does not know it, or keeps too little of the past.

    Raises:
        NodeFault: the node did not respond, or not correctly.
    """
    (data,) = batch([_event_call(profile, 0, head)])
    if isinstance(data, RpcError):
        block = _block_of(batch, profile, head)
        (data,) = [None] if block is None else batch([_event_call(profile, block, block)])
    return _read(data) if isinstance(data, bytes) else None


def _block_of(batch: Batch, profile: str, head: int) -> int | None:
    """Return the first block after which the profile has code; None if the node does not keep the states."""
    lowest, highest = 0, head
    for _ in range(_MOST_HALVINGS):
        if lowest == highest:
            return highest
        middle = (lowest + highest) // 2
        (code,) = batch([_code_call(profile, middle)])
        if isinstance(code, RpcError):
            return None
        lowest, highest = (lowest, middle) if code else (middle + 1, highest)
    return None


def _accepts(_: RpcError) -> bool:
    # A range that is too wide has another code, and other words, at each provider.
    return True


def _event_call(profile: str, first: int, last: int) -> Call:
    topics = ["0x" + _EVENT.hex(), "0x" + profile[2:].lower().rjust(64, "0")]
    wanted = {"address": FACTORY, "topics": topics, "fromBlock": hex(first), "toBlock": hex(last)}
    return Call("eth_getLogs", [wanted], _event_data, _accepts, max_bytes=responses.LOGS_BYTES)


def _event_data(response: Any) -> bytes | RpcError | None:
    """Return the data of the only event; None if there is none."""
    if isinstance(response, RpcError):
        return response
    if not isinstance(response, list) or not all(isinstance(log, dict) for log in response):
        raise MalformedResponse("it is not a list of logs")
    return responses.octets(response[0].get("data")) if response else None


def _code_call(profile: str, block: int) -> Call:
    return Call(
        "eth_getCode", [profile, hex(block)], _octets_or_error, _accepts, max_bytes=responses.CODE_BYTES
    )


def _octets_or_error(response: Any) -> bytes | RpcError:
    return response if isinstance(response, RpcError) else responses.octets(response)


def _read(data: bytes) -> Deployment | None:
    try:
        primary, secondary, module, module_data = decode([PRIMARY, SECONDARY, "address", "bytes"], data)
    except DecodingError:
        return None
    return Deployment(primary[0], checksum(primary[2]), checksum(secondary[1]), checksum(module), module_data)
