"""
The values in nodes' responses. Each function reads one response, and raises `MalformedResponse` for anything else.

Numbers must be within the bounds of the chain and the database, so that no nonsensical number gets past this module.
Source: the Ethereum JSON-RPC specification (ethereum/execution-apis).
"""

import itertools
import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from gateway.chain.l1_fees import operator_fee_wei
from gateway.chain.rpc import MalformedResponse, RpcError
from gateway.chain.types import BlockId, Head, Receipt

_QUANTITY = re.compile(r"0x[0-9a-fA-F]{1,64}")
_HASH = re.compile(r"0x[0-9a-fA-F]{64}")
# The largest responses in bytes: a block with the hashes of its transactions; code; a receipt or logs of 5,000,000 gas,
# which bounds them by the price of a log; a trial's return data and logs; and a block with its transactions.
BLOCK_BYTES, CODE_BYTES, LOGS_BYTES = 2**21, 2**20, 2**23
TRIAL_BYTES, FULL_BLOCK_BYTES = 2**18, 2**24
# The largest `bigint` of PostgreSQL, and a number far above all wei that will ever exist.
_MOST, _MOST_WEI = 2**63 - 1, 2**128
# If the blocks of a fee history together use less gas than this many full blocks, senders do not compete for space.
_FEWEST_USED_BLOCKS = 1.0


def quantity(response: Any) -> int:
    """Return the number in a response (a QUANTITY of JSON-RPC)."""
    return _number(response, "it", _MOST)


def wei(response: Any) -> int:
    """Return the amount of wei in a response."""
    return _number(response, "it", _MOST_WEI)


def word(response: Any) -> int:
    """Return the number in a response of up to 32 bytes, such as a word of storage."""
    return _number(response, "it", 2**256 - 1)


def octets(response: Any) -> bytes:
    """Return the bytes in a response (DATA of JSON-RPC)."""
    if not isinstance(response, str) or not response.startswith("0x"):
        raise MalformedResponse("it is not hex data")
    try:
        data = bytes.fromhex(response[2:])
    except ValueError as error:
        raise MalformedResponse("it is not hex data") from error
    # `fromhex` skips spaces between bytes, which are not valid data.
    if len(response) != 2 + 2 * len(data):
        raise MalformedResponse("it is not hex data")
    return data


def returned(response: Any) -> bytes:
    """Return a contract's return data; empty if it reverted."""
    return b"" if isinstance(response, RpcError) else octets(response)


def gas_or_error(response: Any) -> int | RpcError:
    """Return the estimated gas, or the error with which the execution failed."""
    return response if isinstance(response, RpcError) else quantity(response)


def returned_or_error(response: Any) -> bytes | RpcError:
    """Return a contract's return data, or the error with which it reverted."""
    return response if isinstance(response, RpcError) else octets(response)


def head(block: Any) -> Head:
    """Return the newest block."""
    return Head(
        number=_member(block, "number"),
        timestamp=_member(block, "timestamp"),
        base_fee_wei=_member(block, "baseFeePerGas", _MOST_WEI),
        block_hash=_hash(block, "hash"),
        gas_limit=_member(block, "gasLimit") if block.get("gasLimit") is not None else 0,
    )


def block_id(block: Any) -> BlockId | None:
    """Return a block's number and hash; None if the node has no such block."""
    if block is None or isinstance(block, RpcError):
        return None
    return BlockId(_member(block, "number"), _hash(block, "hash"))


def receipt(response: Any) -> Receipt | None:
    """Return the receipt; None if the node has none."""
    if response is None:
        return None
    return Receipt(
        transaction_hash=_hash(response, "transactionHash"),
        block_number=_member(response, "blockNumber"),
        block_hash=_hash(response, "blockHash"),
        succeeded=_member(response, "status", 1) == 1,
        gas_used=_member(response, "gasUsed"),
        effective_gas_price_wei=_member(response, "effectiveGasPrice", _MOST_WEI),
        extra_fee_wei=_extra_fee(response),
    )


