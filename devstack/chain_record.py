"""What the chain itself says of a relay transaction, read over JSON-RPC."""

from dataclasses import dataclass
from typing import Any

from eth_abi.abi import decode
from eth_utils.address import to_checksum_address

from devstack.rpc import Rpc
from devstack.world.abi import calldata, selector

_EXECUTE_RELAY_CALL = selector("executeRelayCall(bytes,uint256,uint256,bytes)")


@dataclass(frozen=True)
class ChainRecord:
    """A mined transaction."""

    relayer: str
    key_manager: str
    payload: bytes
    succeeded: bool
    block: int
    gas_used: int
    gas_price: int

    @property
    def cost_wei(self) -> int:
        """What the relayer paid."""
        return self.gas_used * self.gas_price


def read_record(rpc: Rpc, transaction_hash: str) -> ChainRecord:
    """Return the record of a mined transaction; `LookupError` where the chain has none."""
    question = [
        ("eth_getTransactionByHash", transaction_hash),
        ("eth_getTransactionReceipt", transaction_hash),
    ]
    transaction, receipt = rpc.batch(question)
    if receipt is None:
        raise LookupError(f"the chain has no receipt of {transaction_hash}")
    return ChainRecord(
        relayer=to_checksum_address(receipt["from"]),
        key_manager=to_checksum_address(receipt["to"]),
        payload=_payload(bytes.fromhex(transaction["input"][2:])),
        succeeded=receipt["status"] == "0x1",
        block=int(receipt["blockNumber"], 16),
        gas_used=int(receipt["gasUsed"], 16),
        gas_price=int(receipt["effectiveGasPrice"], 16),
    )


def ask(rpc: Rpc, answer_type: str, contract: str, signature: str, *arguments: Any) -> Any:
    """Return the answer of a contract's view function on the latest block."""
    data = "0x" + calldata(signature, *arguments).hex()
    raw = bytes.fromhex(rpc.call("eth_call", {"to": contract, "data": data}, "latest")[2:])
    return decode([answer_type], raw)[0]


def balance(rpc: Rpc, address: str) -> int:
    """Return the balance in wei on the latest block."""
    return int(rpc.call("eth_getBalance", address, "latest"), 16)


def _payload(data: bytes) -> bytes:
    if data[:4] != _EXECUTE_RELAY_CALL:
        return b""
    payload: bytes = decode(["bytes", "uint256", "uint256", "bytes"], data[4:])[3]
    return payload
