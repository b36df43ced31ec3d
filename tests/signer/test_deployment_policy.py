"""What the signer signs for LSP-23's factory: profiles of trusted code, within limits of their own."""

import secrets
from pathlib import Path
from typing import Any

import pytest

from gateway.chain.lsp6 import ALL_PERMISSIONS, permissions_key
from signer import deployments
from signer.contracts import EXECUTE_RELAY_CALL
from signer.deployments import Deployment
from signer.messages import Outcome, SigningRequest
from signer.policy import DeploymentLimits
from signer.service import SigningService
from signer.transactions import PolicyViolation, SignedTransaction
from tests.fakes.pool import read_transaction
from tests.fakes.profiles import random_address
from tests.signer.parts import Clock, FakeTargets, new_keys, new_service, relay_call, self_transfer

GAS = 900_000
DAY = 86_400
_DELEGATE = bytes.fromhex(deployments.RECEIVER_DELEGATE[2:])


def data_of(*entries: tuple[bytes, bytes]) -> bytes:
    return deployments.encode_entries(entries)


def good_data() -> bytes:
    permissions = ALL_PERMISSIONS.to_bytes(32, "big")
    return data_of(
        (deployments.RECEIVER_DELEGATE_KEY, _DELEGATE),
        (permissions_key(random_address()), permissions),
    )


def a_deployment(**changed: Any) -> Deployment:
    return Deployment(
        secrets.token_bytes(32),
        deployments.PROFILE,
        deployments.KEY_MANAGER,
        deployments.MODULE,
        good_data(),
    )._replace(**changed)


def request_of(address: str, deployment: Deployment | None = None, **changed: Any) -> SigningRequest:
    calldata = deployments.encode(deployment or a_deployment())
    return relay_call(address, deployments.FACTORY, **{"data": calldata, "gas_limit": GAS, **changed})


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def service(tmp_path: Path, clock: Clock) -> SigningService:
    return new_service(
        tmp_path,
        new_keys(),
        FakeTargets(),
        clock=clock,
        deploys=DeploymentLimits(max_gas=GAS),
        deployment_gas_per_day=3 * GAS,
    )


@pytest.fixture
def relayer(service: SigningService) -> str:
    return service.keys().relayers[0]


def one(service: SigningService, request: SigningRequest) -> Outcome:
    (outcome,) = service.sign([request])
    return outcome


def refusal(outcome: Outcome) -> str:
    assert isinstance(outcome, PolicyViolation)
    return outcome.refusal


def test_a_profile_of_trusted_code_is_signed_as_asked(service: SigningService, relayer: str) -> None:
    request = request_of(relayer)
    outcome = one(service, request)
    assert isinstance(outcome, SignedTransaction)
    read = read_transaction(outcome.raw)
    assert (read.sender, read.to, read.value) == (relayer, deployments.FACTORY, 0)
    assert read.data == request.transaction.data


def changed_word(calldata: bytes, word: int) -> bytes:
    """Return the calldata with another number in this word after the selector."""
    at = 4 + 32 * word
    return calldata[:at] + secrets.token_bytes(32) + calldata[at + 32 :]


def entry(key: bytes, value: bytes) -> Deployment:
    return a_deployment(module_data=data_of((key, value)))


_CALLDATA = deployments.encode(a_deployment())


