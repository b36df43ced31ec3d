"""
Sending transactions to the dev chain and insisting that they succeed.

The contracts that stand once on a LUKSO chain and that every profile points to.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from eth_utils.address import to_checksum_address

from devstack.rpc import Rpc
from devstack.toolchain import creation_code
from devstack.world.keys import address_of, sign_transaction

ETHER = 10**18
Receipt = dict[str, Any]


class TransactionReverted(RuntimeError):
    """A transaction of the deployer failed, or is not mined however often it is sent."""


@dataclass(frozen=True)
class Call:
    """One transaction to send; without `to` it deploys `data`."""

    to: str | None = None
    data: bytes = b""
    value: int = 0
    gas: int = 6_000_000


# A block that also holds transactions of others may be full; the rest comes in the next one.
_MOST_BLOCKS = 10
# Mining each one as it comes, the node sometimes keeps one of a batch waiting for another that it has mined already.
_MOST_TRIES = 3


class Deployer:
    """An account of its own random key that always has money."""

    def __init__(self, rpc: Rpc, private_key: str) -> None:
        self.rpc = rpc
        self.address = address_of(private_key)
        self._private_key = private_key
        self._chain_id = int(rpc.call("eth_chainId"), 16)

    def fund(self, wei: int, *addresses: str) -> None:
        """Set the balance of each address."""
        self.rpc.batch([("anvil_setBalance", address, hex(wei)) for address in addresses])

    def send(self, calls: Sequence[Call]) -> list[Receipt]:
        """
        Mine the calls in order, at once and whatever the block time is; return their receipts.

        A block is mined on demand, so transactions of others that wait in the pool are mined too. What the node holds
        back, it is made to forget, and gets once more.
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
        """Send the calls and return the receipts of those that were mined; none of the others can be mined later."""
        self.fund(1_000_000 * ETHER, self.address)
        number = int(self.rpc.call("eth_getTransactionCount", self.address, "latest"), 16)
        # Of the next block: after `evm_revert` anvil goes on from the base fee of blocks that never were.
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
        # Account nonces have no gaps, so all after the first that is not mined are not mined either.
        mined = [receipt for receipt in receipts if receipt is not None]
        if len(mined) < len(calls):
            self.rpc.call("anvil_removePoolTransactions", self.address)
        for receipt in mined:
            if receipt["status"] != "0x1":
                raise TransactionReverted(f"transaction {receipt['transactionHash']} failed: {receipt}")
        return mined

    def deploy(self, *codes: bytes) -> list[str]:
        """Deploy each creation code in one block; return the addresses."""
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


@dataclass(frozen=True)
class Implementations:
    """Their addresses."""

    universal_profile: str
    key_manager: str
    factory: str
    post_deployment_module: str
    receiver_delegate: str


_CONTRACTS = (
    "UniversalProfileInit",
    "LSP6KeyManagerInit",
    "LSP23LinkedContractsFactory",
    "UniversalProfileInitPostDeploymentModule",
    "LSP1UniversalReceiverDelegateUP",
)


def deploy_implementations(deployer: Deployer) -> Implementations:
    """Deploy them all in one block."""
    return Implementations(*deployer.deploy(*map(creation_code, _CONTRACTS)))
