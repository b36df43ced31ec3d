"""One node's view of the chain: its newest block, receipts, accounts and final block."""

from collections.abc import Callable, Sequence
from typing import Any

from gateway.chain import node_errors, rpc
from gateway.chain.nodes import NEWEST_BLOCK
from gateway.chain.rpc import Call, RpcError
from gateway.chain.types import (
    AccountState,
    BlockId,
    ChainView,
    Finality,
    Head,
    Receipt,
)

_LATEST = "latest"
# Sends a batch of calls to one node and returns the results.
Read = Callable[[Sequence[Call]], list[Any]]


def is_answer(error: RpcError) -> bool:
    """Return whether the error is an answer: a node reports an unknown block tag by an error."""
    return node_errors.is_call_error(error) or node_errors.is_block_error(error)


def view_of(
    read: Read,
    *,
    transaction_hashes: Sequence[str],
    accounts: Sequence[str],
    confirmations: int,
    heights: Sequence[int] = (),
    finality: Finality | None = None,
) -> ChainView:
    """
    Return one node's view, read by `read`; see `ChainClient.read_chain`.

    Raises:
        NodeUnavailable: the node gave no usable answer.
    """
    # The head is read first, so that a block which arrives meanwhile can only add to the later reads.
    block, *replies = read(
        [
            NEWEST_BLOCK,
            *(_block(hex(height)) for height in heights),
            *(("eth_getTransactionReceipt", [name]) for name in transaction_hashes),
        ]
    )
    newest = rpc.head_of(block)
    blocks, replies = replies[: len(heights)], replies[len(heights) :]
    receipts = [receipt for receipt in map(_receipt, replies) if receipt is not None]
    account_calls = _account_calls(accounts, _height(newest, confirmations))
    replies = read([*account_calls, *_final_calls(newest, finality)])
    return ChainView(
        head=newest,
        receipts={receipt.transaction_hash: receipt for receipt in receipts},
        accounts=_account_states(accounts, replies[: len(account_calls)]),
        block_hashes={
            block_id.number: block_id.block_hash for block_id in map(_block_id, blocks) if block_id
        },
        final=next(filter(None, map(_block_id, replies[len(account_calls) :])), None),
    )


def _account_calls(accounts: Sequence[str], confirmed_block: int) -> list[Call]:
    calls: list[Call] = []
    for account in accounts:
        calls += [
            ("eth_getTransactionCount", [account, _LATEST]),
            ("eth_getTransactionCount", [account, hex(confirmed_block)]),
            ("eth_getBalance", [account, _LATEST]),
            ("eth_getCode", [account, _LATEST]),
        ]
    return calls


def _account_states(accounts: Sequence[str], replies: Sequence[Any]) -> dict[str, AccountState]:
    columns = zip(replies[0::4], replies[1::4], replies[2::4], replies[3::4], strict=True)
    return {
        account: AccountState(
            rpc.quantity(latest),
            rpc.quantity(confirmed),
            rpc.quantity(balance),
            has_code=bool(rpc.octets(code)),
        )
        for account, (latest, confirmed, balance, code) in zip(accounts, columns, strict=True)
    }


def _height(newest: Head, blocks: int) -> int:
    """Return the newest height that has this many blocks from it on, its own included."""
    return max(0, newest.number - blocks + 1)


def _final_calls(newest: Head, finality: Finality | None) -> list[Call]:
    """Return the calls that read the newest final block; the block of the tag comes first, if tags count."""
    if finality is None:
        return []
    names = [hex(_height(newest, finality.blocks))]
    return [_block(name) for name in (["finalized", *names] if finality.by_tag else names)]


def _block(name: str) -> Call:
    return "eth_getBlockByNumber", [name, False]


def _block_id(reply: Any) -> BlockId | None:
    """Return the number and hash in a response; None if the node has no such block."""
    if reply is None or isinstance(reply, RpcError):
        return None
    return BlockId(rpc.quantity(rpc.member(reply, "number")), _text(reply, "hash"))


def _receipt(reply: Any) -> Receipt | None:
    """Return the receipt in a response; None if the node has none."""
    if reply is None:
        return None
    return Receipt(
        transaction_hash=_text(reply, "transactionHash"),
        block_number=rpc.quantity(rpc.member(reply, "blockNumber")),
        block_hash=_text(reply, "blockHash"),
        succeeded=rpc.quantity(rpc.member(reply, "status")) == 1,
        gas_used=rpc.quantity(rpc.member(reply, "gasUsed")),
        effective_gas_price_wei=rpc.quantity(rpc.member(reply, "effectiveGasPrice")),
    )


def _text(reply: Any, name: str) -> str:
    return str(rpc.member(reply, name)).lower()