@pytest.mark.parametrize(
    "changed",
    [
        {"value_wei": 1},
        {"gas_limit": GAS + 1},
        {"chain_id": 42},
        {"data": b""},
        {"data": EXECUTE_RELAY_CALL + _CALLDATA[4:]},
        {"data": relay_call(random_address(), random_address()).transaction.data},
        {"data": secrets.token_bytes(4) + _CALLDATA[4:]},
        # The fundings of the profile and of the key manager.
        {"data": changed_word(_CALLDATA, 5)},
        {"data": changed_word(_CALLDATA, 11)},
        {"data": _CALLDATA + bytes(32)},
        {"data": _CALLDATA[:-32]},
        {"deployment": a_deployment(profile=random_address())},
        {"deployment": a_deployment(key_manager=random_address())},
        {"deployment": a_deployment(module=random_address())},
        {"deployment": a_deployment(profile=deployments.KEY_MANAGER)},
        {"deployment": a_deployment(module_data=secrets.token_bytes(64))},
        {"deployment": a_deployment(module_data=b"")},
        {"deployment": entry(deployments.RECEIVER_DELEGATE_KEY, bytes.fromhex(random_address()[2:]))},
        {"deployment": entry(permissions_key(random_address()), (0x8000).to_bytes(32, "big"))},
        {"deployment": entry(permissions_key(random_address()), (0x4000).to_bytes(32, "big"))},
        {"deployment": entry(permissions_key(random_address()), b"\xff")},
        {"to": random_address()},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_no_other_call_of_the_factory_is_signed(
    service: SigningService, relayer: str, changed: dict[str, Any]
) -> None:
    request = request_of(relayer, changed.pop("deployment", None))
    transaction = {"to": request.transaction.to, "data": request.transaction.data, **changed}
    refused = relay_call(relayer, transaction.pop("to"), **{"gas_limit": GAS, **transaction})
    assert refusal(one(service, refused)) == "policy"
    assert service.signed_ever() == 0


def test_without_a_limit_for_deployments_there_are_none(tmp_path: Path) -> None:
    service = new_service(tmp_path, new_keys(), FakeTargets())
    assert refusal(one(service, request_of(service.keys().relayers[0]))) == "policy"


def test_the_deployments_of_all_relayers_share_the_gas_of_a_day_also_after_a_restart(
    tmp_path: Path, service: SigningService, clock: Clock
) -> None:
    keys = service.keyring
    first, second, _ = service.keys().relayers
    outcomes = service.sign([request_of(first), request_of(second), request_of(first, account_nonce=1)])
    assert all(isinstance(outcome, SignedTransaction) for outcome in outcomes)
    clock.now += DAY - 3_600
    service.journal.close()
    restarted = new_service(
        tmp_path,
        keys,
        FakeTargets(),
        clock=clock,
        deploys=DeploymentLimits(max_gas=GAS),
        deployment_gas_per_day=3 * GAS,
    )
    late = request_of(second, account_nonce=2, gas_limit=21_000)
    assert refusal(one(restarted, late)) == "used-up"
    # The nonce can still be used up, and calls have a limit of their own.
    assert isinstance(one(restarted, self_transfer(second, account_nonce=2)), SignedTransaction)
    clock.now += 2 * 3_600
    assert isinstance(one(restarted, request_of(second, account_nonce=3)), SignedTransaction)


def test_an_account_nonce_deploys_one_profile_at_whatever_fee(service: SigningService, relayer: str) -> None:
    request = request_of(relayer)
    assert isinstance(one(service, request), SignedTransaction)
    dearer = request._replace(transaction=request_of(relayer, max_fee_per_gas_wei=3 * 10**9).transaction)
    assert refusal(one(service, dearer)) == "nonce-used"
    same = request_of(relayer, data=request.transaction.data, max_fee_per_gas_wei=3 * 10**9)
    assert isinstance(one(service, same), SignedTransaction)
    assert isinstance(one(service, self_transfer(relayer)), SignedTransaction)


def test_neither_does_a_call_follow_a_deployment_nor_a_deployment_a_call(tmp_path: Path) -> None:
    targets = FakeTargets()
    service = new_service(
        tmp_path,
        new_keys(),
        targets,
        deploys=DeploymentLimits(max_gas=GAS),
        deployment_gas_per_day=10**9,
    )
    relayer, key_manager, high = service.keys().relayers[0], targets.key_manager(), 5 * 10**9
    assert isinstance(one(service, request_of(relayer)), SignedTransaction)
    assert refusal(one(service, relay_call(relayer, key_manager, max_fee_per_gas_wei=high))) == "nonce-used"
    assert isinstance(one(service, relay_call(relayer, key_manager, account_nonce=1)), SignedTransaction)
    behind = request_of(relayer, account_nonce=1, max_fee_per_gas_wei=high)
    assert refusal(one(service, behind)) == "nonce-used"
