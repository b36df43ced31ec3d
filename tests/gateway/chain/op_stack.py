"""A chain of the OP stack, and transactions on it."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from coincurve import PrivateKey

from devstack.services.anvil import OpAnvil
from gateway.chain.client import JsonRpcChainClient
from gateway.chain.types import Receipt
from signer.transactions import UnsignedTransaction, address_of, sign_with

GWEI = 10**9


class OpStack:
    """The node, and an account that pays for transactions with random data."""

    def __init__(self, node: OpAnvil) -> None:
        self.node = node
        self.client = JsonRpcChainClient([node.url], timeout_seconds=60, with_l1=True)
        self._key = PrivateKey(secrets.token_bytes(32))
        self.address = address_of(self._key.public_key)
        self.node.rpc.call("anvil_setBalance", self.address, hex(10**20))
        self._sent = 0

    def send(self, data: bytes) -> tuple[str, int]:
        """Mine a transaction with this data in a block of its own; return its hash, and what it cost its sender."""
        before = self.balance()
        unsigned = UnsignedTransaction(
            self.node.chain_id, self._sent, GWEI, 10 * GWEI, 5_000_000, "0x" + "11" * 20, data
        )
        signed = sign_with(self._key, unsigned)
        self._sent += 1
        self.node.rpc.call("eth_sendRawTransaction", "0x" + signed.raw.hex())
        self.node.rpc.call("evm_mine")
        return signed.transaction_hash, before - self.balance()

    def balance(self) -> int:
        return int(self.node.rpc.call("eth_getBalance", self.address, "latest"), 16)

    def receipt(self, transaction_hash: str) -> Receipt:
        """Return the receipt as the service reads it."""
        view = self.client.read_chain(transaction_hashes=[transaction_hash], accounts=[], confirmations=1)
        return view.receipts[transaction_hash]


@contextmanager
def running_op_stack(folder: Path) -> Iterator[OpStack]:
    """Run a node that mines on demand only, with L1 prices."""
    node = OpAnvil(folder, folder / "log", block_time=None)
    with node.running():
        node.mine_a_past()
        node.rpc.call("evm_setAutomine", False)
        yield OpStack(node)
