"""
Simulated calls whose sender has too few coins for the node.

A simulated call costs nothing, and its sender is often a contract, such as a profile's key manager. Most nodes
therefore ignore the sender's balance. Some refuse the call before they execute it. Their error is about the request,
but the service chose the sender, so it is neither the contract's failure nor the caller's: the node gets the call once
more, with coins for its sender by a state override.
"""

from typing import Any

from gateway.chain.node_errors import is_sender_short
from gateway.chain.rpc import Call, RpcError

_SIMULATE, _OVERRIDES_AT = "eth_simulateV1", 2
_METHODS = frozenset({"eth_call", "eth_estimateGas", _SIMULATE})
_ZERO_ADDRESS = "0x" + "00" * 20
_BALANCE = {"balance": hex(2**100)}


def is_short_of_funds(call: Call, error: RpcError) -> bool:
    """Return whether the node refuses to simulate the call because of its sender's balance."""
    return call.method in _METHODS and is_sender_short(error)


def with_funds(call: Call) -> Call:
    """Return the simulated call with coins for its sender."""
    if call.method != _SIMULATE:
        fields, block, *others = call.params
        overrides = others[0] if others else {}
        return call._replace(params=[fields, block, _funded(fields, overrides), *others[1:]])
    simulation, *rest = call.params
    blocks = [_block_with_funds(block) for block in simulation["blockStateCalls"]]
    return call._replace(params=[simulation | {"blockStateCalls": blocks}, *rest])


def _block_with_funds(block: dict[str, Any]) -> dict[str, Any]:
    overrides = block.get("stateOverrides", {})
    for fields in block["calls"]:
        overrides = _funded(fields, overrides)
    return block | {"stateOverrides": overrides}


def _funded(fields: dict[str, Any], overrides: dict[str, Any]) -> dict[str, Any]:
    sender = fields.get("from", _ZERO_ADDRESS)
    return overrides | {sender: overrides.get(sender, {}) | _BALANCE}
