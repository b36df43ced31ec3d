"""
Read a node's JSON answers into values.

A contract may answer nonsense, which reads as None, empty or 0. The node itself must
answer correctly; anything else raises `NodeUnavailable`.
"""

from dataclasses import dataclass
from typing import Any

from gateway.chain.states import ExternalExecution, Head, Receipt
from gateway.chain.transport import RpcError, unreadable
from gateway.common.fields import checksum

_WORD = 32
# The event's own topic and its three indexed members.
_VERIFIED_TOPICS = 4


def number(reply: Any) -> int:
    """Read a quantity that the node must return."""
    if not isinstance(reply, str):
        raise unreadable()
    try:
        return int(reply, 16)
    except ValueError as error:
        raise unreadable() from error


def octets(reply: Any) -> bytes:
    """Read bytes that the node must return."""
    if not isinstance(reply, str):
        raise unreadable()
    try:
        return bytes.fromhex(reply.removeprefix("0x"))
    except ValueError as error:
        raise unreadable() from error


def returned(reply: Any) -> bytes:
    """Read what a contract returned; empty if it reverted."""
    return b"" if isinstance(reply, RpcError) else octets(reply)


def returned_address(reply: Any) -> str | None:
    """Read one returned address; None if the contract reverted or returned something else."""
    word = returned(reply)
    if len(word) != _WORD or any(word[:12]):
        return None
    return checksum("0x" + word[12:].hex())


def returned_word(reply: Any) -> bytes | None:
    """Read one returned 32-byte word; None if the contract reverted or returned something else."""
    word = returned(reply)
    return word if len(word) == _WORD else None


def returned_permissions(reply: Any) -> int:
    """Read LSP-6 bits from the bytes of `getData` as key managers do: the first 32 bytes, zeros to the right."""
    data = returned(reply)
    offset = int.from_bytes(data[:_WORD], "big")
    length = int.from_bytes(data[offset : offset + _WORD], "big")
    value = data[offset + _WORD : offset + _WORD + length]
    if len(data) < 2 * _WORD or len(value) != length:
        return 0
    return int.from_bytes(value[:_WORD].ljust(_WORD, b"\0"), "big")


def head(reply: Any) -> Head:
    """Read a block."""
    return Head(
        number=number(_member(reply, "number")),
        timestamp=number(_member(reply, "timestamp")),
        base_fee_wei=number(_member(reply, "baseFeePerGas")),
    )


def receipt(reply: Any) -> Receipt | None:
    """Read a receipt; None if the node has none."""
    if reply is None:
        return None
    return Receipt(
        transaction_hash=_text(reply, "transactionHash"),
        block_number=number(_member(reply, "blockNumber")),
        block_hash=_text(reply, "blockHash"),
        succeeded=number(_member(reply, "status")) == 1,
        gas_used=number(_member(reply, "gasUsed")),
        effective_gas_price_wei=number(_member(reply, "effectiveGasPrice")),
    )


def tip(history: Any, suggestion: Any) -> int:
    """
    Read the tip, in wei per gas, that validators have recently accepted.

    It is the median of the recent blocks' median tips, without empty blocks. If all are
    empty, it is the node's own suggestion, else 0.
    """
    if not isinstance(history, dict | RpcError):
        raise unreadable()
    blocks = history if isinstance(history, dict) else {}
    rows, used = blocks.get("reward") or (), blocks.get("gasUsedRatio") or ()
    tips = sorted(number(row[0]) for row, ratio in zip(rows, used, strict=False) if row and ratio)
    if tips:
        return tips[len(tips) // 2]
    return 0 if isinstance(suggestion, RpcError) else number(suggestion)


def _member(reply: Any, name: str) -> Any:
    if not isinstance(reply, dict) or name not in reply:
        raise unreadable()
    return reply[name]


def _text(reply: Any, name: str) -> str:
    return str(_member(reply, name)).lower()


@dataclass(frozen=True, slots=True)
class VerifiedCall:
    """One `PermissionsVerified` log: the transaction that holds it and the function that was allowed."""

    transaction_hash: str
    selector: bytes
    block_number: int


def logs(reply: Any) -> list[VerifiedCall]:
    """
    Read `PermissionsVerified` logs, without those that a reorganisation removed.

    The node must return the log's place correctly, but the contract made its topics: an
    unvetted contract may log anything under the event's name, and such logs are skipped.
    """
    if not isinstance(reply, list):
        raise unreadable()
    calls = [_verified_call(log) for log in reply if not _member(log, "removed")]
    return [call for call in calls if call is not None]


def execution(call: VerifiedCall, transaction: Any) -> ExternalExecution:
    """Read the transaction that a log is in."""
    to = _member(transaction, "to")
    return ExternalExecution(
        transaction_hash=call.transaction_hash,
        sender=_address(_member(transaction, "from")),
        to=None if to is None else _address(to),
        calldata=octets(_member(transaction, "input")),
        selector=call.selector,
        block_number=call.block_number,
    )


def _verified_call(log: Any) -> VerifiedCall | None:
    topics = _member(log, "topics")
    if not isinstance(topics, list):
        raise unreadable()
    words = [octets(topic) for topic in topics]
    if len(words) != _VERIFIED_TOPICS or any(words[3][4:]):
        return None
    return VerifiedCall(
        transaction_hash=_text(log, "transactionHash"),
        selector=words[3][:4],
        block_number=number(_member(log, "blockNumber")),
    )


def _address(reply: Any) -> str:
    try:
        return checksum(str(reply))
    except ValueError as error:
        raise unreadable() from error
