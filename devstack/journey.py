"""
The wallet journey: what a wallet does on its first day, over HTTP alone.

Every figure that the service answers is held against the chain's own answer over
JSON-RPC; the first difference ends the journey with a message that names it.
"""

import math
import secrets
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from eth_utils.address import to_checksum_address
from urllib3.exceptions import HTTPError

from devstack.chain_record import ChainRecord, ask, balance, read_record
from devstack.console import complain, say
from devstack.environment import CREDIT_WEI
from devstack.gateway_api import GatewayApi, Refused
from devstack.private_file import read_json
from devstack.rpc import Rpc, RpcFailed
from devstack.wallet import Wallet
from devstack.world.abi import calldata

_PATIENCE_SECONDS = 90
_PROBLEM_MEMBERS = {"type", "title", "status", "code", "detail", "requestId"}


class Mismatch(AssertionError):
    """The service contradicts the chain, its contract or itself."""


def travel(stack_file: Path) -> int:
    """Make the journey on the stack that the file describes; return 0 when everything agreed."""
    stack = read_json(stack_file)
    entry = stack["profiles"][0]
    wallet = Wallet(
        profile_address=entry["profile_address"],
        key_manager_address=entry["key_manager_address"],
        controller_key=entry["controller_private_key"],
        api=GatewayApi(stack["base_url"]),
        rpc=Rpc(stack["rpc_url"]),
    )
    say(f"Wallet journey of {wallet.profile_address} at {stack['base_url']}")
    try:
        _walk(wallet)
    except (Mismatch, Refused, RpcFailed, LookupError, OSError, HTTPError) as error:
        complain(f"  ✗ the journey failed: {error}")
        return 1
    say("  ✓ the journey is complete: service and chain agree on every figure")
    return 0


def _walk(wallet: Wallet) -> None:
    answer = wallet.sign_in()
    _expect("the signed-in address", answer["address"], wallet.profile_address)
    say(f"  ✓ signed in by controller {wallet.controller_address}, token for {answer['expiresIn']} s")
    quota = wallet.quota()
    _expect("the unit of the quota", quota["unit"], "credits")
    say(f"  ✓ quota: {quota['quota']} credits, total {quota['totalQuota']}, reset {quota['resetDate']}")
    spent = _write_data(wallet) + _send_money(wallet)
    _expect("the quota after both calls", wallet.quota()["quota"], quota["quota"] - spent)
    _be_refused(wallet)
    _expect("the quota after the refusal", wallet.quota()["quota"], quota["quota"] - spent)
    say(f"  ✓ quota: {quota['quota'] - spent} credits, which is {quota['quota']} - {spent}")


def _write_data(wallet: Wallet) -> int:
    key, value = secrets.token_bytes(32), secrets.token_bytes(40)
    used = _relay(wallet, "setData", calldata("setData(bytes32,bytes)", key, value))
    found = ask(wallet.rpc, "bytes", wallet.profile_address, "getData(bytes32)", key)
    _expect("the data of the profile", found, value)
    return used


def _send_money(wallet: Wallet) -> int:
    friend, wei = to_checksum_address(secrets.token_bytes(20)), secrets.randbelow(10**12) + 1
    payload = calldata("execute(uint256,address,uint256,bytes)", 0, friend, wei, b"")
    used = _relay(wallet, f"transfer of {wei} wei to {friend}", payload)
    _expect("the balance of the recipient", balance(wallet.rpc, friend), wei)
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
    say(
        f"    gas {record.gas_used} at {record.gas_price} wei = {status['creditsUsed']} credits",
    )
    say(f"    balance {status['creditsBefore']} → {status['creditsAfter']}, status {status['status']}")
    _expect("the hash of the same call handed in again", wallet.execute(body), transaction_hash)
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
    _expect("the status", status["status"], "Success")
    _expect("the receipt's success", record.succeeded, True)
    _expect("the key manager that was called", record.key_manager, wallet.key_manager_address)
    _expect("the payload on chain", record.payload, payload)
    _expect("transactionSenderAddress", status["transactionSenderAddress"], to_checksum_address(target))
    _expect("creditsUsed", status["creditsUsed"], used)
    _expect("creditsAfter", status["creditsAfter"], status["creditsBefore"] - used)


def _be_refused(wallet: Wallet) -> None:
    stranger = replace(wallet, controller_key="0x" + secrets.token_hex(32))
    body = stranger.signed(calldata("setData(bytes32,bytes)", secrets.token_bytes(32), b"never"))
    try:
        found = wallet.execute(body)
    except Refused as refusal:
        _expect("the refusal's content type", refusal.content_type.split(";")[0], "application/problem+json")
        _expect("the refusal's missing members", _PROBLEM_MEMBERS - set(refusal.problem), set())
        _expect("the refusal's status", 400 <= refusal.status == refusal.problem["status"] < 500, True)
        say(f"  ✓ a stranger's signature is refused: {refusal}")
    else:
        raise Mismatch(f"a stranger's signature was accepted as {found}")


def _expect(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise Mismatch(f"{what} is {found!r}, not {wanted!r}")
