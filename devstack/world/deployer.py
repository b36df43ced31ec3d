"""Sending transactions to the dev chain and insisting that they succeed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from eth_account import Account
from eth_account.signers.local import LocalAccount
from eth_utils.address import to_checksum_address

from devstack.rpc import Rpc

ETHER = 10**18
Receipt = dict[str, Any]


class TransactionReverted(RuntimeError):
    """A transaction of the deployer was mined and failed."""


@dataclass(frozen=True)
class Call:
    """One transaction to send; without `to` it deploys `data`."""

    to: str | None = None
    data: bytes = b""
    value: int = 0
    gas: int = 6_000_000


# A block that also takes what others left in the pool may have no room for all; the rest comes in the next.
_MOST_BLOCKS = 10


class Deployer:
    """An account of its own random key that always has money."""

    def __init__(self, rpc: Rpc, private_key: str) -> None:
        self.rpc = rpc
        self.account: LocalAccount = Account.from_key(private_key)
        self._chain_id = int(rpc.call("eth_chainId"), 16)

    def fund(self, wei: int, *addresses: str) -> None:
        """Set the balance of each address."""
        self.rpc.batch([("anvil_setBalance", address, hex(wei)) for address in addresses])

    def send(self, calls: Sequence[Call]) -> list[Receipt]:
        """
        Mine the calls in order, at once and whatever the block time is; return their receipts.

        A block is mined on demand, so transactions of others that wait in the pool are mined too.
        """
        self.fund(1_000_000 * ETHER, self.account.address)
        number = int(self.rpc.call("eth_getTransactionCount", self.account.address, "latest"), 16)
        fee = 4 * int(self.rpc.call("eth_getBlockByNumber", "latest", False)["baseFeePerGas"], 16) + 10**9
        raws = [self._sign(call, number + index, fee) for index, call in enumerate(calls)]
        hashes = self.rpc.batch([("eth_sendRawTransaction", raw) for raw in raws])
        receipts: list[Receipt] = []
        for _ in range(_MOST_BLOCKS):
            self.rpc.call("evm_mine")
            receipts = self.rpc.batch([("eth_getTransactionReceipt", item) for item in hashes])
            if None not in receipts:
                break
        for found, item in zip(receipts, hashes, strict=True):
            if found is None or found["status"] != "0x1":
                raise TransactionReverted(f"transaction {item} failed: {found}")
        return receipts

    def deploy(self, *codes: bytes) -> list[str]:
        """Deploy each creation code in one block; return the addresses."""
        receipts = self.send([Call(data=code) for code in codes])
        return [to_checksum_address(receipt["contractAddress"]) for receipt in receipts]

    def _sign(self, call: Call, number: int, fee: int) -> str:
        fields: dict[str, Any] = {
            "type": 2,
            "chainId": self._chain_id,
            "nonce": number,
            "gas": call.gas,
            "maxFeePerGas": fee,
            "maxPriorityFeePerGas": 10**9,
            "to": call.to or b"",
            "value": call.value,
            "data": call.data,
        }
        return self.account.sign_transaction(fields).raw_transaction.to_0x_hex()
