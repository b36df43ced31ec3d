"""
Classification of nodes' errors.

Most JSON-RPC errors have the code -32000 or a code specific to the node software, so the messages decide.
"""

import logging
import re
from typing import Any

from gateway.chain.rpc import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    METHOD_NOT_SUPPORTED,
    MalformedResponse,
    RpcError,
)
from gateway.chain.types import SendKind, SendOutcome

logger = logging.getLogger(__name__)
_MESSAGE_CHARACTERS = 200
# Besu's code while no block is final yet; geth has only a message (eth/api_backend.go).
_UNKNOWN_BLOCK = -39001
_NO_FINAL_BLOCK = re.compile(r"(finalized|safe) block not found", re.IGNORECASE)
_REVERT_CODES = frozenset({3, -32015})
_RATE_LIMIT_CODES = frozenset({-32005, -32016, -32029, 429})

# The sender has too few coins. The codes differ, and each has another meaning at another node: -32000, -32003 (anvil,
# Reth), -32004 (Besu; elsewhere "method not supported") and -38014 (`eth_simulateV1`). So the words decide alone.
_FUNDS = r"insufficient ?(funds|(sender )?balance|maxfeepergas)|up-?front cost|doesn't have enough funds|lack of funds"

# Nodes' error messages for `eth_sendRawTransaction`, and their meaning for the service. The first match decides. The
# messages are from geth (core/txpool, core/error.go), Erigon (txpoolcfg.DiscardReason), Nethermind (AcceptTxResult,
# TransactionResult), Besu (RpcErrorType, TransactionInvalidReason), Reth (RpcPoolError, RpcInvalidTransactionError),
# anvil and EDR; older spellings are kept. Only errors that are known to be permanent end a call.
_SEND_ERRORS: tuple[tuple[re.Pattern[str], SendKind], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), kind)
    for kind, pattern in (
        (
            SendKind.ACCEPTED,
            r"already ?known|^known transaction|already imported|existing (tx|txn) with same hash",
        ),
        (SendKind.NONCE_TOO_LOW, r"nonce (is )?too low|old ?nonce|nonce has already been used|^mined$"),
        (SendKind.NONCE_TOO_LOW, r"below sender account nonce"),
        # A relayer with a delegation (EIP-7702): nodes accept only one pending transaction of it at a time.
        (SendKind.LATER, r"delegated account|in-flight (transaction )?limit|NotCurrentNonceForDelegation"),
        (SendKind.LATER, r"DelegatorHasPendingTx|already reserved|gapped[- ]nonce"),
        # The reason is the pool's space or the order of arrival, not the transaction; it may be accepted later.
        (SendKind.LATER, r"pool is full|account limit|spammer|nonce (is )?too (high|far)|tries to replace"),
        (
            SendKind.LATER,
            r"nonce ?gap|out of capacity|too distant|lower nonce|indexing|does not match sender account nonce",
        ),
        (SendKind.LATER, r"NonceTooFarInFuture|ConflictingType|pool (is )?(not enabled|disabled)"),
        (
            SendKind.UNDERPRICED,
            r"underpriced|fee ?too ?low|replace existing|replaced by|replacement ?not ?allowed",
        ),
        (SendKind.UNDERPRICED, r"less than (the )?block base ?fee|below (the )?(chain |configured )?minimum"),
        (SendKind.UNDERPRICED, r"below current base ?fee"),
        (
            SendKind.LATER,
            r"rate limit|too many requests|time(d )?out|temporar|unavailable|syncing|sync is still",
        ),
        (SendKind.LATER, r"internal error|header not found|missing trie node|resource not found"),
        (SendKind.REFUSED, _FUNDS),
        (SendKind.REFUSED, r"exceeds (the )?configured cap|fee ?cap exceeded|intrinsic ?gas|floor data gas"),
        (
            SendKind.REFUSED,
            r"exceeds (the )?block gas ?limit|gas limit reached|gas ?limit ?(too high|exceeded)",
        ),
        (SendKind.REFUSED, r"priority fee per gas (is )?(higher than|exceeds)|max fee per gas higher than"),
        (
            SendKind.REFUSED,
            r"(invalid|wrong) ?(transaction )?(sender|signature|chain ?id)|failed to (decode|resolve)",
        ),
        (
            SendKind.REFUSED,
            r"chain ?id (not supported|is required)|sender ?(is not|not|is) ?(an ?)?(eoa|contract)",
        ),
        (SendKind.REFUSED, r"(type not|not) ?supported ?(tx ?type)?$|unsupported transaction type"),
        (
            SendKind.REFUSED,
            r"supporting this transaction type|invalid transaction type|max initcode|initcode too",
        ),
        (
            SendKind.REFUSED,
            r"oversized data|rlp ?too ?long|max ?tx ?size|gas ?uint(64)? ?overflow|int256 ?overflow",
        ),
        (SendKind.REFUSED, r"negative value|nonce has max value"),
        (
            SendKind.REFUSED,
            r"requires at least \d+ gas|exceeds transaction gas cap",
        ),
        (SendKind.REFUSED, r"maxPriorityFeePerGas .* is bigger than maxFeePerGas"),
    )
)
# The minimum tip in such an error: of geth until and from 1.16, and of Reth.
_LEAST_TIP = re.compile(
    r"(?:tip needed|minimum needed|minimum required priority fee)\D{0,5}(\d{1,30})", re.IGNORECASE
)
# Every way in which code that a caller has chosen can fail. One that is missing here would count as the node's fault,
# and a caller could provoke it at all nodes. The messages are from geth (core/vm/errors.go, and contracts.go for
# precompiled contracts), Nethermind (EvmExceptionType), Reth, anvil and EDR.
_EXECUTION = re.compile(
    r"revert|out ?of ?gas|gas required exceeds|invalid ?opcode|stack ?(under|over)flow|invalid ?jump|"
    r"vm execution error|evm error|intrinsic gas|gas uint64 overflow|write protection|bad ?instruction|"
    r"stack limit reached|return ?data out ?of ?bounds|access ?violation|static ?call ?violation|call depth|"
    r"code size exceeded|invalid ?code|address collision|nonce uint64 overflow|balance for transfer|"
    r"precompile|invalid input length|elliptic curve|malformed point|not on (the |correct )?(curve|subgroup)|"
    r"coordinate exceeds|field element|invalid final flag|kzg|versioned hash",
    re.IGNORECASE,
)
_SHORT, _REVERT = re.compile(_FUNDS, re.IGNORECASE), re.compile("revert", re.IGNORECASE)
_HEX = re.compile(r"0x(?:[0-9a-fA-F]{2})*")
_FIGURES = re.compile(r"0x[0-9a-fA-F]+|\d+")
_MOST_LOGGED = 100
_logged: set[str] = set()


