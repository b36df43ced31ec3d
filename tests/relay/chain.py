"""The levers of the dev chain: when blocks come, what gas costs, what the node knows."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from eth_account import Account

from devstack.services import Services
from devstack.world import Call as WorldCall
from gateway.chain.client import set_chain_client
from gateway.chain.contracts import encode_execute_relay_call
from gateway.chain.jsonrpc import JsonRpcChainClient
from gateway.chain.lsp25 import RelayCall
from gateway.chain.states import RelayState, SendKind, SendOutcome
from gateway.chain.transport import Call

GWEI = 10**9


class Chain:
    """The chain of the run. Blocks come only when a test mines."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._rpc = services.rpc

    def mine(self, blocks: int = 1) -> None:
        """Add blocks; the first one takes whatever in the pool is due."""
        self._rpc.call("anvil_mine", hex(blocks))

    def reorganise(self, depth: int) -> None:
        """Replace the newest blocks by empty ones; what they held is forgotten, by the pool as well."""
        self._rpc.call("anvil_reorg", depth, [])

    def set_base_fee(self, wei: int) -> None:
        """Mine an empty pool's block with this base fee; those after it move back by an eighth each."""
        self._rpc.call("anvil_setNextBlockBaseFeePerGas", hex(wei))
        self.mine()

    def drop_pool(self) -> None:
        """Lose every transaction that is not mined."""
        self._rpc.call("anvil_dropAllTransactions")

    def receipt(self, transaction_hash: str) -> dict[str, Any] | None:
        """Return the receipt as the node tells it."""
        found: dict[str, Any] | None = self._rpc.call("eth_getTransactionReceipt", transaction_hash)
        return found

    def knows(self, transaction_hash: str) -> bool:
        """Say whether the node holds the transaction, mined or not."""
        return self._rpc.call("eth_getTransactionByHash", transaction_hash) is not None

    def transaction(self, transaction_hash: str) -> dict[str, Any]:
        """Return the transaction as the node tells it."""
        found: dict[str, Any] = self._rpc.call("eth_getTransactionByHash", transaction_hash)
        return found

    def account_nonce(self, address: str) -> int:
        """Return how many transactions of the account are mined."""
        return int(self._rpc.call("eth_getTransactionCount", address, "latest"), 16)

    def fund(self, wei: int, *addresses: str) -> None:
        """Set the balance of each address."""
        self._services.world.fund(wei, *addresses)

    def position(self) -> tuple[str, dict[str, str]]:
        """Return the height and the size of the pool: what changes when anything was sent or mined."""
        return self._rpc.call("eth_blockNumber"), self._rpc.call("txpool_status")

    def execute_by_stranger(self, call: RelayCall) -> None:
        """Let somebody who is no relayer put the call on chain, in a block of its own."""
        data = encode_execute_relay_call(
            signature=call.signature, nonce=call.relay_nonce, validity=call.validity, payload=call.payload
        )
        self._services.world.deployer.send([WorldCall(call.key_manager, data, gas=1_000_000)])

    def use_key_elsewhere(self, private_key: str, *, account_nonce: int) -> str:
        """Send a transaction that the service knows nothing of, signed by a relayer's key; return its hash."""
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


class MeddlingClient(JsonRpcChainClient):
    """The real client, with faults on the way that a real node shows only under stress."""

    def __init__(self, services: Services) -> None:
        super().__init__([services.rpc_url], timeout_seconds=10)
        self.sent: list[bytes] = []
        self.requests = 0
        self._meanwhile: list[Callable[[], object]] = []
        self.verdicts: list[SendOutcome] = []

    def _read(self, *calls: Call) -> list[Any]:
        self.requests += 1
        return super()._read(*calls)

    def meanwhile(self, happens: Callable[[], object]) -> None:
        """Let something else happen once, while the next preflight waits for the node."""
        self._meanwhile.append(happens)

    def read_relay_state(self, **question: Any) -> RelayState:
        """Let the world go on first."""
        while self._meanwhile:
            self._meanwhile.pop()()
        return super().read_relay_state(**question)

    def send_raw_transactions(self, raw: Sequence[bytes]) -> list[SendOutcome]:
        """Give the prepared verdicts first, one per transaction; what is left goes to the node."""
        told, self.verdicts = self.verdicts[: len(raw)], self.verdicts[len(raw) :]
        forwarded = list(raw[len(told) :])
        self.sent += forwarded
        return told + super().send_raw_transactions(forwarded)

    def refuse_next(self, kind: SendKind, message: str = "") -> None:
        """Meet the next raw transaction with this verdict."""
        self.verdicts.append(SendOutcome(kind, message))


@contextmanager
def node_away() -> Iterator[None]:
    """Point the service at a port where nobody listens."""
    set_chain_client(JsonRpcChainClient(["http://127.0.0.1:1"], timeout_seconds=1))
    try:
        yield
    finally:
        set_chain_client(None)
