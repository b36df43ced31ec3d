"""Control of the dev chain, and a client that injects faults."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Protocol

from eth_account import Account

from devstack.rpc import Rpc
from devstack.services.stack import Services
from devstack.world.deployer import Call as WorldCall
from devstack.world.world import World
from gateway.chain.client import JsonRpcChainClient, set_chain_client
from gateway.chain.contracts import encode_execute_relay_call
from gateway.chain.lsp25 import RelayCall
from gateway.chain.node import Node
from gateway.chain.node_errors import send_outcome
from gateway.chain.rpc import Call, RpcError
from gateway.chain.types import ChainView, Head, RelayQuery, RelayState, SendKind, SendOutcome, Trial
from tests.fakes.pool import read_transaction

GWEI = 10**9


class Place(Protocol):
    """A development chain: its node, its id, and the contracts on it."""

    @property
    def rpc(self) -> Rpc: ...
    @property
    def chain_id(self) -> int: ...
    @property
    def world(self) -> World: ...


class Chain:
    """The chain of the run, or another one. Blocks come only when a test mines."""

    def __init__(self, services: Place) -> None:
        self._services = services
        self._rpc = services.rpc

    def mine(self, blocks: int = 1) -> None:
        """Add blocks; the first one takes whatever in the pool is due."""
        self._rpc.call("anvil_mine", hex(blocks))

    def time(self) -> int:
        """Return the newest block's unix time."""
        return int(self._rpc.call("eth_getBlockByNumber", "latest", False)["timestamp"], 16)

    def reorganise(self, depth: int, *blocks: Sequence[bytes]) -> None:
        """
        Replace the newest blocks by as many others; what they held is forgotten, by the pool as well.

        The first of the new blocks hold these raw transactions; the rest are empty.
        """
        placed = [["0x" + bytes(raw).hex(), place] for place, block in enumerate(blocks) for raw in block]
        self._rpc.call("anvil_reorg", depth, placed)

    def snapshot(self) -> str:
        """Remember the chain as it is; return a name for it."""
        return str(self._rpc.call("evm_snapshot"))

    def revert(self, snapshot: str) -> None:
        """Go back to a snapshot: the blocks since then never were."""
        assert self._rpc.call("evm_revert", snapshot) is True

    @contextmanager
    def later(self, timestamp: int) -> Iterator[None]:
        """Let the next block be of that moment; afterwards the chain is as it was, and so is its clock."""
        snapshot = self.snapshot()
        self._rpc.call("evm_setNextBlockTimestamp", timestamp)
        try:
            yield
        finally:
            self.revert(snapshot)

    def drop(self, transaction_hash: str) -> None:
        """Lose one transaction from the pool."""
        self._rpc.call("anvil_dropTransaction", transaction_hash)

    def set_base_fee(self, wei: int) -> None:
        """Mine an empty pool's block with this base fee; those after it move back by an eighth each."""
        self._rpc.call("anvil_setNextBlockBaseFeePerGas", hex(wei))
        self.mine()

    def drop_pool(self) -> None:
        """Lose every transaction that is not mined."""
        self._rpc.call("anvil_dropAllTransactions")

    def receipt(self, transaction_hash: str) -> dict[str, Any] | None:
        """Return the receipt as the node returns it."""
        receipt: dict[str, Any] | None = self._rpc.call("eth_getTransactionReceipt", transaction_hash)
        return receipt

    def knows(self, transaction_hash: str) -> bool:
        """Return whether the node holds the transaction, mined or not."""
        return self._rpc.call("eth_getTransactionByHash", transaction_hash) is not None

    def transaction(self, transaction_hash: str) -> dict[str, Any]:
        """Return the transaction as the node returns it."""
        transaction: dict[str, Any] = self._rpc.call("eth_getTransactionByHash", transaction_hash)
        return transaction

    def account_nonce(self, address: str) -> int:
        """Return how many transactions of the account are mined."""
        return int(self._rpc.call("eth_getTransactionCount", address, "latest"), 16)

    def fund(self, wei: int, *addresses: str) -> None:
        """Set the balance of each address."""
        self._services.world.fund(wei, *addresses)

    def delegate(self, address: str, *, to: str = "ab" * 20) -> None:
        """Give the account the code of a delegation (EIP-7702); with an empty `to`, take it away."""
        self._rpc.call("anvil_setCode", address, f"0xef0100{to}" if to else "0x")

    def position(self) -> tuple[str, dict[str, str]]:
        """Return the height and the size of the pool: what changes when anything was sent or mined."""
        return self._rpc.call("eth_blockNumber"), self._rpc.call("txpool_status")

    def execute_externally(self, call: RelayCall) -> None:
        """Execute the call from an account that is not a relayer's, in a block of its own."""
        data = encode_execute_relay_call(
            signature=call.signature, nonce=call.relay_nonce, validity=call.validity, payload=call.payload
        )
        self._services.world.deployer.send([WorldCall(call.key_manager, data, gas=1_000_000)])

    def pay_tips(self, *tips_wei: int) -> int:
        """Send one small transaction for each tip from a new account, each in its own block; return what they cost."""
        sender, spent = Account.create(), 0
        self.fund(10**18, sender.address)
        for nonce, tip in enumerate(tips_wei):
            signed = sender.sign_transaction(
                {
                    "type": 2,
                    "chainId": self._services.chain_id,
                    "nonce": nonce,
                    "maxFeePerGas": tip + 10 * GWEI,
                    "maxPriorityFeePerGas": tip,
                    "gas": 21_000,
                    "to": sender.address,
                    "value": 0,
                    "data": b"",
                }
            )
            self._rpc.call("eth_sendRawTransaction", "0x" + bytes(signed.raw_transaction).hex())
            self.mine()
            receipt = self.receipt("0x" + bytes(signed.hash).hex()) or {}
            spent += int(receipt["gasUsed"], 16) * int(receipt["effectiveGasPrice"], 16)
        return spent

    def recent_tips(self, blocks: int) -> list[int]:
        """Return the median tips of the newest blocks, in wei per gas, without empty blocks."""
        history = self._rpc.call("eth_feeHistory", hex(blocks), "latest", [50])
        rows = zip(history["reward"], history["gasUsedRatio"], strict=False)
        return [int(row[0], 16) for row, ratio in rows if ratio]

    def use_key_elsewhere(self, private_key: str, *, account_nonce: int) -> str:
        """Send a transaction from outside the service, signed by a relayer's key; return its hash."""
        account = Account.from_key(private_key)
        signed = account.sign_transaction(
            {
                "type": 2,
                "chainId": self._services.chain_id,
                "nonce": account_nonce,
                "maxFeePerGas": 10 * GWEI,
                "maxPriorityFeePerGas": GWEI,
                "gas": 21_000,
                "to": account.address,
                "value": 1,
                "data": b"",
            }
        )
        return str(self._rpc.call("eth_sendRawTransaction", "0x" + bytes(signed.raw_transaction).hex()))


