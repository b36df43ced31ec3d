"""The LSP-15 paths for wallets without a token: the signature is the authorisation."""

import secrets
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from credits.queries import balance_of
from credits.services import entries
from devstack.services.stack import Services
from devstack.world.profiles import Profile
from gateway.chain.lsp25 import RelayCall
from relay.models import Attempt, CreditPrice, RelayTransaction
from tests.credits.allowances import set_allowance
from tests.factories import UserFactory
from tests.relay.api.conftest import Wallet, execute_body
from tests.relay.api.test_bodies import LSP15_EXECUTE, LSP15_QUOTA, QUOTA
from tests.relay.api.test_execute import EXECUTE, assert_problem
from tests.relay.api.test_quota import quota_body
from tests.relay.rows import everything
from tests.relay.signing import QUOTA_DIALECTS
from users.models import User

pytestmark = pytest.mark.django_db


def lsp15_body(profile: Profile, call: RelayCall) -> dict[str, Any]:
    """Return the standard's body, which names the profile instead of its key manager."""
    return {"address": profile.profile_address, "transaction": execute_body(call)["transaction"]}


def test_a_signed_call_is_relayed_on_the_profiles_credits(
    anonymous: Wallet,
    user: User,
    profile: Profile,
    new_call: Callable[..., RelayCall],
    settle: Callable[[], int],
) -> None:
    response = anonymous.post(LSP15_EXECUTE, lsp15_body(profile, new_call()))
    assert (response.status, response.body) == (
        200,
        {"transactionHash": Attempt.objects.get().transaction_hash},
    )
    assert settle() == 1
    row = RelayTransaction.objects.get()
    assert (row.status, row.user_id) == ("Success", user.pk)
    assert balance_of(user).balance == 10_000 - row.real_cost


def test_both_paths_return_the_same_call(
    anonymous: Wallet, wallet: Wallet, profile: Profile, new_call: Callable[..., RelayCall]
) -> None:
    call = new_call()
    first = anonymous.post(LSP15_EXECUTE, lsp15_body(profile, call))
    second = wallet.post(EXECUTE, execute_body(call))
    assert first.body == second.body
    assert RelayTransaction.objects.count() == 1


def test_a_signature_without_a_signer_relays_nothing(
    anonymous: Wallet, user: User, profile: Profile, new_call: Callable[..., RelayCall]
) -> None:
    body = lsp15_body(profile, new_call(private_key="0x" + secrets.token_hex(32)))
    before = everything()
    assert_problem(anonymous.post(LSP15_EXECUTE, body), 403, "signer-not-a-controller")
    assert everything() == before


@pytest.mark.parametrize("is_closed", [False, True])
def test_a_profile_that_never_signed_in_is_unknown(
    anonymous: Wallet,
    user: User,
    create_profile: Callable[..., Profile],
    new_call: Callable[..., RelayCall],
    is_closed: bool,
) -> None:
    other = create_profile()
    if is_closed:
        UserFactory.create(profile_address=other.profile_address, is_active=False)
    before = everything()
    for response in (
        anonymous.post(LSP15_EXECUTE, lsp15_body(other, new_call())),
        anonymous.post(LSP15_QUOTA, quota_body(other)),
    ):
        members = assert_problem(response, 404, "profile-not-registered")
        assert members == {"profile": other.profile_address}
    assert everything() == before


def test_a_profile_without_code_has_no_key_manager(
    anonymous: Wallet, profile: Profile, user: User, new_call: Callable[..., RelayCall]
) -> None:
    somebody = UserFactory.create()
    body = {**lsp15_body(profile, new_call()), "address": somebody.profile_address}
    assert_problem(anonymous.post(LSP15_EXECUTE, body), 422, "key-manager-not-found")


def test_the_quota_is_in_gas(anonymous: Wallet, user: User, profile: Profile, settings: Settings) -> None:
    # At one gwei a credit of 10^12 wei buys 1,000 gas.
    assert anonymous.post(LSP15_QUOTA, quota_body(profile)).body == {"quota": 10_000_000, "unit": "gas"}
    start = timezone.now()
    set_allowance(user=user, credits=77, starts_at=start, ends_at=start + timedelta(days=30), renews=False)
    CreditPrice.objects.create(chain_id=settings.CHAIN_ID, credit_wei=5 * 10**8)
    response = anonymous.post(LSP15_QUOTA, quota_body(profile))
    assert (response.body["quota"], response.body["totalQuota"]) == (5_000, 38)
    assert response.body["resetDate"] == int((start + timedelta(days=30)).timestamp())


def test_a_debt_is_a_negative_quota(anonymous: Wallet, user: User, profile: Profile) -> None:
    entries.adjust(user=user, credits=-10_003, key=secrets.token_hex(8), actor=None, reason="clawed back")
    assert anonymous.post(LSP15_QUOTA, quota_body(profile)).body["quota"] == -3_000


def test_quota_signatures_are_checked_as_strictly_as_with_a_token(
    anonymous: Wallet, user: User, profile: Profile
) -> None:
    late = anonymous.post(LSP15_QUOTA, quota_body(profile, seconds=-6))
    assert "serverTime" in assert_problem(late, 401, "timestamp-out-of-window")
    body = {**quota_body(profile), "signature": quota_body(profile, seconds=1)["signature"]}
    assert_problem(anonymous.post(LSP15_QUOTA, body), 401, "quota-signature-invalid")


def test_a_key_manager_in_the_body_must_be_the_profiles(
    anonymous: Wallet,
    services: Services,
    user: User,
    profile: Profile,
    new_call: Callable[..., RelayCall],
) -> None:
    stray = services.world.deploy_stray_key_manager(profile.profile_address)
    for is_first in (True, False):
        body = lsp15_body(profile, new_call(channel=secrets.randbits(100)))
        before = everything()
        refusal = anonymous.post(LSP15_EXECUTE, {**body, "keyManagerAddress": stray})
        # The signature is over the profile's own key manager.
        assert refusal.status == 403
        assert everything() == before
        body["keyManagerAddress"] = profile.key_manager_address if is_first else None
        assert anonymous.post(LSP15_EXECUTE, body).status == 200


def test_the_controllers_address_instead_of_the_profiles_is_named(
    anonymous: Wallet, wallet: Wallet, profile: Profile, new_call: Callable[..., RelayCall]
) -> None:
    controller, timestamp = profile.controller, int(timezone.now().timestamp())
    signature = QUOTA_DIALECTS["the bare hash"](controller.address, timestamp, controller.private_key)
    quota = {"address": controller.address, "timestamp": timestamp, "signature": "0x" + signature.hex()}
    execute = {**execute_body(new_call()), "address": controller.address}
    for response, code in (
        (anonymous.post(LSP15_QUOTA, quota), "profile-not-registered"),
        (anonymous.post(LSP15_EXECUTE, execute), "profile-not-registered"),
        (wallet.post(QUOTA, quota), "not-your-profile"),
        (wallet.post(EXECUTE, execute), "not-your-profile"),
    ):
        assert response.body["code"] == code
        assert f"{controller.address} is the controller that sign" in response.body["detail"]
