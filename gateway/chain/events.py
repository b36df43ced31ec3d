"""
What others had a key manager execute, read from its events by web3.py over our nodes.

Only a call that somebody else seems to have executed leads here, so a process imports this
module when it first needs it.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from eth_abi.exceptions import DecodingError
from eth_typing import BlockNumber, ChecksumAddress, HexAddress, HexStr
from hexbytes import HexBytes
from web3 import Web3
from web3.contract import Contract
from web3.eth import Eth
from web3.exceptions import LogTopicError, MismatchedABI, TransactionNotFound, Web3Exception
from web3.providers.base import JSONBaseProvider
from web3.types import LogReceipt, RPCEndpoint, RPCError, RPCResponse, TxData

from gateway.chain.contracts import CONTRACT_ABI, PERMISSIONS_VERIFIED_TOPIC
from gateway.chain.node_errors import is_call_error
from gateway.chain.nodes import Nodes
from gateway.chain.rpc import RpcError, unreadable
from gateway.chain.types import ExternalExecution
from gateway.common.fields import checksum

_WORD = 32
_CONTRACT: type[Contract] = Web3().eth.contract(abi=CONTRACT_ABI)
_PERMISSIONS_VERIFIED = _CONTRACT.events.PermissionsVerified()


class NodesProvider(JSONBaseProvider):
    """A web3.py provider over our nodes: the same connections and fail-over."""

    def __init__(self, nodes: Nodes) -> None:
        super().__init__()
        self._nodes = nodes

    def make_request(self, method: RPCEndpoint, params: Any) -> RPCResponse:
        (reply,) = self._nodes.batch([(method, list(params))], accepts=is_call_error)
        if isinstance(reply, RpcError):
            error: RPCError = {"code": reply.code, "message": reply.message, "data": reply.data}
            return {"jsonrpc": "2.0", "id": 0, "error": error}
        return {"jsonrpc": "2.0", "id": 0, "result": reply}


def find_external_executions(
    nodes: Nodes, *, key_manager: str, controller: str, windows: Iterable[tuple[int, int]]
) -> list[ExternalExecution]:
    """
    Return what a key manager executed for a controller in these ranges of blocks, each with both ends.

    Raises:
        NodeUnavailable: the node did not answer, or nothing that web3.py can read.
    """
    # No middleware: it would ask further questions, such as the chain id before each call.
    eth = Web3(NodesProvider(nodes), middleware=[]).eth
    topics = [PERMISSIONS_VERIFIED_TOPIC, "0x" + controller[2:].lower().rjust(64, "0")]
    with _node_errors():
        logs: list[LogReceipt] = []
        for first, last in windows:
            logs += eth.get_logs(
                {
                    "address": ChecksumAddress(HexAddress(HexStr(key_manager))),
                    "topics": [HexStr(topic) for topic in topics],
                    "fromBlock": BlockNumber(first),
                    "toBlock": BlockNumber(last),
                }
            )
        selectors = [(log, _verified_selector(log)) for log in logs]
        names = dict.fromkeys(log["transactionHash"] for log, selector in selectors if selector is not None)
        transactions = {name: _transaction(eth, name) for name in names}
        return [
            _external_execution(log, selector, transaction)
            for log, selector in selectors
            if selector is not None
            if (transaction := transactions[log["transactionHash"]]) is not None
        ]


@contextmanager
def _node_errors() -> Iterator[None]:
    """Raise `NodeUnavailable` for whatever web3.py raises about an answer that it cannot read."""
    try:
        yield
    except (Web3Exception, ValueError, TypeError, KeyError, AttributeError) as error:
        raise unreadable() from error


def _verified_selector(log: LogReceipt) -> bytes | None:
    """
    Return the selector of the call that an LSP-6 `PermissionsVerified` log allowed.

    None for anything else: an unvetted contract may log what it likes under the event's name, and a
    reorganisation may have removed the log.
    """
    if any(len(topic) != _WORD for topic in log["topics"]):
        raise unreadable()
    if log["removed"]:
        return None
    try:
        event = _PERMISSIONS_VERIFIED.process_log(log)
    except (MismatchedABI, LogTopicError, DecodingError):
        return None
    return bytes(event["args"]["selector"])


def _transaction(eth: Eth, transaction_hash: HexBytes) -> TxData | None:
    """Return a mined transaction, or None if a reorganisation has removed it."""
    try:
        return eth.get_transaction(transaction_hash)
    except TransactionNotFound:
        return None


def _external_execution(log: LogReceipt, selector: bytes, transaction: TxData) -> ExternalExecution:
    to = transaction["to"]
    return ExternalExecution(
        transaction_hash=log["transactionHash"].to_0x_hex(),
        sender=checksum(transaction["from"]),
        to=None if to is None else checksum(to),
        calldata=bytes(transaction["input"]),
        selector=selector,
        block_number=log["blockNumber"],
    )
