"""The chain of the journeys: mining, and reading."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from eth_utils.address import to_checksum_address

from devstack.environment import CREDIT_WEI
from devstack.rpc import Rpc

BLOCK_SECONDS = 1
GWEI = 10**9


@dataclass(frozen=True)
class Mined:
    """A mined transaction."""

    transaction_hash: str
    sender: str
    to: str
    account_nonce: int
    place: tuple[int, int]
    succeeded: bool
    gas_used: int
    gas_price: int

    @property
    def credits(self) -> int:
        """What it cost, in credits, rounded up."""
        return -(-self.gas_used * self.gas_price // CREDIT_WEI)


class Chain:
    """What tests read and change on one anvil node."""

    def __init__(self, rpc: Rpc) -> None:
        self.rpc = rpc

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Mine nothing for the length of the block."""
        self.pause()
        try:
            yield
        finally:
            self.resume()

    def pause(self) -> None:
        """Stop mining."""
        self.rpc.call("evm_setIntervalMining", 0)

    def resume(self) -> None:
        """Mine a block each second again."""
        self.rpc.call("evm_setIntervalMining", BLOCK_SECONDS)

    def mine(self, blocks: int = 1) -> None:
        """Mine now."""
        self.rpc.call("anvil_mine", hex(blocks))

    def price_next_block(self, base_fee_wei: int) -> None:
        """Mine a block with this base fee; those after it move from there, by an eighth at most."""
        self.rpc.call("anvil_setNextBlockBaseFeePerGas", hex(base_fee_wei))
        self.mine()

    def advance(self, seconds: int, *, base_fee_wei: int = GWEI) -> None:
        """Mine a block that much later, with this base fee; the chain's clock stays ahead from then on."""
        self.rpc.call("evm_increaseTime", seconds)
        self.price_next_block(base_fee_wei)

    def balance(self, address: str) -> int:
        """Return the balance of an account in wei."""
        return int(self.rpc.call("eth_getBalance", address, "latest"), 16)

    def set_balance(self, address: str, wei: int) -> None:
        """Set the balance of an account."""
        self.rpc.call("anvil_setBalance", address, hex(wei))

    @property
    def height(self) -> int:
        """The number of the newest block."""
        return int(self.rpc.call("eth_blockNumber"), 16)

    @property
    def now(self) -> int:
        """The time of the newest block, in unix seconds."""
        return int(self.rpc.call("eth_getBlockByNumber", "latest", False)["timestamp"], 16)

    def knows(self, transaction_hash: str) -> bool:
        """Return whether the node has the transaction, mined or waiting."""
        return self.rpc.call("eth_getTransactionByHash", transaction_hash) is not None

    def account_nonce(self, address: str) -> int:
        """Return how many transactions of the account are mined."""
        return int(self.rpc.call("eth_getTransactionCount", address, "latest"), 16)

    def mined(self, *transaction_hashes: str) -> list[Mined]:
        """Return the mined transactions of these hashes; each must have been mined."""
        receipts = self.rpc.batch([("eth_getTransactionReceipt", each) for each in transaction_hashes])
        bodies = self.rpc.batch([("eth_getTransactionByHash", each) for each in transaction_hashes])
        return [_mined(body, receipt) for body, receipt in zip(bodies, receipts, strict=True)]

    def sent_to(self, address: str, *, since: int) -> list[str]:
        """Return the hashes of all transactions to an address in the blocks after number `since`."""
        numbers = range(since + 1, self.height + 1)
        blocks = self.rpc.batch([("eth_getBlockByNumber", hex(number), True) for number in numbers])
        return [
            str(transaction["hash"])
            for block in blocks
            for transaction in block["transactions"]
            if transaction["to"] and transaction["to"].lower() == address.lower()
        ]


def _mined(body: dict[str, Any], receipt: dict[str, Any]) -> Mined:
    return Mined(
        transaction_hash=str(receipt["transactionHash"]),
        sender=to_checksum_address(receipt["from"]),
        to=to_checksum_address(receipt["to"]),
        account_nonce=int(body["nonce"], 16),
        place=(int(receipt["blockNumber"], 16), int(receipt["transactionIndex"], 16)),
        succeeded=receipt["status"] == "0x1",
        gas_used=int(receipt["gasUsed"], 16),
        gas_price=int(receipt["effectiveGasPrice"], 16),
    )
