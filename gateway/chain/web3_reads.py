"""
Reads through web3.py, over the same connections, with the same fail-over and checks.

Reads that relay calls, sign-ins and quotas wait for are batches in `client` and `views`, which need a small fraction of
the CPU time. Tests compare both.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from eth_abi.exceptions import DecodingError
from eth_typing import BlockNumber, ChecksumAddress, HexAddress, HexStr
from web3 import Web3
from web3.exceptions import (
    BadFunctionCallOutput,
    ContractLogicError,
    LogTopicError,
    MismatchedABI,
    TransactionNotFound,
    Web3Exception,
    Web3RPCError,
)
from web3.middleware import ExtraDataToPOAMiddleware
from web3.providers.base import JSONBaseProvider
from web3.types import LogReceipt, RPCEndpoint, RPCError, RPCResponse, TxData

from gateway.chain import l1_reads
from gateway.chain.contracts import CONTRACT_ABI, PERMISSIONS_VERIFIED_TOPIC
from gateway.chain.node import Node
from gateway.chain.node_errors import is_call_error
from gateway.chain.nodes import Nodes
from gateway.chain.responses import CODE_BYTES, FULL_BLOCK_BYTES, LOGS_BYTES
from gateway.chain.rpc import RESPONSE_BYTES, Call, ErrorResponse, MalformedResponse, RpcError
from gateway.chain.types import READ_GAS, ExternalExecution, Receipt, SentTransaction
from gateway.chain.views import receipt_call

_WORD = 32
_LOG_BLOCKS = 1_000
# Blocks are read with all their transactions, and a block may have megabytes.
_BLOCKS_PER_BATCH = 20
_SIZED_BY_CONTRACT = frozenset({"eth_call", "eth_getLogs"})
_MOST_BYTES = {
    "eth_getBlockByNumber": FULL_BLOCK_BYTES,
    "eth_getLogs": LOGS_BYTES,
    "eth_getTransactionByHash": CODE_BYTES,
}
Value = TypeVar("Value")


class NodesProvider(JSONBaseProvider):
    """A web3.py provider over a function that sends a batch of calls."""

    def __init__(self, send: Callable[[Sequence[Call]], list[Any]]) -> None:
        super().__init__()
        self._send = send

    def make_request(self, method: RPCEndpoint, params: Any) -> RPCResponse:
        (response,) = self.make_batch_request([(method, params)])
        return response

    def make_batch_request(self, requests: list[tuple[RPCEndpoint, Any]]) -> list[RPCResponse]:
        return [_response(reply) for reply in self._send([_call(*request) for request in requests])]


def _call(method: str, params: Any) -> Call:
    # The caller chose the contract, and so how much it returns or logs.
    return Call(
        method,
        list(params),
        accepts=is_call_error,
        max_bytes=_MOST_BYTES.get(method, RESPONSE_BYTES),
        is_sized_by_contract=method in _SIZED_BY_CONTRACT,
    )


def _response(reply: Any) -> RPCResponse:
    if not isinstance(reply, RpcError):
        return {"jsonrpc": "2.0", "id": 0, "result": reply}
    # Omit the revert data: web3.py would fetch a URL in it (EIP-3668), and raises KeyError for unknown panics.
    error: RPCError = {"code": reply.code, "message": reply.message}
    return {"jsonrpc": "2.0", "id": 0, "error": error}


def web3_over(send: Callable[[Sequence[Call]], list[Any]]) -> Web3:
    """Return a web3.py client that calls `send`, without the default middleware, which reads the chain id first."""
    return Web3(NodesProvider(send), middleware=[ExtraDataToPOAMiddleware])


@contextmanager
def _web3_errors(method: str) -> Iterator[None]:
    """Convert web3.py's exceptions to faults of the node, which returned an error or an unreadable response."""
    try:
        yield
    except Web3RPCError as error:
        raise ErrorResponse("JSON-RPC error", method=method) from error
    except (Web3Exception, ValueError, TypeError, KeyError, AttributeError) as error:
        raise MalformedResponse(f"unreadable ({type(error).__name__})", method=method) from error


class Web3Reads:
    """The methods of `ChainClient` that go through web3.py."""

    def __init__(self, nodes: Nodes, *, with_l1: bool = False) -> None:
        self._nodes = nodes
        self._web3 = {node: _OneNode(node, with_l1=with_l1) for node in nodes}

    def read_data(self, *, profile: str, key: bytes) -> bytes:
        return self._of_one(lambda one: one.contract_result(profile, "getData", key)) or b""

    def read_relay_nonce(self, *, key_manager: str, controller: str, channel: int) -> int | None:
        nonce: int | None = self._of_one(
            lambda one: one.contract_result(key_manager, "getNonce", controller, channel)
        )
        return nonce

    def read_external_executions(
        self, *, key_manager: str, controller: str, from_block: int, to_block: int
    ) -> list[ExternalExecution]:
        # Split into ranges that public nodes accept.
        return [
            execution
            for blocks in _ranges(from_block, to_block, _LOG_BLOCKS)
            for execution in self._of_one(
                partial(_OneNode.executions, address=key_manager, controller=controller, blocks=blocks)
            )
        ]

    def read_sent(self, *, senders: Sequence[str], from_block: int, to_block: int) -> list[SentTransaction]:
        return [
            sent
            for blocks in _ranges(from_block, to_block, _BLOCKS_PER_BATCH)
            for sent in self._of_one(partial(_OneNode.sent, blocks=blocks, senders=set(senders)))
        ]

    def _of_one(self, read: Callable[["_OneNode"], Value]) -> Value:
        return self._nodes.read(lambda node: read(self._web3[node]))


