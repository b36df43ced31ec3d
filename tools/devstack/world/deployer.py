"""
Sends transactions to the dev chain.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eth_utils.address import to_checksum_address

from devstack.rpc import Rpc
from devstack.world.keys import address_of, sign_transaction

ETHER = 10**18
Receipt = dict[str, Any]


class TransactionReverted(RuntimeError):
    """A transaction of the deployer failed, or was not mined after several attempts."""


@dataclass(frozen=True)
class Call:
    """One transaction to send; without `to` it deploys `data`."""

    to: str | None = None
    data: bytes = b""
    value: int = 0
    gas: int = 6_000_000


# A block may be full with other transactions; the rest is mined in the next one.
_MOST_BLOCKS = 10
# With automine, anvil sometimes keeps a transaction queued behind another one that it has already mined.
_MOST_TRIES = 3


class Deployer:
    """An account with a random key and unlimited LYX."""

    def __init__(self, rpc: Rpc, private_key: str) -> None:
        self.rpc = rpc
        self.address = address_of(private_key)
        self._private_key = private_key
        self._chain_id = int(rpc.call("eth_chainId"), 16)

    def fund(self, wei: int, *addresses: str) -> None:
        """Set the balance of each address."""
        self.rpc.batch([("anvil_setBalance", address, hex(wei)) for address in addresses])

    def set_contract(self, address: str, code: str, storage: Mapping[str, str]) -> None:
        """Write a contract's code and storage into the chain's state."""
        slots = [
            ("anvil_setStorageAt", address, hex(int(slot, 16)), value) for slot, value in storage.items()
        ]
        self.rpc.batch([("anvil_setCode", address, code), *slots])

    def send(self, calls: Sequence[Call]) -> list[Receipt]:
        """
        Mine the calls in order, independent of the block time; return their receipts.

        Blocks are mined on demand, so other pending transactions are mined too. Transactions that stay queued are
        dropped from the pool and sent again.
        """
        receipts: list[Receipt] = []
        for _ in range(_MOST_TRIES):
            receipts += self._mined(calls[len(receipts) :])
            if len(receipts) == len(calls):
                return receipts
        pool = self.rpc.call("txpool_status")
        raise TransactionReverted(
            f"{len(calls) - len(receipts)} transactions are not mined; the pool: {pool}"
        )

    def _mined(self, calls: Sequence[Call]) -> list[Receipt]:
        """Send the calls and return the receipts of the mined ones; the others are dropped."""
        self.fund(1_000_000 * ETHER, self.address)
        number = int(self.rpc.call("eth_getTransactionCount", self.address, "latest"), 16)
        # Of the pending block, because after `evm_revert` anvil keeps the base fee of the reverted blocks.
        base_fee = self.rpc.call("eth_feeHistory", "0x1", "latest", [])["baseFeePerGas"][-1]
        fee = 4 * int(base_fee, 16) + 10**9
        raws = [self._sign(call, number + index, fee) for index, call in enumerate(calls)]
        hashes = self.rpc.batch([("eth_sendRawTransaction", raw) for raw in raws])
        receipts: list[Receipt | None] = []
        for _ in range(_MOST_BLOCKS):
            self.rpc.call("evm_mine")
            receipts = self.rpc.batch([("eth_getTransactionReceipt", item) for item in hashes])
            if None not in receipts:
                break
        # Account nonces have no gaps, so no transaction after an unmined one is mined.
        mined = [receipt for receipt in receipts if receipt is not None]
        if len(mined) < len(calls):
            self.rpc.call("anvil_removePoolTransactions", self.address)
        for receipt in mined:
            if receipt["status"] != "0x1":
                raise TransactionReverted(f"transaction {receipt['transactionHash']} failed: {receipt}")
        return mined

    def deploy(self, *codes: bytes) -> list[str]:
        """Deploy these creation codes in one block; return the addresses."""
        receipts = self.send([Call(data=code) for code in codes])
        return [to_checksum_address(receipt["contractAddress"]) for receipt in receipts]

    def _sign(self, call: Call, number: int, fee: int) -> str:
        fields: dict[str, Any] = {
            "chainId": self._chain_id,
            "nonce": number,
            "gas": call.gas,
            "maxFeePerGas": fee,
            "maxPriorityFeePerGas": 10**9,
            "to": bytes.fromhex((call.to or "").removeprefix("0x")),
            "value": call.value,
            "data": call.data,
        }
        return sign_transaction(self._private_key, fields)