class FaultyClient(JsonRpcChainClient):
    """
    The real client, with faults on the way that a real node shows only under stress.

    `sent` keeps the raw transactions that reached the node, `batches` how many left together.
    """

    def __init__(self, services: Services) -> None:
        super().__init__([services.rpc_url], timeout_seconds=60)
        self.requests = 0
        for node in self.pool:
            self._count_reads(node)
        # The gas limits that were tried, and None for each estimate in their place; the estimates after them.
        self.trials: list[int | None] = []
        self.estimates = 0
        # Of these trials, whether the call was tried at the highest limit too.
        self.compared: list[bool] = []
        # The relay nonce to report instead of the chain's, with calls that would succeed.
        self.lagging_nonce: int | None = None
        self.sent: list[bytes] = []
        # The node refuses transactions with a lower tip, in geth's words.
        self.least_tip_wei = 0
        self.batches: list[int] = []
        self._prepared: list[SendOutcome] = []
        self._meanwhile: dict[str, Callable[[], object]] = {}

    def meanwhile(self, method: str, action: Callable[[], object]) -> None:
        """Call `action` once, just before this method next asks the node."""
        self._meanwhile[method] = action

    def answer_next(self, *kinds: SendKind, message: str = "as prepared") -> None:
        """Respond to the next raw transactions with these send errors, one each; they do not reach the node."""
        self._prepared += [SendOutcome(kind, message) for kind in kinds]

    @property
    def prepared(self) -> int:
        """How many prepared send errors no transaction has met."""
        return len(self._prepared)

    def head(self) -> Head:
        self._run_meanwhile("head")
        return super().head()

    def read_relay_states(self, queries: Sequence[RelayQuery]) -> list[RelayState]:
        self._run_meanwhile("read_relay_states")
        self.trials += [query.gas_limit for query in queries if query.calldata]
        self.compared += [query.compares for query in queries if query.calldata]
        states = super().read_relay_states(queries)
        if self.lagging_nonce is None:
            return states
        executable = Trial(gas_limit=200_000, gas_used=150_000)
        return [replace(state, relay_nonce=self.lagging_nonce, trial=executable) for state in states]

    def simulate_relay_call(self, **arguments: Any) -> int:
        self.estimates += 1
        return super().simulate_relay_call(**arguments)

    def read_chain(self, **arguments: Any) -> ChainView:
        self._run_meanwhile("read_chain")
        return super().read_chain(**arguments)

    def read_relay_nonce(self, **arguments: Any) -> int | None:
        self._run_meanwhile("read_relay_nonce")
        return super().read_relay_nonce(**arguments)

    def send_raw_transactions(self, raw: Sequence[bytes]) -> list[SendOutcome]:
        self._run_meanwhile("send_raw_transactions")
        self.batches.append(len(raw))
        prepared, self._prepared = self._prepared[: len(raw)], self._prepared[len(raw) :]
        outcomes: list[SendOutcome | None] = [*prepared, *map(self._refusal_of, raw[len(prepared) :])]
        forwarded = [one for one, outcome in zip(raw, outcomes, strict=True) if outcome is None]
        self.sent += forwarded
        others = iter(super().send_raw_transactions(forwarded))
        return [next(others) if outcome is None else outcome for outcome in outcomes]

    def _refusal_of(self, raw: bytes) -> SendOutcome | None:
        tip = read_transaction(raw).tip_wei
        if tip >= self.least_tip_wei:
            return None
        words = f"transaction underpriced: tip needed {self.least_tip_wei}, tip permitted {tip}"
        return send_outcome(RpcError(-32000, words))

    def _run_meanwhile(self, method: str) -> None:
        self._meanwhile.pop(method, lambda: None)()

    def _count_reads(self, node: Node) -> None:
        ask = node.ask

        def counted(calls: Sequence[Call], **options: Any) -> list[Any]:
            self.requests += bool(calls) and calls[0].method != "eth_sendRawTransaction"
            return ask(calls, **options)

        vars(node)["ask"] = counted


@contextmanager
def node_away() -> Iterator[None]:
    """Point the service at a port where nothing listens."""
    set_chain_client(JsonRpcChainClient(["http://127.0.0.1:1"], timeout_seconds=1))
    try:
        yield
    finally:
        set_chain_client(None)
