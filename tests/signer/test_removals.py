"""What the signer signs for Multicall3: a copy with the removal of controllers, in exactly one form."""

import secrets
from pathlib import Path

import pytest
from eth_abi.abi import decode as decode_abi
from eth_abi.abi import encode as encode_abi

from gateway.chain.lsp6 import ALL_PERMISSIONS, permissions_key
from signer import deployments, removals
from signer.messages import Outcome
from signer.policy import DeploymentLimits
from signer.removals import MULTICALL, CopyWithRemoval
from signer.service import SigningService
from signer.transactions import PolicyViolation, SignedTransaction
from tests.fakes.profiles import random_address
from tests.signer.parts import Clock, FakeTargets, new_keys, new_service, relay_call

GAS = 900_000
_KEPT, _LOST, _WEAK = (random_address() for _ in range(3))
_WORD = ALL_PERMISSIONS.to_bytes(32, "big")
_DEPLOYMENT = deployments.Deployment(
    secrets.token_bytes(32),
    deployments.PROFILE,
    deployments.KEY_MANAGER,
    deployments.MODULE,
    deployments.encode_entries([(permissions_key(one), _WORD) for one in (_KEPT, _LOST, _WEAK)]),
)
_COPY = CopyWithRemoval(
    _DEPLOYMENT,
    ((permissions_key(_LOST), b""), (permissions_key(_WEAK), (0x800).to_bytes(32, "big"))),
    secrets.token_bytes(65),
)


@pytest.fixture
def service(tmp_path: Path) -> SigningService:
    return new_service(
        tmp_path,
        new_keys(),
        FakeTargets(),
        clock=Clock(),
        deploys=DeploymentLimits(max_gas=GAS),
        deployment_gas_per_day=2 * GAS,
    )


def ask(service: SigningService, data: bytes, account_nonce: int = 0) -> Outcome:
    request = relay_call(
        service.keys().relayers[0], MULTICALL, data=data, gas_limit=GAS, account_nonce=account_nonce
    )
    (outcome,) = service.sign([request])
    return outcome


def _calls(*calls: tuple[str, bool, bytes]) -> bytes:
    return removals._AGGREGATE + encode_abi(["(address,bool,bytes)[]"], [calls])


def _parts() -> list[tuple[str, bool, bytes]]:
    """Return the two calls of a copy with its removal."""
    (calls,) = decode_abi(["(address,bool,bytes)[]"], removals.encode(_COPY)[4:])
    return list(calls)


def test_a_copy_with_its_removal_is_read_as_it_was_written() -> None:
    assert removals.decode(removals.encode(_COPY)) == _COPY


def test_it_is_signed_and_counts_as_a_deployment(service: SigningService) -> None:
    outcomes = [ask(service, removals.encode(_COPY), nonce) for nonce in range(3)]
    assert [isinstance(one, SignedTransaction) for one in outcomes] == [True, True, False]
    assert isinstance(outcomes[2], PolicyViolation)
    assert outcomes[2].refusal == "used-up"


def _other_calldata() -> dict[str, bytes]:
    deploy, remove = _parts()
    calldata = removals.encode(_COPY)
    return {
        "nothing": b"",
        "noise": secrets.token_bytes(500),
        "the deployment alone": _calls(deploy),
        "the removal alone": _calls(remove),
        "a third call": _calls(deploy, remove, remove),
        "the other order": _calls(remove, deploy),
        "a removal that may fail": _calls(deploy, (remove[0], True, remove[2])),
        "a deployment that may fail": _calls((deploy[0], True, deploy[2]), remove),
        "another factory": _calls((random_address(), False, deploy[2]), remove),
        "another key manager": _calls(deploy, (random_address(), False, remove[2])),
        "another function of the key manager": _calls(deploy, (remove[0], False, b"1234" + remove[2][4:])),
        "more bytes": calldata + bytes(32),
        "fewer bytes": calldata[:-32],
        "another function": secrets.token_bytes(4) + calldata[4:],
    }


def _other_copies() -> dict[str, CopyWithRemoval]:
    lost, stranger = permissions_key(_LOST), permissions_key(random_address())
    entries = deployments.decode_entries(_DEPLOYMENT.module_data) or []
    dangerous = [(entries[0][0], (0x8000).to_bytes(32, "big")), *entries[1:]]
    return {
        "nothing removed": _COPY._replace(removal=()),
        "a controller that nobody named": _COPY._replace(removal=((stranger, b""),)),
        "more permissions than given": _COPY._replace(removal=((lost, b"\xff" * 32),)),
        "DELEGATECALL": _COPY._replace(removal=((lost, (0x8000).to_bytes(32, "big")),)),
        "a short word": _COPY._replace(removal=((lost, b"\x08"),)),
        "another data key": _COPY._replace(removal=((deployments.RECEIVER_DELEGATE_KEY, b""),)),
        "untrusted code": _COPY._replace(deployment=_DEPLOYMENT._replace(profile=random_address())),
        "a controller with DELEGATECALL": _COPY._replace(
            deployment=_DEPLOYMENT._replace(module_data=deployments.encode_entries(dangerous))
        ),
    }


@pytest.mark.parametrize("name", [*_other_calldata(), *_other_copies()])
def test_no_other_call_of_the_multicall_is_signed(service: SigningService, name: str) -> None:
    calldata = _other_calldata().get(name)
    outcome = ask(service, removals.encode(_other_copies()[name]) if calldata is None else calldata)
    assert isinstance(outcome, PolicyViolation)
    assert (outcome.refusal, service.signed_ever()) == ("policy", 0)
