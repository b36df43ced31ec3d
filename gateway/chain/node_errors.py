"""
Classification of nodes' errors.

Most JSON-RPC errors have the code -32000 or a code of the node software's own, so the messages of geth, erigon,
nethermind, reth and anvil decide.
"""

import re
from typing import Any

from gateway.chain.rpc import RpcError
from gateway.chain.types import SendKind, SendOutcome

_MESSAGE_CHARACTERS = 200
METHOD_NOT_FOUND, INVALID_PARAMS = -32601, -32602
# geth's code while no block is final yet.
_UNKNOWN_BLOCK = -39001
_REVERT_CODES = frozenset({3, -32015})
_RATE_LIMIT_CODES = frozenset({-32005, -32016, -32029, 429})

# The first match decides. Only messages known to be permanent end a call; after others its bytes are sent again.
_SEND_ERRORS: tuple[tuple[re.Pattern[str], SendKind], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), kind)
    for kind, pattern in (
        (SendKind.ACCEPTED, r"already ?known|^known transaction|already imported|existing tx with same hash"),
        (SendKind.NONCE_TOO_LOW, r"nonce (is )?too low|old ?nonce|nonce has already been used|^mined$"),
        # About the pool's space or the order of arrival, not the transaction: the same bytes may be accepted later.
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
    """Return the outcome that a response to `eth_sendRawTransaction` stands for; unknown messages are `UNREACHABLE`."""
    if not isinstance(reply, RpcError):
        return SendOutcome(SendKind.ACCEPTED, "")
    message = reply.message[:_MESSAGE_CHARACTERS]
    for pattern, kind in _SEND_ERRORS:
        if pattern.search(reply.message):
            return SendOutcome(kind, message)
    return SendOutcome(SendKind.UNREACHABLE, message)


def is_send_error(error: RpcError) -> bool:
    """Return whether the error is about the transaction that was sent, not about a rate limit."""
    return error.code not in _RATE_LIMIT_CODES


def is_call_error(error: RpcError) -> bool:
    """Return whether an error of a read is an answer: the contract failed, or the node lacks the method."""
    if error.code in _RATE_LIMIT_CODES:
        return False
    return (
        error.code in _REVERT_CODES
        or error.code == METHOD_NOT_FOUND
        or bool(_EXECUTION.search(error.message))
    )


def is_block_error(error: RpcError) -> bool:
    """Return whether the error is an answer to a request for a block: the node does not know the tag."""
    return error.code in {INVALID_PARAMS, _UNKNOWN_BLOCK}


def revert_data(error: RpcError) -> bytes:
    """Return the data that the contract reverted with; empty if the node does not report it."""
    # geth, erigon, reth and anvil put the hex text there, nethermind "Reverted 0x…", some proxies an object.
    text = error.data.get("data") if isinstance(error.data, dict) else error.data
    match = _HEX.search(text) if isinstance(text, str) else None
    return bytes.fromhex(match.group()[2:]) if match else b""
