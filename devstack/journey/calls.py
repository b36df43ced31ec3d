"""Relay calls: handed in, waited for, and held against the chain."""

import math
import secrets
import time
from dataclasses import replace
from typing import Any

from eth_utils.address import to_checksum_address

from devstack.chain_record import ChainRecord, ask, balance, read_record
from devstack.console import say
from devstack.environment import CREDIT_WEI
from devstack.gateway_api import Refused
from devstack.journey.checks import Mismatch, expect
from devstack.wallet import Wallet
from devstack.world.abi import calldata

_PATIENCE_SECONDS = 90
_PROBLEM_MEMBERS = {"type", "title", "status", "code", "detail", "requestId"}


def write_data(wallet: Wallet) -> int:
    """Write some data into the profile and find it there; return the credits used."""
    key, value = secrets.token_bytes(32), secrets.token_bytes(40)
    used = _relay(wallet, "setData", calldata("setData(bytes32,bytes)", key, value))
    found = ask(wallet.rpc, "bytes", wallet.profile_address, "getData(bytes32)", key)
    expect("the data of the profile", found, value)
    return used


def send_money(wallet: Wallet) -> int:
    """Send a little money to a new address and find it there; return the credits used."""
    friend, wei = to_checksum_address(secrets.token_bytes(20)), secrets.randbelow(10**12) + 1
    payload = calldata("execute(uint256,address,uint256,bytes)", 0, friend, wei, b"")
    used = _relay(wallet, f"transfer of {wei} wei to {friend}", payload)
    expect("the balance of the recipient", balance(wallet.rpc, friend), wei)
    return used


def _relay(wallet: Wallet, name: str, payload: bytes) -> int:
    """Execute one call, wait for its end, hold it against the chain; return the credits it used."""
    body = wallet.signed(payload)
    transaction_hash = wallet.execute(body)
    say(f"  ✓ {name}: accepted as {transaction_hash}")
    status = _final_status(wallet, transaction_hash)
    record = read_record(wallet.rpc, transaction_hash)
    _compare(wallet, status, record, payload)
    say(f"    block {record.block}, relayer {record.relayer}, key manager {record.key_manager}")
    say(f"    gas {record.gas_used} at {record.gas_price} wei = {status['creditsUsed']} credits")
    say(f"    balance {status['creditsBefore']} → {status['creditsAfter']}, status {status['status']}")
    expect("the hash of the same call handed in again", wallet.execute(body), transaction_hash)
    say("    handed in again: the same hash, no second transaction")
    return int(status["creditsUsed"])


def _final_status(wallet: Wallet, transaction_hash: str) -> dict[str, Any]:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < deadline:
        status = wallet.transaction_status(transaction_hash)
        if status["status"] not in {"Pending", "Submitted"}:
            return status
        time.sleep(0.25)
    raise TimeoutError(f"{transaction_hash} is still {status['status']} after {_PATIENCE_SECONDS} s")


def _compare(wallet: Wallet, status: dict[str, Any], record: ChainRecord, payload: bytes) -> None:
    target = ask(wallet.rpc, "address", wallet.key_manager_address, "target()")
    used = math.ceil(record.cost_wei / CREDIT_WEI)
    expect("the status", status["status"], "Success")
    expect("the receipt's success", record.succeeded, True)
    expect("the key manager that was called", record.key_manager, wallet.key_manager_address)
    expect("the payload on chain", record.payload, payload)
    expect("transactionSenderAddress", status["transactionSenderAddress"], to_checksum_address(target))
    expect("creditsUsed", status["creditsUsed"], used)
    expect("creditsAfter", status["creditsAfter"], status["creditsBefore"] - used)


def be_refused(wallet: Wallet) -> None:
    """Hand in a call that a stranger signed; nothing but a refusal will do."""
    stranger = replace(wallet, controller_key="0x" + secrets.token_hex(32))
    body = stranger.signed(calldata("setData(bytes32,bytes)", secrets.token_bytes(32), b"never"))
    try:
        found = wallet.execute(body)
    except Refused as refusal:
        expect("the refusal's content type", refusal.content_type.split(";")[0], "application/problem+json")
        expect("the refusal's missing members", _PROBLEM_MEMBERS - set(refusal.problem), set())
        expect("the refusal's status", 400 <= refusal.status == refusal.problem["status"] < 500, True)
        say(f"  ✓ a stranger's signature is refused: {refusal}")
    else:
        raise Mismatch(f"a stranger's signature was accepted as {found}")
