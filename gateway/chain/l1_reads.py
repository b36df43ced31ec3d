"""Reads what a chain of the OP stack charges besides gas: L1's prices, and the fees that some nodes' receipts lack."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from rlp.codec import encode_raw, length_prefix

from gateway.chain import responses
from gateway.chain.l1_fees import ENVELOPE_BYTES, L1_BLOCK, SLOTS, L1Prices
from gateway.chain.node import NEWEST_BLOCK
from gateway.chain.rpc import Call, MalformedResponse, NodeFault
from gateway.chain.types import Head, Receipt

_LATEST = "latest"
_LIST = 0xC0


def price_calls(block: str = _LATEST) -> list[Call]:
    """Return the calls that read a block's L1 prices; `prices` takes their values."""
    return [Call("eth_getStorageAt", [L1_BLOCK, hex(slot), block], responses.word) for slot in SLOTS]


def prices(values: Sequence[int]) -> L1Prices:
    """Return the L1 prices in the values of `price_calls`."""
    return L1Prices.of_slots(*values)


def head_calls(*, with_l1: bool) -> list[Call]:
    """Return the calls that read the newest block; `head` takes their values."""
    return [NEWEST_BLOCK, *(price_calls() if with_l1 else ())]


def head(values: Sequence[Any]) -> Head:
    """
    Return the newest block in the values of `head_calls`, with its L1 prices if they were read.

    Raises:
        NodeFault: the node did not return one of them.
    """
    for value in values:
        if isinstance(value, NodeFault):
            raise value
    newest: Head = values[0]
    return replace(newest, l1=prices(values[1:])) if len(values) > 1 else newest


class Missing(NamedTuple):
    """The calls that complete receipts without an L1 fee, in the order of `completed`."""

    receipts: list[Receipt]
    blocks: list[int]
    calls: list[Call]


def missing_fees(receipts: Sequence[Any]) -> Missing:
    """Return what to read for those of the receipts that do not name the fee for L1."""
    lacking = [item for item in receipts if isinstance(item, Receipt) and item.extra_fee_wei is None]
    blocks = sorted({receipt.block_number for receipt in lacking})
    calls = [Call("eth_getTransactionByHash", [receipt.transaction_hash], _raw) for receipt in lacking]
    for number in blocks:
        calls += price_calls(hex(number))
    return Missing(lacking, blocks, calls)


def completed(missing: Missing, values: Sequence[Any]) -> dict[str, Any]:
    """Return these receipts with their fees, or the `NodeFault` in place of one, by transaction hash."""
    raws, words = values[: len(missing.receipts)], values[len(missing.receipts) :]
    by_block = {
        number: words[at : at + len(SLOTS)]
        for number, at in zip(missing.blocks, range(0, len(words), len(SLOTS)), strict=True)
    }
    return {
        receipt.transaction_hash: _with_fee(receipt, raw, by_block)
        for receipt, raw in zip(missing.receipts, raws, strict=True)
    }


def _with_fee(receipt: Receipt, raw: Any, by_block: Mapping[int, Sequence[Any]]) -> Receipt | NodeFault:
    words = by_block[receipt.block_number]
    for value in (raw, *words):
        if isinstance(value, NodeFault):
            return value
    return replace(receipt, extra_fee_wei=prices(words).fee_wei(raw, gas_used=receipt.gas_used))


def _raw(response: Any) -> bytes:
    """
    Return the signed bytes of a type-2 transaction without access list, as the service sends them.

    Others are sent only with a stolen key; for these, the bytes have about the same size.
    """
    if response is None:
        raise MalformedResponse("a mined transaction is missing")
    if response.get("maxFeePerGas") is None or not response.get("to"):
        return responses.octets(response["input"]) + bytes(range(ENVELOPE_BYTES))
    numbers = ("chainId", "nonce", "maxPriorityFeePerGas", "maxFeePerGas", "gas")
    parity = "yParity" if response.get("yParity") is not None else "v"
    fields = [
        *(_number(response[name]) for name in numbers),
        responses.octets(response["to"]),
        _number(response["value"]),
        responses.octets(response["input"]),
        [],
        *(_number(response[name]) for name in (parity, "r", "s")),
    ]
    encoded = b"".join(map(encode_raw, fields))
    prefix: bytes = length_prefix(len(encoded), _LIST)
    return b"\x02" + prefix + encoded


def _number(response: Any) -> bytes:
    number = responses.word(response)
    return number.to_bytes((number.bit_length() + 7) // 8, "big")
