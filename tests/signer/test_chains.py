"""A signer of several chains: each has its own limits, trusted code, account nonces and node."""

import secrets
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from signer.__main__ import Pruning
from signer.chains import ServedChain
from signer.configuration import Misconfigured, configure
from signer.journal import Account, Journal
from signer.keys import RELAYERS, Keyring, write_keystore
from signer.messages import Outcome, SigningRequest
from signer.policy import DeploymentLimits
from signer.service import SigningService
from signer.transactions import PolicyViolation, SignedTransaction
from tests.fakes.pool import read_transaction
from tests.signer.parts import (
    CHAIN_ID,
    POLICY,
    Clock,
    FakeTargets,
    client_of,
    new_key,
    new_keys,
    relay_call,
    self_transfer,
    serving,
)
from tests.signer.test_deployment_policy import GAS, request_of

OTHER_ID = CHAIN_ID + secrets.randbelow(10**6) + 1
_DAY = 86_400
# The tables of a journal that a signer of one chain has written.
_BEFORE = """
CREATE TABLE signed (
    address TEXT NOT NULL, chain_id INTEGER NOT NULL, account_nonce INTEGER NOT NULL, kind TEXT NOT NULL,
    digest BLOB NOT NULL, content BLOB NOT NULL, max_fee_wei INTEGER NOT NULL, amount TEXT NOT NULL,
    signature BLOB NOT NULL, transaction_hash TEXT NOT NULL, signed_at REAL NOT NULL,
    UNIQUE (address, chain_id, account_nonce, digest)
) STRICT;
CREATE INDEX signed_by_time ON signed (signed_at);
CREATE TABLE forgotten (
    address TEXT NOT NULL, chain_id INTEGER NOT NULL, below INTEGER NOT NULL, PRIMARY KEY (address, chain_id)
) STRICT;
"""
New = Callable[..., SigningService]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def home() -> FakeTargets:
    return FakeTargets()


@pytest.fixture
def other() -> FakeTargets:
    return FakeTargets()


@pytest.fixture
def new(tmp_path: Path, home: FakeTargets, other: FakeTargets, clock: Clock) -> New:
    """A signer of both chains on the journal of this test; `changed` are terms of the policy of the other chain."""

    def start(keys: Keyring | None = None, **changed: Any) -> SigningService:
        changed.setdefault("limits", replace(POLICY.limits, chain_id=OTHER_ID))
        policies = POLICY, replace(POLICY, **changed)
        chains = [
            ServedChain(policy, targets) for policy, targets in zip(policies, (home, other), strict=True)
        ]
        return SigningService(
            keys or new_keys(treasury=new_key()), chains, Journal(str(tmp_path / "journal")), clock=clock
        )

    return start


def _one(service: SigningService, request: SigningRequest) -> Outcome:
    (outcome,) = service.sign([request])
    return outcome


def _refusal(outcome: Outcome) -> str:
    assert isinstance(outcome, PolicyViolation)
    return outcome.refusal


def _raw(outcome: Outcome) -> bytes:
    assert isinstance(outcome, SignedTransaction)
    return outcome.raw


def test_an_account_nonce_carries_a_call_on_each_chain_and_after_a_restart_the_same(
    new: New, home: FakeTargets, other: FakeTargets
) -> None:
    service = new()
    relayer = service.keys().relayers[0]
    at_home = relay_call(relayer, home.key_manager())
    elsewhere = relay_call(relayer, other.key_manager(), chain_id=OTHER_ID)
    signed = service.sign([at_home, elsewhere])
    assert [read_transaction(_raw(outcome)).sender for outcome in signed] == [relayer, relayer]
    for request in (at_home, elsewhere):
        chain_id = request.transaction.chain_id
        more = relay_call(relayer, request.transaction.to, chain_id=chain_id, max_fee_per_gas_wei=9 * 10**9)
        assert _refusal(_one(service, more)) == "nonce-used"
    assert service.signed_ever() == 2
    service.journal.close()
    assert new(service.keyring).sign([at_home, elsewhere]) == signed


def test_a_chain_that_is_not_configured_gets_no_signature_of_any_key(new: New, home: FakeTargets) -> None:
    service = new()
    keys, unknown = service.keys(), OTHER_ID + 1
    outcomes = service.sign(
        [
            relay_call(keys.relayers[0], home.key_manager(), chain_id=unknown),
            self_transfer(keys.relayers[1], chain_id=unknown),
            relay_call(
                keys.treasury, keys.relayers[0], chain_id=unknown, data=b"", gas_limit=21_000, value_wei=1
            ),
        ]
    )
    assert [str(outcome) for outcome in outcomes] == ["no chain with this id is configured"] * 3
    assert (service.signed_ever(), set(service.spent().values())) == (0, {0})


