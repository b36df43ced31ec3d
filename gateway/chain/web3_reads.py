"""
Reads by web3.py over our nodes, with the same connections, fail-over and checks.

Reads that relay calls, sign-ins and quotas wait for are batches of `client` and `views`, which take a small part of
the processor time. Tests compare both.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

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
from web3.types import BlockData, LogReceipt, RPCEndpoint, RPCError, RPCResponse, TxData, TxReceipt

from gateway.chain.contracts import CONTRACT_ABI, PERMISSIONS_VERIFIED_TOPIC
from gateway.chain.node_errors import is_call_error
from gateway.chain.nodes import Nodes
from gateway.chain.relay_states import READ_GAS
from gateway.chain.rpc import Call, RpcError, unreadable
from gateway.chain.types import ExternalExecution, Head, Receipt, SentTransaction

_WORD = 32
_LOG_BLOCKS = 1_000
# With all their transactions; a whole block may have megabytes.
_BLOCKS_PER_BATCH = 20
_PROBE_SECONDS = 0.5


class NodesProvider(JSONBaseProvider):
    """A web3.py provider over a function that sends a batch of calls."""

    def __init__(self, send: Callable[[Sequence[Call]], list[Any]]) -> None:
        super().__init__()
        self._send = send

    def make_request(self, method: RPCEndpoint, params: Any) -> RPCResponse:
        (response,) = self.make_batch_request([(method, params)])
        return response

    def make_batch_request(self, requests: list[tuple[RPCEndpoint, Any]]) -> list[RPCResponse]:
        return [
            _response(reply) for reply in self._send([(method, list(params)) for method, params in requests])
        ]


def _response(reply: Any) -> RPCResponse:
    if not isinstance(reply, RpcError):
        return {"jsonrpc": "2.0", "id": 0, "result": reply}
    # Without the revert data: web3.py would fetch a URL from it (EIP-3668), and raises KeyError for unknown panics.
    error: RPCError = {"code": reply.code, "message": reply.message}
    return {"jsonrpc": "2.0", "id": 0, "error": error}


def web3_over(send: Callable[[Sequence[Call]], list[Any]]) -> Web3:
    """Return a web3.py over `send`, without its default middleware, which would read the chain id before calls."""
    return Web3(NodesProvider(send), middleware=[ExtraDataToPOAMiddleware])


@contextmanager
def web3_errors() -> Iterator[None]:
    """Raise `NodeUnavailable` for the errors that web3.py raises about malformed responses."""
    try:
        yield
    except (Web3Exception, ValueError, TypeError, KeyError, AttributeError) as error:
        raise unreadable() from error


def head_of(block: BlockData) -> Head:
    """Return the block as a `Head`."""
    return Head(
        number=int(block["number"]),
        timestamp=int(block["timestamp"]),
        base_fee_wei=int(block["baseFeePerGas"]),
        block_hash=block["hash"].to_0x_hex(),
    )


class Web3Reads:
    """The methods of `ChainClient` that go through web3.py."""

    def __init__(self, nodes: Nodes) -> None:
        self._web3 = web3_over(partial(nodes.batch, accepts=is_call_error, checked=True))
        self._probes = web3_over(partial(nodes.probe, timeout_seconds=_PROBE_SECONDS))
        self._contract = self._web3.eth.contract(abi=CONTRACT_ABI)

    def head(self) -> Head:
        with web3_errors():
            return head_of(self._web3.eth.get_block("latest"))

    def probe_code(self, *, address: str) -> bytes:
        with web3_errors():
            return bytes(self._probes.eth.get_code(_address(address)))

    def read_data(self, *, profile: str, key: bytes) -> bytes:
        return self._answer(profile, "getData", key) or b""

    def read_relay_nonce(self, *, key_manager: str, controller: str, channel: int) -> int | None:
        nonce: int | None = self._answer(key_manager, "getNonce", controller, channel)
        return nonce

    def read_external_executions(
        self, *, key_manager: str, controller: str, from_block: int, to_block: int
    ) -> list[ExternalExecution]:
        topics = [PERMISSIONS_VERIFIED_TOPIC, "0x" + controller[2:].lower().rjust(64, "0")]
        executions: list[ExternalExecution] = []
        with web3_errors():
            # In ranges that public nodes accept.
            for first in range(from_block, to_block + 1, _LOG_BLOCKS):
                logs = self._web3.eth.get_logs(
                    {
                        "address": _address(key_manager),
                        "topics": [HexStr(topic) for topic in topics],
                        "fromBlock": BlockNumber(first),
                        "toBlock": BlockNumber(min(first + _LOG_BLOCKS - 1, to_block)),
                    }
                )
                executions += filter(None, map(self._execution, logs))
        return executions

    def read_sent(self, *, senders: Sequence[str], from_block: int, to_block: int) -> list[SentTransaction]:
        sent: list[SentTransaction] = []
        for first in range(from_block, to_block + 1, _BLOCKS_PER_BATCH):
            blocks = range(first, min(first + _BLOCKS_PER_BATCH, to_block + 1))
            with web3_errors():
                sent += self._sent_in(blocks, set(senders))
        return sent

    def _sent_in(self, blocks: Iterable[int], senders: Collection[str]) -> list[SentTransaction]:
        eth = self._web3.eth
        bodies = self._batch([partial(eth.get_block, number, True) for number in blocks])
        transactions = [one for body in bodies for one in body["transactions"] if one["from"] in senders]
        receipts = self._batch([partial(eth.get_transaction_receipt, one["hash"]) for one in transactions])
        return [_sent(one, receipt) for one, receipt in zip(transactions, receipts, strict=True)]

    def _batch(self, reads: Sequence[Callable[[], Any]]) -> list[Any]:
        """Return the results of these reads, in one trip."""
        with self._web3.batch_requests() as batch:
            for read in reads:
                batch.add(read())
            return batch.execute() if reads else []

    def _answer(self, contract: str, function: str, *arguments: Any) -> Any:
        """Return a contract's answer; None if it reverts or answers a value of another type."""
        call = self._contract(_address(contract)).functions[function](*arguments)
        with web3_errors():
            try:
                return call.call({"gas": READ_GAS})
            except (BadFunctionCallOutput, ContractLogicError, Web3RPCError):
                return None

    def _execution(self, log: LogReceipt) -> ExternalExecution | None:
        """
        Return the transaction that a `PermissionsVerified` log (LSP-6) belongs to, and the selector that it names.

        None if a reorganisation has removed it, and for any other log: an unvetted contract may log arbitrary data
        under the event's name.
        """
        if any(len(topic) != _WORD for topic in log["topics"]):
            raise unreadable()
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


def _sent(transaction: TxData, receipt: TxReceipt) -> SentTransaction:
    return SentTransaction(
        transaction_hash=transaction["hash"].to_0x_hex(),
        sender=transaction["from"],
        account_nonce=transaction["nonce"],
        to=transaction["to"],
        calldata=bytes(transaction["input"]),
        receipt=Receipt(
            transaction_hash=receipt["transactionHash"].to_0x_hex(),
            block_number=receipt["blockNumber"],
            block_hash=receipt["blockHash"].to_0x_hex(),
            succeeded=receipt["status"] == 1,
            gas_used=receipt["gasUsed"],
            effective_gas_price_wei=receipt["effectiveGasPrice"],
        ),
    )


def _address(text: str) -> ChecksumAddress:
    return ChecksumAddress(HexAddress(HexStr(text)))
