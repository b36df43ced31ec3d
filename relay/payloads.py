"""
Decodes what a relay call does from its payload: the profile's actions, with the names of well-known methods.

Callers sign payloads, which may contain anything, so a part that does not decode becomes an action without a name.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from eth_utils.abi import function_signature_to_4byte_selector

from gateway.chain.functions import WELL_KNOWN
from gateway.common.fields import checksum
from signer.deployments import DEPLOY

_WORD, _ADDRESS_BYTES = 32, 20
# The number of actions named in a batch. Batches inside batches are not decoded.
MOST_ACTIONS = 5


@dataclass(frozen=True, slots=True)
class Action:
    """
    One thing that a call does.

    `send` moves the chain's currency, `call` calls `method` of the contract `to`, `write` sets data keys of the
    profile, `deploy` creates a contract, `manage` calls `method` of the profile itself, `create` creates the profile.
    `method` is empty if the name is unknown. `recipient` is the address that the method names as receiver.
    """

    action: Literal["send", "call", "write", "deploy", "manage", "create"]
    to: str | None = None
    value_wei: int = 0
    method: str = ""
    recipient: str | None = None


@dataclass(frozen=True, slots=True)
class _Method:
    name: str
    # The place of the receiver among the arguments, -1 for none.
    receiver: int


# Functions with the profile's own data (ERC-725Y) are recognised before these.
_KNOWN = {
    function_signature_to_4byte_selector(signature): _Method(signature.partition("(")[0], receiver)
    for signature, receiver in WELL_KNOWN.items()
}
_EXECUTE, _EXECUTE_BATCH, _SET_DATA, _SET_DATA_BATCH = (
    function_signature_to_4byte_selector(signature)
    for signature in (
        "execute(uint256,address,uint256,bytes)",
        "executeBatch(uint256[],address[],uint256[],bytes[])",
        "setData(bytes32,bytes)",
        "setDataBatch(bytes32[],bytes[])",
    )
)
_CREATIONS = (1, 2)


class _Malformed(Exception):
    """An offset or a length in the payload points beyond its end."""


def actions_of(payload: bytes) -> list[Action]:
    """Return the profile's actions in order; at most MOST_ACTIONS + 1, so that callers can tell that there are more."""
    selector, body = payload[:4], payload[4:]
    try:
        if selector == _EXECUTE:
            operation, target, value, offset = (_number(body, place) for place in range(4))
            return [_executed(operation, target, value, _bytes_at(body, offset))]
        if selector == _EXECUTE_BATCH:
            return list(_batch(body))
    except _Malformed:
        return [Action("manage")]
    if selector == DEPLOY:
        return [Action("create")]
    if selector in (_SET_DATA, _SET_DATA_BATCH):
        return [Action("write")]
    known = _KNOWN.get(selector)
    return [Action("manage", method=known.name if known else "")] if payload else []


def told(payload: bytes, *, currency: str) -> str:
    """Return the actions as JSON, in the names of the API's timeline, for the script that tells them in words."""
    actions = actions_of(payload)
    shown = [
        {
            "action": action.action,
            "to": action.to,
            "valueWei": str(action.value_wei),
            "method": action.method,
            "recipient": action.recipient,
        }
        for action in actions[:MOST_ACTIONS]
    ]
    more = len(actions) > MOST_ACTIONS
    return json.dumps({"actions": shown, "hasMoreActions": more, "currency": currency})


def _batch(body: bytes) -> Iterator[Action]:
    operations, targets, values, datas = (body[_number(body, place) :] for place in range(4))
    for place in range(min(_number(operations, 0), MOST_ACTIONS + 1)):
        elements = datas[_WORD:]
        data = _bytes_at(elements, _number(elements, place))
        operation, target, value = (_number(each, 1 + place) for each in (operations, targets, values))
        yield _executed(operation, target, value, data)


def _executed(operation: int, target: int, value_wei: int, data: bytes) -> Action:
    if operation in _CREATIONS:
        return Action("deploy", value_wei=value_wei)
    to = _address(target)
    if not data:
        return Action("send", to=to, value_wei=value_wei, recipient=to)
    known = _KNOWN.get(data[:4])
    if known is None:
        return Action("call", to=to, value_wei=value_wei)
    receiver = _receiver(data[4:], known.receiver)
    return Action("call", to=to, value_wei=value_wei, method=known.name, recipient=receiver)


def _receiver(arguments: bytes, place: int) -> str | None:
    try:
        return None if place < 0 else _address(_number(arguments, place))
    except _Malformed:
        return None


def _number(body: bytes, place: int) -> int:
    word = body[place * _WORD : (place + 1) * _WORD]
    if len(word) != _WORD:
        raise _Malformed
    return int.from_bytes(word, "big")


def _bytes_at(body: bytes, offset: int) -> bytes:
    part = body[offset:]
    return part[_WORD : _WORD + _number(part, 0)]


def _address(word: int) -> str:
    return checksum("0x" + (word % 2 ** (8 * _ADDRESS_BYTES)).to_bytes(_ADDRESS_BYTES, "big").hex())