def _extra_fee(receipt: dict[str, Any]) -> int | None:
    """
    Return what a receipt of the OP stack charges besides gas: for L1 data, and for the operator; None without it.

    Nodes leave out the operator's members while they are 0, and differ in how they write the names.
    """
    members = {name.lower(): value for name, value in receipt.items()}
    if members.get("l1fee") is None:
        return None
    scalar, constant = members.get("operatorfeescalar"), members.get("operatorfeeconstant")
    return _number(members["l1fee"], "member l1Fee", _MOST_WEI) + operator_fee_wei(
        gas=_member(receipt, "gasUsed"),
        scalar=0 if scalar is None else _number(scalar, "member operatorFeeScalar", _MOST),
        constant_wei=0 if constant is None else _number(constant, "member operatorFeeConstant", _MOST_WEI),
        # Receipts have this member since Jovian.
        is_jovian=members.get("dafootprintgasscalar") is not None,
    )


def market_tip(history: Any) -> int:
    """
    Return the median tip of the blocks of a fee history, in wei per gas; 0 if they were nearly empty.

    Each block's median is weighted by the block's gas. To move the result, a sender must therefore use as much gas as
    all others together; one transaction per block is not enough. The result is 0 for a node without a fee history, and
    a block without a reward (null, as some chains report it) is left out.
    """
    if isinstance(history, RpcError):
        return 0
    ratios, rows = _list(history, "gasUsedRatio"), _list(history, "reward", is_optional=True)
    if not all(type(ratio) in (int, float) and math.isfinite(ratio) and ratio >= 0 for ratio in ratios):
        raise MalformedResponse("member gasUsedRatio is not a list of ratios")
    if not all(isinstance(row, list) for row in rows):
        raise MalformedResponse("member reward is not a list of lists")
    tips = sorted(
        (_number(row[0], "a reward", _MOST_WEI), ratio)
        for row, ratio in zip(rows, ratios, strict=False)
        if row and row[0] is not None
    )
    used = sum(ratio for _, ratio in tips)
    if used < _FEWEST_USED_BLOCKS:
        return 0
    passed = itertools.accumulate(ratio for _, ratio in tips)
    return next(tip for (tip, _), below in zip(tips, passed, strict=True) if 2 * below >= used)


class Simulated(NamedTuple):
    """
    A call that `eth_simulateV1` executed: the gas that it used, and its revert data, or None if it succeeded.

    Each log has its address, topics and data in the node's own spelling. `most_gas_used` is the gas before the refund,
    which only some nodes report.
    """

    gas_used: int
    revert: bytes | None
    logs: tuple[tuple[str, str, str], ...] = ()
    most_gas_used: int | None = None


def simulated(response: Any) -> Simulated | RpcError:
    """Return the result of a simulation's only call, or the error in its place."""
    if isinstance(response, RpcError):
        return response
    [block] = _only(response, "it")
    [call] = _only(_any(block, "calls"), "member calls")
    gas_used, succeeded = _member(call, "gasUsed"), _member(call, "status", 1) == 1
    logs = tuple(
        (str(_any(log, "address")), str(_any(log, "topics")), str(_any(log, "data")))
        for log in _list(call, "logs", is_optional=True)
    )
    most = _member(call, "maxUsedGas") if "maxUsedGas" in call else None
    return Simulated(gas_used, None if succeeded else octets(_any(call, "returnData")), logs, most)


def _any(response: Any, name: str) -> Any:
    if not isinstance(response, dict):
        raise MalformedResponse("it is not an object")
    if name not in response:
        raise MalformedResponse(f"member {name} is missing")
    return response[name]


def _member(response: Any, name: str, most: int = _MOST) -> int:
    return _number(_any(response, name), f"member {name}", most)


def _hash(response: Any, name: str) -> str:
    value = _any(response, name)
    if not isinstance(value, str) or not _HASH.fullmatch(value):
        raise MalformedResponse(f"member {name} is not a hash")
    return value.lower()


def _list(response: Any, name: str, *, is_optional: bool = False) -> Sequence[Any]:
    """Return a list; empty if it is null, as geth reports an empty list of blocks."""
    value = response.get(name) if is_optional and isinstance(response, dict) else _any(response, name)
    if value is not None and not isinstance(value, list):
        raise MalformedResponse(f"member {name} is not a list")
    return value or ()


def _only(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list) or len(value) != 1:
        raise MalformedResponse(f"{name} is not a list of one item")
    return value


def _number(value: Any, name: str, most: int) -> int:
    if not isinstance(value, str) or not _QUANTITY.fullmatch(value):
        raise MalformedResponse(f"{name} is not a quantity")
    number = int(value, 16)
    if number > most:
        raise MalformedResponse(f"{name} is too large")
    return number