def test_code_that_is_trusted_on_one_chain_is_not_trusted_on_the_other(
    new: New, home: FakeTargets, other: FakeTargets
) -> None:
    service = new()
    relayer = service.keys().relayers[0]
    for trusting, its_id, elsewhere in ((home, CHAIN_ID, OTHER_ID), (other, OTHER_ID, CHAIN_ID)):
        target = trusting.key_manager()
        refused, signed = service.sign(
            [relay_call(relayer, target, chain_id=chain_id) for chain_id in (elsewhere, its_id)]
        )
        assert _refusal(refused) == "policy"
        assert _raw(signed)


def test_each_chain_has_its_own_fee_cap_and_maximum_of_a_transfer(new: New, other: FakeTargets) -> None:
    limits = replace(POLICY.limits, chain_id=OTHER_ID, fee_cap_wei=10**9)
    service = new(limits=limits, transfer_wei=10)
    keys = service.keys()
    at_home = self_transfer(keys.relayers[0])
    elsewhere = self_transfer(keys.relayers[0], chain_id=OTHER_ID)
    transfers = [
        relay_call(
            keys.treasury,
            keys.relayers[0],
            chain_id=chain_id,
            data=b"",
            gas_limit=21_000,
            max_fee_per_gas_wei=10**9,
            value_wei=11,
        )
        for chain_id in (CHAIN_ID, OTHER_ID)
    ]
    signed, dear, transfer, too_much = service.sign([at_home, elsewhere, *transfers])
    assert _raw(signed)
    assert _raw(transfer)
    assert [_refusal(dear), _refusal(too_much)] == ["policy", "policy"]


def test_the_gas_of_an_hour_and_of_deployments_is_counted_for_each_chain_also_after_a_restart(
    new: New, home: FakeTargets, other: FakeTargets
) -> None:
    limits = {
        "gas_per_hour": 2 * GAS,
        "deploys": DeploymentLimits(max_gas=GAS),
        "deployment_gas_per_day": GAS,
    }
    service = new(**limits)
    relayer, second, _ = service.keys().relayers
    # The same account nonces on both chains, and more gas at home.
    calls = [relay_call(relayer, home.key_manager(), gas_limit=3 * GAS)]
    calls.append(relay_call(relayer, other.key_manager(), chain_id=OTHER_ID, gas_limit=GAS))
    deployment = request_of(second, chain_id=OTHER_ID)
    assert all(map(_raw, service.sign([*calls, deployment])))
    spent = {account: amount for account, amount in service.spent().items() if amount}
    assert spent == {
        Account(relayer, CHAIN_ID): 3 * GAS,
        Account(relayer, OTHER_ID): GAS,
        Account(second, OTHER_ID): GAS,
    }
    service.journal.close()
    again = new(service.keyring, **limits)
    assert {account: amount for account, amount in again.spent().items() if amount} == spent
    more = relay_call(relayer, calls[1].transaction.to, chain_id=OTHER_ID, account_nonce=1, gas_limit=GAS + 1)
    assert _refusal(_one(again, more)) == "used-up"
    assert _refusal(_one(again, request_of(relayer, chain_id=OTHER_ID, account_nonce=1))) == "used-up"
    assert _raw(_one(again, relay_call(relayer, calls[0].transaction.to, account_nonce=1, gas_limit=GAS + 1)))


def test_the_silent_node_of_one_chain_delays_no_signature_and_no_pruning_of_the_other(
    new: New, home: FakeTargets, other: FakeTargets, clock: Clock
) -> None:
    service = new()
    relayer = service.keys().relayers[0]
    at_home = relay_call(relayer, home.key_manager())
    service.sign([at_home, self_transfer(relayer, chain_id=OTHER_ID)])
    home.is_away = True
    undecided, signed = service.sign(
        [
            relay_call(relayer, at_home.transaction.to, account_nonce=1),
            relay_call(relayer, other.key_manager(), chain_id=OTHER_ID, account_nonce=1),
        ]
    )
    assert undecided is None
    assert _raw(signed)
    clock.now += 31 * _DAY
    other.used = {relayer: 1}
    Pruning(service, days=30).prune()
    assert _refusal(_one(service, self_transfer(relayer, chain_id=OTHER_ID))) == "nonce-used"
    # Pruned for the other chain alone: at home the same account nonce is open.
    assert _raw(_one(service, self_transfer(relayer)))


