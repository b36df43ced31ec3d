"""A newcomer with nothing but a key: the demo's sponsor pays for the profile and for its first call."""

import math
import secrets
from collections.abc import Mapping

from credit_relay_client import create_profile
from devstack.console import echo
from devstack.environment import CREDIT_WEI
from devstack.journey.checks import expect
from devstack.journey.relay_calls import ChainRecord, balance, call_view, read_record
from devstack.wallet import Wallet
from devstack.world.abi import calldata
from devstack.world.keys import address_of

_PATIENCE_SECONDS = 300


def welcome(owner: Wallet, sponsor: Mapping[str, str]) -> None:
    """
    Create a profile as the sponsor's server does, and let it make a call; compare both with the chain and the ledger.

    `owner` is a member of the sponsor, who sees its account.
    """
    name, before = sponsor["name"], _credits(owner, sponsor["name"])
    newcomer, deployed = _create(owner, sponsor["create_key"])
    called = _call(newcomer, name)
    spent = deployed + called
    expect("the credits of the sponsor", _credits(owner, name), before - spent)
    expect("the LYX of the newcomer", balance(owner.rpc, newcomer.profile_address), 0)
    echo(f"    paid by {name}: {deployed} + {called} credits, {before} → {before - spent}")


def _credits(owner: Wallet, sponsor: str) -> int:
    session = owner.relay.session(owner.profile_address)
    return int(session.request("GET", f"/api/sponsors/{sponsor}/overview")["balance"])


def _create(owner: Wallet, api_key: str) -> tuple[Wallet, int]:
    """Return a new profile's wallet, and the credits that its deployment cost."""
    key = "0x" + secrets.token_hex(32)
    controller = address_of(key)
    profile = create_profile(owner.base_url, api_key, [controller], wait_seconds=_PATIENCE_SECONDS)
    address, transaction_hash = profile["universalProfileAddress"], profile["transactionHash"]
    expect("the status of the profile", profile["status"], "Success")
    record = read_record(owner.rpc, str(transaction_hash))
    expect(
        "the owner of the profile",
        call_view(owner.rpc, "address", address, "owner()"),
        profile["keyManagerAddress"].lower(),
    )
    expect("its first controller", profile["controllers"][0]["address"], controller)
    (at_home,) = profile["chains"]
    expect("the credits of the deployment", at_home["credits"], _credits_of(record))
    echo(f"  ✓ a newcomer's profile {address}: {transaction_hash}, gas {record.gas_used}")
    return Wallet(address, profile["keyManagerAddress"], key, owner.base_url, owner.rpc), at_home["credits"]


def _call(newcomer: Wallet, sponsor: str) -> int:
    """Let a profile write its first data at the sponsor's cost; return the credits that they cost."""
    key, value = secrets.token_bytes(32), secrets.token_bytes(40)
    payload = calldata("setData(bytes32,bytes)", key, value)
    transaction = newcomer.relay.send(newcomer.profile_address, payload, sponsor=sponsor)
    status = transaction.wait(_PATIENCE_SECONDS)
    paid = (status["status"], status["paidBy"], status["creditsUsed"])
    expect("the newcomer's call", paid, ("Success", sponsor, 0))
    data = call_view(newcomer.rpc, "bytes", newcomer.profile_address, "getData(bytes32)", key)
    expect("the data of the newcomer", data, value)
    echo(f"    its first setData: {transaction.hash}, signed in by controller {newcomer.controller_address}")
    return _credits_of(read_record(newcomer.rpc, transaction.hash))


def _credits_of(record: ChainRecord) -> int:
    return math.ceil(record.cost_wei / CREDIT_WEI)
