"""What the controller may do, and what the chain would refuse: each LSP-6 error has its own code."""

import random
import secrets
from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone
from eth_abi.abi import encode
from eth_utils.crypto import keccak

from devstack.services.stack import Services
from devstack.world.permissions import Permission, allow_transfers_to
from devstack.world.profiles import Controller, ControllerPlan, Profile
from gateway.chain import errors
from gateway.chain.lsp25 import RelayCall
from relay.errors import RelayPermissionMissing, SignerNotController
from relay.models import RelayTransaction
from tests.factories import random_address
from tests.relay.callers import execute
from tests.relay.conftest import LYX, Refused
from tests.relay.signing import execute_payload, set_data_payload, sign_call
from users.models import User

pytestmark = pytest.mark.django_db
RELAY = Permission.EXECUTE_RELAY_CALL
ALLOWED_KEYS = bytes.fromhex("4b80742de2bf866c29110000")


@pytest.fixture
def sign_as(
    services: Services, create_profile: Callable[..., Profile], open_account: Callable[..., User]
) -> Callable[..., tuple[User, Controller, RelayCall]]:
    """Return a function that has a controller of these permissions sign; it returns the profile's owner too."""

    def make(
        permissions: Permission, payload: bytes, allowed_calls: bytes = b"", balance_wei: int = LYX
    ) -> tuple[User, Controller, RelayCall]:
        made = create_profile(ControllerPlan(permissions, allowed_calls), balance_wei=balance_wei)
        return (
            open_account(made),
            made.controller,
            sign_call(services=services, profile=made, payload=payload),
        )

    return make


def test_execute_relay_call_without_sign_executes(
    sign_as: Callable[..., tuple[User, Controller, RelayCall]], settle: Callable[[], int]
) -> None:
    user, _, call = sign_as(RELAY | Permission.SUPER_SETDATA, set_data_payload())
    execute(user=user, call=call, now=timezone.now())
    assert settle() == 1
    assert RelayTransaction.objects.get().status == "Success"


def test_sign_without_execute_relay_call_is_refused(
    sign_as: Callable[..., tuple[User, Controller, RelayCall]], refused: Refused
) -> None:
    user, controller, call = sign_as(Permission.SIGN | Permission.SUPER_SETDATA, set_data_payload())
    refusal = refused.call(RelayPermissionMissing, user, call)
    assert refusal.members == {"controller": controller.address}


def test_a_controller_without_its_permissions_is_not_a_controller(
    services: Services,
    create_profile: Callable[..., Profile],
    open_account: Callable[..., User],
    refused: Refused,
) -> None:
    made = create_profile(ControllerPlan(Permission(0)))
    user, call = open_account(made), sign_call(services=services, profile=made)
    refused.call(SignerNotController, user, call)


ELSEWHERE, SOMEWHERE = random_address(), random_address()
SELECTOR = secrets.token_bytes(4)
WEI = random.randint(1, 10**9)
REFUSED: dict[str, tuple[Permission, bytes, bytes, type[errors.CallRefused], dict[str, Any]]] = {
    "a transfer without TRANSFERVALUE": (
        Permission.SUPER_CALL,
        execute_payload(ELSEWHERE, value=WEI),
        b"",
        errors.NotAuthorised,
        {"permission": "TRANSFERVALUE"},
    ),
    "a call that is not allowed": (
        Permission.CALL,
        execute_payload(ELSEWHERE, data=SELECTOR),
        allow_transfers_to(SOMEWHERE),
        errors.CallNotAllowed,
        {"target": ELSEWHERE, "selector": "0x" + SELECTOR.hex()},
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_the_missing_permission_is_decoded(
    sign_as: Callable[..., tuple[User, Controller, RelayCall]], refused: Refused, name: str
) -> None:
    permissions, payload, allowed_calls, kind, members = REFUSED[name]
    user, controller, call = sign_as(permissions | RELAY, payload, allowed_calls)
    refusal = refused.call(kind, user, call)
    assert refusal.status == 422
    assert refusal.members == {"controller": controller.address, **members}


def test_a_data_key_outside_the_allowed_ones_is_named(
    services: Services,
    create_profile: Callable[..., Profile],
    open_account: Callable[..., User],
    settle: Callable[[], int],
    refused: Refused,
) -> None:
    made = create_profile(ControllerPlan(), ControllerPlan(RELAY | Permission.SETDATA))
    user, restricted = open_account(made), made.controllers[1]
    allowed = (32).to_bytes(2, "big") + secrets.token_bytes(32)
    payload = keccak(text="setData(bytes32,bytes)")[:4] + encode(
        ["bytes32", "bytes"], [ALLOWED_KEYS + bytes.fromhex(restricted.address[2:]), allowed]
    )
    execute(user=user, call=sign_call(services=services, profile=made, payload=payload), now=timezone.now())
    assert settle() == 1

    call = sign_call(services=services, profile=made, private_key=restricted.private_key)
    with refused(errors.DataKeyNotAllowed) as refusal:
        execute(user=user, call=call, now=timezone.now())
    assert refusal.value.members == {
        "controller": restricted.address,
        "dataKey": "0x" + keccak(text="tests").hex(),
    }


def test_a_transfer_of_more_than_the_profile_holds_is_refused(
    sign_as: Callable[..., tuple[User, Controller, RelayCall]], refused: Refused
) -> None:
    balance = random.randint(1, 10**6)
    payload = execute_payload(random_address(), value=balance + 1)
    user, _, call = sign_as(RELAY | Permission.SUPER_TRANSFERVALUE, payload, balance_wei=balance)
    with refused(errors.ProfileBalanceTooLow) as refusal:
        execute(user=user, call=call, now=timezone.now())
    assert refusal.value.members == {"balanceWei": str(balance), "requiredWei": str(balance + 1)}


def reverting_with(services: Services, data: bytes) -> str:
    """Deploy a contract that responds to every call with this revert data."""
    runtime = bytes([0x60, len(data), *bytes.fromhex("80600b6000396000fd")]) + data
    creation = bytes([0x60, len(runtime), *bytes.fromhex("80600b6000396000f3")]) + runtime
    return services.world.deployer.deploy(creation)[0]


def test_the_reason_of_a_reverting_target_is_in_the_detail(
    services: Services, user: User, new_call: Callable[..., RelayCall], refused: Refused
) -> None:
    reason = f"no {secrets.token_hex(6)} today"
    data = keccak(text="Error(string)")[:4] + encode(["string"], [reason])
    call = new_call(payload=execute_payload(reverting_with(services, data), data=SELECTOR))
    with refused(errors.TargetReverted) as refusal:
        execute(user=user, call=call, now=timezone.now())
    assert refusal.value.members == {"reason": reason, "revertData": "0x" + data.hex()}
    assert reason in refusal.value.detail


@pytest.mark.parametrize(
    ("payload", "kind"),
    [
        (lambda profile: execute_payload(profile.key_manager_address), errors.KeyManagerCallNotAllowed),
        (
            lambda profile: execute_payload(SOMEWHERE)[:35] + b"\x09" + execute_payload(SOMEWHERE)[36:],
            errors.ProfileRefused,
        ),
    ],
    ids=["the key manager as target", "an unknown operation"],
)
def test_a_payload_that_no_profile_executes_is_refused(
    profile: Profile,
    user: User,
    new_call: Callable[..., RelayCall],
    refused: Refused,
    payload: Callable[[Profile], bytes],
    kind: type[errors.CallRefused],
) -> None:
    refused.call(kind, user, new_call(payload=payload(profile)))