def send_outcome(reply: Any) -> SendOutcome:
    """
    Classify a response to `eth_sendRawTransaction`.

    Unknown messages are `LATER`: the bytes are sent again. Each is logged once, so that it can be added to the table.
    """
    if isinstance(reply, str):
        return SendOutcome(SendKind.ACCEPTED, "", least_tip_wei=0)
    if not isinstance(reply, RpcError):
        raise MalformedResponse("it is not a transaction hash")
    message = reply.message[:_MESSAGE_CHARACTERS]
    kind = _kind_of(message)
    if kind is None:
        _log_unknown(reply.code, message)
    return SendOutcome(kind or SendKind.LATER, message, least_tip_wei=_least_tip_of(kind, message))


def _least_tip_of(kind: SendKind | None, message: str) -> int | None:
    if kind is SendKind.NONCE_TOO_LOW:
        # Nodes check the tip before the account nonce.
        return 0
    needed = _LEAST_TIP.search(message) if kind is SendKind.UNDERPRICED else None
    return int(needed.group(1)) if needed else None


def _kind_of(message: str) -> SendKind | None:
    return next((kind for pattern, kind in _SEND_ERRORS if pattern.search(message)), None)


def _log_unknown(code: int, message: str) -> None:
    """Log a message once per process; messages that differ only in numbers count as the same."""
    words = _FIGURES.sub("#", message)
    if words not in _logged and len(_logged) < _MOST_LOGGED:
        _logged.add(words)
        logger.warning(
            "a node refuses a transaction in unknown words (%d), so it is sent again: %s", code, message
        )


def is_send_error(error: RpcError) -> bool:
    """
    Return whether the error is about the transaction that was sent, not about a rate limit.

    Besu uses the code of a rate limit also for a gas limit above the block's.
    """
    return (
        error.code not in _RATE_LIMIT_CODES
        or _kind_of(error.message[:_MESSAGE_CHARACTERS]) is SendKind.REFUSED
    )


def is_call_error(error: RpcError) -> bool:
    """Return whether an error of a read is a valid response: the contract failed, or the node lacks the method."""
    if error.code in _RATE_LIMIT_CODES:
        return False
    return (
        error.code in _REVERT_CODES
        or error.code in {METHOD_NOT_FOUND, METHOD_NOT_SUPPORTED}
        or bool(_EXECUTION.search(error.message))
    )


def is_sender_short(error: RpcError) -> bool:
    """
    Return whether a node refuses to simulate a call, because of its sender's balance.

    A contract may revert in the same words.
    """
    is_revert = error.code in _REVERT_CODES or bool(_REVERT.search(error.message))
    return not is_revert and bool(_SHORT.search(error.message))


def is_block_error(error: RpcError) -> bool:
    """Return whether the error is a valid response to a request for a block: the node does not know the tag."""
    return error.code in {INVALID_PARAMS, _UNKNOWN_BLOCK} or bool(_NO_FINAL_BLOCK.search(error.message))


def revert_data(error: RpcError) -> bytes:
    """Return the contract's revert data; empty if the node does not report it."""
    # geth, erigon, reth and anvil have the hex text here, nethermind "Reverted 0x…", and some proxies an object.
    text = error.data.get("data") if isinstance(error.data, dict) else error.data
    match = _HEX.search(text) if isinstance(text, str) else None
    return bytes.fromhex(match.group()[2:]) if match else b""
