"""
JSON-RPC: batches, their answers, and what errors mean.

JSON-RPC gives most errors the code -32000 or one of the client's own, so the words of geth,
erigon, nethermind, reth and anvil decide what an error means.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.chain.errors import NodeUnavailable
from gateway.chain.types import Head, SendKind, SendOutcome

RETRY_AFTER_SECONDS = 2

Call = tuple[str, list[Any]]


@dataclass(frozen=True, slots=True)
class RpcError:
    """The error that a node answered to one call of a batch."""

    code: int
    message: str
    data: Any = None


class NodeFault(Exception):
    """One node failed; the text names the kind of failure and no part of the URL."""


def unreadable() -> NodeUnavailable:
    """Return the error to raise for a malformed answer."""
    return NodeUnavailable("The chain node gave no usable answer.", retry_after=RETRY_AFTER_SECONDS)


def request_body(calls: Sequence[Call]) -> bytes:
    """Return the batch that asks these calls."""
    envelopes = [
        {"jsonrpc": "2.0", "id": place, "method": method, "params": params}
        for place, (method, params) in enumerate(calls)
    ]
    return json.dumps(envelopes, separators=(",", ":")).encode()


def replies(body: bytes, count: int, accepts: Callable[[RpcError], bool]) -> list[Any]:
    """
    Return the result of each call of a batch, or the error that `accepts` lets pass, in order.

    Raises:
        NodeFault: the body is no answer to the batch, or has another error.
    """
    try:
        answers = json.loads(body)
    except ValueError as error:
        raise NodeFault("not JSON") from error
    if not isinstance(answers, list):
        raise NodeFault("no batch in the answer")
    by_id = {answer["id"]: answer for answer in answers if isinstance(answer, dict) and "id" in answer}
    if any(place not in by_id for place in range(count)):
        raise NodeFault("answers are missing")
    return [_reply(by_id[place], accepts) for place in range(count)]


def _reply(answer: dict[str, Any], accepts: Callable[[RpcError], bool]) -> Any:
    fields = answer.get("error")
    if fields is None:
        return answer.get("result")
    if not isinstance(fields, dict) or not isinstance(fields.get("code"), int):
        raise NodeFault("an error without a code")
    error = RpcError(code=fields["code"], message=str(fields.get("message", "")), data=fields.get("data"))
    if not accepts(error):
        raise NodeFault(f"JSON-RPC error {error.code}")
    return error


_MESSAGE_CHARACTERS = 200
METHOD_NOT_FOUND, INVALID_PARAMS = -32601, -32602
# geth's, while nothing is final yet.
_UNKNOWN_BLOCK = -39001
_REVERT_CODES = frozenset({3, -32015})
_RATE_LIMIT_CODES = frozenset({-32005, -32016, -32029, 429})

# The first match decides. Only words known to mean "never" end a call; after others it is sent again.
_SEND_ERRORS: tuple[tuple[re.Pattern[str], SendKind], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), kind)
    for kind, pattern in (
        (SendKind.ACCEPTED, r"already ?known|^known transaction|already imported|existing tx with same hash"),
        (SendKind.NONCE_TOO_LOW, r"nonce (is )?too low|old ?nonce|nonce has already been used|^mined$"),
        # About the pool's room or the order of arrival, not the transaction: the same bytes may fit later.
        (
            SendKind.UNREACHABLE,
            r"pool is full|account limit|spammer|nonce (is )?too (high|far)|tries to replace",
        ),
        (SendKind.UNREACHABLE, r"nonce ?gap|too distant|lower nonce|indexing"),
        (
            SendKind.UNDERPRICED,
            r"underpriced|fee ?too ?low|replace existing|replaced by|replacement ?not ?allowed",
        ),
        (SendKind.UNDERPRICED, r"less than (the )?block base ?fee|below (the )?(chain |configured )?minimum"),
        (SendKind.UNREACHABLE, r"rate limit|too many requests|time(d )?out|temporar|unavailable|syncing"),
        (SendKind.UNREACHABLE, r"internal error|header not found|missing trie node|resource not found"),
        (SendKind.REFUSED, r"insufficient ?(funds|balance)|exceeds (the )?configured cap|intrinsic ?gas"),
        (SendKind.REFUSED, r"exceeds (the )?block gas ?limit|gas limit reached|higher than max fee per gas"),
        (SendKind.REFUSED, r"invalid ?(sender|signature|chain ?id)|failed to decode"),
        (SendKind.REFUSED, r"type not supported|oversized data|max initcode"),
    )
)
_EXECUTION = re.compile(
    r"revert|out ?of ?gas|gas required exceeds|invalid ?opcode|stack ?(under|over)flow|invalid ?jump|"
    r"vm execution error|evm error|intrinsic gas|gas uint64 overflow|write protection|bad instruction",
    re.IGNORECASE,
)
_HEX = re.compile(r"0x(?:[0-9a-fA-F]{2})*")


def send_outcome(reply: Any) -> SendOutcome:
    """Return what the reply to `eth_sendRawTransaction` means; after unknown words the bytes are sent again."""
    if not isinstance(reply, RpcError):
        return SendOutcome(SendKind.ACCEPTED, "")
    message = reply.message[:_MESSAGE_CHARACTERS]
    for pattern, kind in _SEND_ERRORS:
        if pattern.search(reply.message):
            return SendOutcome(kind, message)
    return SendOutcome(SendKind.UNREACHABLE, message)


def is_send_error(error: RpcError) -> bool:
    """Return whether the error is about the transaction that was sent, and not about how often we ask."""
    return error.code not in _RATE_LIMIT_CODES


def is_call_error(error: RpcError) -> bool:
    """Return whether an error on reading is the answer: the contract failed, or the node lacks the method."""
    if error.code in _RATE_LIMIT_CODES:
        return False
    return (
        error.code in _REVERT_CODES
        or error.code == METHOD_NOT_FOUND
        or bool(_EXECUTION.search(error.message))
    )


def is_block_error(error: RpcError) -> bool:
    """Return whether the error is the answer to a request for a block: the node does not know that name for one."""
    return error.code in {INVALID_PARAMS, _UNKNOWN_BLOCK}


def revert_data(error: RpcError) -> bytes:
    """Return what the contract returned when it reverted; empty if the node does not show it."""
    # geth, erigon, reth and anvil put the hex text there, nethermind "Reverted 0x…", some proxies an object.
    text = error.data.get("data") if isinstance(error.data, dict) else error.data
    match = _HEX.search(text) if isinstance(text, str) else None
    return bytes.fromhex(match.group()[2:]) if match else b""


def quantity(reply: Any) -> int:
    """
    Return the number that the node must have answered (a QUANTITY of JSON-RPC).

    Raises:
        NodeUnavailable: it answered something else.
    """
    if not isinstance(reply, str):
        raise unreadable()
    try:
        return int(reply, 16)
    except ValueError as error:
        raise unreadable() from error


def quantities(values: Iterable[Any]) -> list[int]:
    """
    Return the numbers that the node must have answered.

    Raises:
        NodeUnavailable: one of them is something else.
    """
    return [quantity(value) for value in values]


def octets(reply: Any) -> bytes:
    """
    Return the bytes that the node must have answered (DATA of JSON-RPC).

    Raises:
        NodeUnavailable: it answered something else.
    """
    if not isinstance(reply, str):
        raise unreadable()
    try:
        return bytes.fromhex(reply.removeprefix("0x"))
    except ValueError as error:
        raise unreadable() from error


def member(reply: Any, name: str) -> Any:
    """
    Return a member of the object that the node must have answered.

    Raises:
        NodeUnavailable: it answered something else.
    """
    if not isinstance(reply, dict) or name not in reply:
        raise unreadable()
    return reply[name]


def head_of(block: Any) -> Head:
    """
    Read a block.

    Raises:
        NodeUnavailable: the node answered something else.
    """
    return Head(
        number=quantity(member(block, "number")),
        timestamp=quantity(member(block, "timestamp")),
        base_fee_wei=quantity(member(block, "baseFeePerGas")),
        block_hash=str(member(block, "hash")).lower(),
    )
