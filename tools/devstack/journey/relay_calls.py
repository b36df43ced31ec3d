"""Relay calls of the journey: sent, waited for, and compared with the chain."""

import math
import secrets
from dataclasses import dataclass, replace
from typing import Any

from eth_abi.abi import decode
from eth_utils.address import to_checksum_address

from credit_relay_client import RelayProblem
from credit_relay_client.schema import TransactionStatus
from devstack.console import echo
from devstack.environment import CREDIT_WEI
from devstack.journey.checks import Mismatch, expect
from devstack.rpc import Rpc
from devstack.wallet import Wallet
from devstack.world.abi import calldata, selector

_PATIENCE_SECONDS = 300
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
        """The relayer's cost in wei."""
        return self.gas_used * self.gas_price


def read_record(rpc: Rpc, transaction_hash: str) -> ChainRecord:
    """Return the record of a mined transaction; raise `LookupError` if the chain has none."""
    methods = ("eth_getTransactionByHash", "eth_getTransactionReceipt")
    transaction, receipt = rpc.batch([(method, transaction_hash) for method in methods])
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


def call_view(rpc: Rpc, answer_type: str, contract: str, signature: str, *arguments: Any) -> Any:
    """Return the result of a contract's view function at the latest block."""
    data = "0x" + calldata(signature, *arguments).hex()
    raw = bytes.fromhex(rpc.call("eth_call", {"to": contract, "data": data}, "latest")[2:])
    return decode([answer_type], raw)[0]


def balance(rpc: Rpc, address: str, *, at: str = "latest") -> int:
    """Return the balance in wei at a block, by default the latest."""
    return int(rpc.call("eth_getBalance", address, at), 16)


def _payload(data: bytes) -> bytes:
    if data[:4] != _EXECUTE_RELAY_CALL:
        return b""
    payload: bytes = decode(["bytes", "uint256", "uint256", "bytes"], data[4:])[3]
    return payload


def write_data(wallet: Wallet) -> int:
    """Write data to the profile and check it; return the credits used."""
    key, value = secrets.token_bytes(32), secrets.token_bytes(40)
    used = _relay(wallet, "setData", calldata("setData(bytes32,bytes)", key, value))
    data = call_view(wallet.rpc, "bytes", wallet.profile_address, "getData(bytes32)", key)
    expect("the data of the profile", data, value)
    return used


def send_money(wallet: Wallet) -> int:
    """Send some LYX to a new address and check its balance; return the credits used."""
    recipient, wei = to_checksum_address(secrets.token_bytes(20)), secrets.randbelow(10**12) + 1
    payload = calldata("execute(uint256,address,uint256,bytes)", 0, recipient, wei, b"")
    used = _relay(wallet, f"transfer of {wei} wei to {recipient}", payload)
    expect("the balance of the recipient", balance(wallet.rpc, recipient), wei)
    return used


def _relay(wallet: Wallet, name: str, payload: bytes) -> int:
    """Execute one call, wait for its settlement, compare it with the chain; return the credits used."""
    call = wallet.relay.prepare(wallet.profile_address, payload)
    transaction = call.send()
    transaction_hash = transaction.hash
    echo(f"  ✓ {name}: accepted as {transaction_hash}")
    status = transaction.wait(_PATIENCE_SECONDS)
    record = read_record(wallet.rpc, transaction_hash)
    _compare(wallet, status, record, payload)
    echo(f"    block {record.block}, relayer {record.relayer}, key manager {record.key_manager}")
    echo(f"    gas {record.gas_used} at {record.gas_price} wei = {status['creditsUsed']} credits")
    echo(f"    balance {status['creditsBefore']} → {status['creditsAfter']}, status {status['status']}")
    expect("the hash of the same call posted again", call.send().hash, transaction_hash)
    echo("    posted again: the same hash, no second transaction")
    return int(status["creditsUsed"])


def _compare(wallet: Wallet, status: TransactionStatus, record: ChainRecord, payload: bytes) -> None:
    target = call_view(wallet.rpc, "address", wallet.key_manager_address, "target()")
    used = math.ceil(record.cost_wei / CREDIT_WEI)
    expect("the status", status["status"], "Success")
    expect("the receipt's success", record.succeeded, True)
    expect("the key manager that was called", record.key_manager, wallet.key_manager_address)
    expect("the payload on chain", record.payload, payload)
    expect("transactionSenderAddress", status["transactionSenderAddress"], to_checksum_address(target))
    expect("creditsUsed", status["creditsUsed"], used)
    expect("creditsAfter", status["creditsAfter"], status["creditsBefore"] - used)


def send_elsewhere(wallet: Wallet, rpc: Rpc, *, chain_id: int) -> None:
    """Write data to the profile on another chain, and compare the charge with what its relayer has spent."""
    key, value = secrets.token_bytes(32), secrets.token_bytes(40)
    payload = calldata("setData(bytes32,bytes)", key, value)
    call = wallet.relay.prepare(wallet.profile_address, payload, chain_id=chain_id)
    transaction = call.send()
    status = transaction.wait(_PATIENCE_SECONDS)
    record = read_record(rpc, transaction.hash)
    expect("the status", (status["status"], status["chainId"]), ("Success", chain_id))
    data = call_view(rpc, "bytes", wallet.profile_address, "getData(bytes32)", key)
    expect("the data of the profile there", data, value)
    before, after = (balance(rpc, record.relayer, at=hex(record.block - ago)) for ago in (1, 0))
    spent = before - after
    expect("that the chain took more than gas", spent > record.cost_wei, True)
    expect("creditsUsed", status["creditsUsed"], math.ceil(spent / CREDIT_WEI))
    expect(
        "that it costs at most its quote", status["creditsUsed"] <= (call.prepared["highestCost"] or 0), True
    )
    echo(f"  ✓ setData on chain {chain_id}: {transaction.hash}, from the same balance of credits")
    echo(
        f"    {record.cost_wei} wei of gas and {spent - record.cost_wei} wei besides = {status['creditsUsed']} credits"
    )


def check_wrong_signature(wallet: Wallet) -> None:
    """Send a call signed by another key; the service must reject it."""
    other = replace(wallet, controller_key="0x" + secrets.token_hex(32))
    body = other.signed(calldata("setData(bytes32,bytes)", secrets.token_bytes(32), b"never"))
    try:
        transaction_hash = wallet.execute(body)
    except RelayProblem as refusal:
        expect("the refusal", (refusal.status, refusal.code), (403, "signer-not-a-controller"))
        echo(f"  ✓ another key's signature is refused: {refusal}")
    else:
        raise Mismatch(f"another key's signature was accepted as {transaction_hash}")