def test_a_journal_of_a_signer_of_one_chain_is_read_by_one_of_two(
    tmp_path: Path, new: New, home: FakeTargets, other: FakeTargets, clock: Clock
) -> None:
    service = new()
    relayer = service.keys().relayers[0]
    call = relay_call(relayer, home.key_manager(), account_nonce=7)
    signed = _one(service, call)
    service.journal.close()
    path = tmp_path / "journal"
    with sqlite3.connect(path) as file:
        rows = file.execute("SELECT * FROM signed").fetchall()
    path.unlink()
    with sqlite3.connect(path) as file:
        file.executescript(_BEFORE)
        file.executemany("INSERT INTO signed VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
        file.execute("INSERT INTO forgotten VALUES (?, ?, 5)", (relayer, CHAIN_ID))
    again = new(service.keyring)
    assert _one(again, call) == signed
    assert _refusal(_one(again, self_transfer(relayer, account_nonce=4))) == "nonce-used"
    assert again.spent()[Account(relayer, CHAIN_ID)] == call.transaction.gas_limit
    assert again.spent()[Account(relayer, OTHER_ID)] == 0
    assert _raw(_one(again, relay_call(relayer, other.key_manager(), chain_id=OTHER_ID, account_nonce=4)))


def test_clients_learn_the_chains_and_metrics_name_those_besides_home(tmp_path: Path, new: New) -> None:
    service = new()
    relayer = service.keys().relayers[0]
    service.sign([self_transfer(relayer, chain_id=OTHER_ID)])
    with serving(tmp_path, service) as url:
        assert client_of(url).chains() == [CHAIN_ID, OTHER_ID]
        lines = client_of(url).read("/metrics").splitlines()
    assert f'signer_spent{{address="{relayer}"}} 0' in lines
    assert f'signer_spent{{address="{relayer}",chain="{OTHER_ID}"}} 21000' in lines


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    write_keystore(tmp_path, RELAYERS, secrets.token_bytes(32), "password", work=2)
    return {
        "SIGNER_LISTEN": f"unix://{tmp_path}/socket",
        "CHAIN_ID": str(CHAIN_ID),
        "SIGNER_RPC_URL": "http://127.0.0.1:1",
        "SIGNER_JOURNAL": str(tmp_path / "journal"),
        "SIGNER_KEYSTORE": str(tmp_path),
        "SIGNER_KEYSTORE_PASSWORD": "password",
    }


def test_the_variables_of_a_chain_are_its_limits_and_home_keeps_its_own(environment: dict[str, str]) -> None:
    of_other = {
        "CHAINS": str(OTHER_ID),
        f"SIGNER_{OTHER_ID}_RPC_URL": "http://127.0.0.1:2",
        f"CHAIN_{OTHER_ID}_FEE_CAP_WEI": "7",
    }
    service = configure(environment | of_other).service
    assert service.chain_ids == [CHAIN_ID, OTHER_ID]
    relayer = service.keys().relayers[0]
    fees = {"max_fee_per_gas_wei": 8, "max_priority_fee_per_gas_wei": 0}
    signed, refused = service.sign(
        [self_transfer(relayer, **fees), self_transfer(relayer, chain_id=OTHER_ID, **fees)]
    )
    assert _raw(signed)
    assert _refusal(refused) == "policy"
    service.journal.close()
    alone = configure(environment).service
    assert alone.chain_ids == [CHAIN_ID]
    assert _refusal(_one(alone, self_transfer(relayer, chain_id=OTHER_ID, **fees))) == "policy"


def test_every_mistake_in_the_variables_of_chains_is_named_at_once(environment: dict[str, str]) -> None:
    wrong = {
        "CHAINS": f"{OTHER_ID},{CHAIN_ID}",
        f"SIGNER_{OTHER_ID}_GAS_PER_HOUR": "much",
        "RELAY_MAX_GAS": "all",
    }
    with pytest.raises(Misconfigured) as refusal:
        configure(environment | wrong)
    assert sorted(str(refusal.value).removesuffix(".").split(". ")) == [
        "CHAINS must list the ids of chains besides CHAIN_ID, each once",
        "RELAY_MAX_GAS must be a whole number",
        f"SIGNER_{OTHER_ID}_GAS_PER_HOUR must be a whole number",
        f"Set SIGNER_{OTHER_ID}_RPC_URL",
    ]
