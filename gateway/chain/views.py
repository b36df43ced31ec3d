"""One node's view of the chain: its newest block, receipts, accounts and final block."""

from collections.abc import Sequence
from typing import Any

from gateway.chain import l1_reads, node_errors, responses
from gateway.chain.node import Node
from gateway.chain.rpc import Call, ErrorResponse, MalformedResponse, NodeFault
from gateway.chain.types import AccountState, ChainView, Finality, Head, Receipt

_LATEST = "latest"
# How often to send the request: one URL may lead to several nodes at different heights, and the next one may know more.
_ROUNDS = 3


def view_of(
    node: Node,
    *,
    transaction_hashes: Sequence[str],
    accounts: Sequence[str],
    confirmations: int,
    heights: Sequence[int],
    finality: Finality | None,
    with_l1: bool = False,
) -> ChainView:
    """
    Return one node's view; see `ChainClient.read_chain`. `with_l1` is whether the chain belongs to the OP stack.

    Incomplete responses are kept: transactions without a usable response are undecided, and such accounts are left out.

    Raises:
        NodeFault: the node did not respond, or did not return its newest block.
    """
    # The head is read first, so that a block that arrives in between can only add to the later reads.
    head_calls = l1_reads.head_calls(with_l1=with_l1)
    replies = _ask(
        node,
        [
            *head_calls,
            *(_block(hex(height)) for height in heights),
            *(receipt_call(name) for name in transaction_hashes),
        ],
    )
    newest, replies = l1_reads.head(replies[: len(head_calls)]), replies[len(head_calls) :]
    blocks, receipts = replies[: len(heights)], replies[len(heights) :]
    by_hash = dict(zip(transaction_hashes, receipts, strict=True))
    account_calls = _account_calls(accounts, _height(newest, confirmations))
    missing = l1_reads.missing_fees(receipts if with_l1 else ())
    replies = _ask(node, [*missing.calls, *account_calls, *_final_calls(newest, finality)])
    by_hash |= l1_reads.completed(missing, replies[: len(missing.calls)])
    replies = replies[len(missing.calls) :]
    for value in (*blocks, *by_hash.values(), *replies):
        if isinstance(value, MalformedResponse):
            node.note_wrong(value)
    return ChainView(
        head=newest,
        receipts={name: receipt for name, receipt in by_hash.items() if receipt and not _failed(receipt)},
        accounts=_account_states(accounts, replies[: len(account_calls)]),
        block_hashes={block.number: block.block_hash for block in blocks if block and not _failed(block)},
        final=next((block for block in replies[len(account_calls) :] if block and not _failed(block)), None),
        undecided=frozenset(name for name, receipt in by_hash.items() if _failed(receipt)),
    )


def _ask(node: Node, calls: Sequence[Call]) -> list[Any]:
    """Return each call's value, or, if several rounds failed, the `NodeFault` in its place."""
    values = node.ask(calls, checked=True)
    for _ in range(_ROUNDS - 1):
        places = [place for place, value in enumerate(values) if isinstance(value, ErrorResponse)]
        again = node.ask([calls[place] for place in places], checked=True)
        for place, value in zip(places, again, strict=True):
            values[place] = value
    return values


def _failed(value: Any) -> bool:
    return isinstance(value, NodeFault)


def _account_calls(accounts: Sequence[str], confirmed_block: int) -> list[Call]:
    calls: list[Call] = []
    for account in accounts:
        calls += [
            Call("eth_getTransactionCount", [account, _LATEST], responses.quantity),
            Call("eth_getTransactionCount", [account, hex(confirmed_block)], responses.quantity),
            Call("eth_getBalance", [account, _LATEST], responses.wei),
            Call("eth_getCode", [account, _LATEST], responses.octets, max_bytes=responses.CODE_BYTES),
        ]
    return calls


def _account_states(accounts: Sequence[str], values: Sequence[Any]) -> dict[str, AccountState]:
    columns = zip(values[0::4], values[1::4], values[2::4], values[3::4], strict=True)
    return {
        account: AccountState(latest, confirmed, balance, has_code=bool(code))
        for account, (latest, confirmed, balance, code) in zip(accounts, columns, strict=True)
        if not any(map(_failed, (latest, confirmed, balance, code)))
    }


def _height(newest: Head, blocks: int) -> int:
    """Return the newest height from which on the chain has this many blocks, its own included."""
    return max(0, newest.number - blocks + 1)


def _final_calls(newest: Head, finality: Finality | None) -> list[Call]:
    """Return the calls that read the newest final block; that of the tag comes first, if the tag is used."""
    if finality is None:
        return []
    names = [hex(_height(newest, finality.blocks))]
    return [_block(name) for name in (["finalized", *names] if finality.by_tag else names)]


def _block(name: str) -> Call:
    return Call(
        "eth_getBlockByNumber",
        [name, False],
        responses.block_id,
        accepts=node_errors.is_block_error,
        max_bytes=responses.BLOCK_BYTES,
    )


def receipt_call(transaction_hash: str) -> Call:
    """Return the call that reads a transaction's receipt; its value is None if the node has none."""

    def read(response: Any) -> Receipt | None:
        receipt = responses.receipt(response)
        if receipt is not None and receipt.transaction_hash != transaction_hash:
            raise MalformedResponse("member transactionHash is another one")
        return receipt

    return Call(
        "eth_getTransactionReceipt",
        [transaction_hash],
        read,
        max_bytes=responses.LOGS_BYTES,
        is_sized_by_contract=True,
    )