def _ranges(first: int, last: int, size: int) -> list[range]:
    return [range(start, min(start + size, last + 1)) for start in range(first, last + 1, size)]


class _OneNode:
    """Reads from one node. `Node.read` treats any exception that they raise as the node's fault."""

    def __init__(self, node: Node, *, with_l1: bool) -> None:
        self._node, self._with_l1 = node, with_l1
        self._web3 = web3_over(partial(node.batch, checked=True))
        self._contract = self._web3.eth.contract(abi=CONTRACT_ABI)

    def contract_result(self, contract: str, function: str, *arguments: Any) -> Any:
        """Return a contract's result; None if it reverts or returns a value of another type."""
        call = self._contract(_address(contract)).functions[function](*arguments)
        with _web3_errors("eth_call"):
            try:
                return call.call({"gas": READ_GAS})
            except (BadFunctionCallOutput, ContractLogicError, Web3RPCError):
                return None

    def executions(self, *, address: str, controller: str, blocks: range) -> list[ExternalExecution]:
        """Return the transactions of these blocks in which calls of the controller were verified."""
        topics = [PERMISSIONS_VERIFIED_TOPIC, "0x" + controller[2:].lower().rjust(64, "0")]
        with _web3_errors("eth_getLogs"):
            logs = self._web3.eth.get_logs(
                {
                    "address": _address(address),
                    "topics": [HexStr(topic) for topic in topics],
                    "fromBlock": BlockNumber(blocks[0]),
                    "toBlock": BlockNumber(blocks[-1]),
                }
            )
            return list(filter(None, map(self._execution, logs)))

    def sent(self, *, blocks: range, senders: Collection[str]) -> list[SentTransaction]:
        """Return the transactions of these accounts in these blocks."""
        with _web3_errors("eth_getBlockByNumber"):
            with self._web3.batch_requests() as batch:
                for number in blocks:
                    batch.add(self._web3.eth.get_block(number, True))
                bodies: list[Any] = batch.execute()
            transactions = [one for body in bodies for one in body["transactions"] if one["from"] in senders]
            receipts = self._node.batch(
                [receipt_call(one["hash"].to_0x_hex()) for one in transactions], checked=True
            )
            missing = l1_reads.missing_fees(receipts if self._with_l1 else ())
            completed = l1_reads.completed(missing, self._node.batch(missing.calls, checked=True))
            return [
                _sent(one, receipt and completed.get(receipt.transaction_hash, receipt))
                for one, receipt in zip(transactions, receipts, strict=True)
            ]

    def _execution(self, log: LogReceipt) -> ExternalExecution | None:
        """
        Return the transaction of a `PermissionsVerified` log (LSP-6), with the selector in the log.

        None if a reorganisation has removed it, and for malformed logs: an unvetted contract may log arbitrary data
        under the event's name.
        """
        if any(len(topic) != _WORD for topic in log["topics"]):
            raise MalformedResponse("a topic does not have 32 bytes", method="eth_getLogs")
        if log["removed"]:
            return None
        try:
            event = self._contract.events.PermissionsVerified().process_log(log)
            transaction = self._web3.eth.get_transaction(log["transactionHash"])
        except (MismatchedABI, LogTopicError, DecodingError, TransactionNotFound):
            return None
        return ExternalExecution(
            transaction_hash=log["transactionHash"].to_0x_hex(),
            sender=transaction["from"],
            to=transaction["to"],
            calldata=bytes(transaction["input"]),
            selector=bytes(event["args"]["selector"]),
            block_number=log["blockNumber"],
        )


def _sent(transaction: TxData, receipt: Receipt | None) -> SentTransaction:
    if receipt is None:
        raise MalformedResponse("a mined transaction has no receipt", method="eth_getTransactionReceipt")
    return SentTransaction(
        transaction_hash=transaction["hash"].to_0x_hex(),
        sender=transaction["from"],
        account_nonce=transaction["nonce"],
        to=transaction["to"],
        calldata=bytes(transaction["input"]),
        receipt=receipt,
    )


def _address(text: str) -> ChecksumAddress:
    return ChecksumAddress(HexAddress(HexStr(text)))
