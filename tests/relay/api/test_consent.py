"""
What a controller that exists only on another chain can do: nothing, by any path.

Anybody can deploy a copy of a profile elsewhere. It begins with the controllers of the first deployment, so keys that
the account has removed at home are alive there.
"""

from collections.abc import Callable
from typing import Any

import pytest
from pytest_django import Settings

from credits.queries import balance_of
from devstack.world.permissions import ALL_PERMISSIONS, Permission, allow_transfers_to
from devstack.world.profiles import ControllerPlan, Profile
from gateway.chain.config import on_chain
from gateway.chain.lsp25 import RelayCall
from relay.models import RelayTransaction
from sponsors.models import Sponsor
from tests.factories import random_address
from tests.fakes.profiles import address_of, random_key
from tests.relay.api.conftest import Wallet, execute_body, signed_in, wallet_of
from tests.relay.api.test_bodies import LSP15_EXECUTE
from tests.relay.api.test_execute import EXECUTE, assert_problem
from tests.relay.api.test_lsp15 import lsp15_body
from tests.relay.api.test_quota import quota_body
from tests.relay.chain import node_away
from tests.relay.rows import everything
from tests.relay.signing import QUOTA_DIALECTS, execute_payload
from tests.relay.sponsoring import account_of, all_rows
from tests.relay.two_chains import ForeignChain
from tests.relay.workers import broadcast_all, track
from tests.sponsors.sponsorships import make_policy, make_sponsor
from users.errors import SignatureNotByController
from users.models import SignInSession, User

pytestmark = pytest.mark.django_db
_RELAYS = Permission.EXECUTE_RELAY_CALL | Permission.SUPER_SETDATA


def _path(chain: ForeignChain, name: str = "execute") -> str:
    return f"/api/lsp15/{chain.id}/{name}"


def _with_chain(chain: ForeignChain, call: RelayCall) -> dict[str, Any]:
    return {**execute_body(call), "chainId": chain.id}


@pytest.fixture
def removed(foreign: ForeignChain, profile: Profile) -> str:
    """The key of a controller that home does not have, and the copy does."""
    key = random_key()
    foreign.copy(profile, **{address_of(key): int(ALL_PERMISSIONS)})
    return key


def test_a_removed_controller_spends_nothing_without_a_token(
    anonymous: Wallet, user: User, profile: Profile, foreign: ForeignChain, removed: str
) -> None:
    sponsor = make_sponsor()
    make_policy(sponsor)
    before = all_rows()
    for added in ({}, {"sponsor": sponsor.slug}, {"sponsor": sponsor.slug, "sponsorFallback": "user"}):
        for manager in ({}, {"keyManagerAddress": profile.key_manager_address}):
            call = foreign.sign(profile, private_key=removed, relay_nonce=0)
            response = anonymous.post(_path(foreign), {**lsp15_body(profile, call), **added, **manager})
            members = assert_problem(response, 403, "home-permission-missing")
            assert members["controller"] == address_of(removed)
    assert all_rows() == before
    assert not foreign.pending


def test_a_removed_controller_reads_no_quota(
    anonymous: Wallet, user: User, profile: Profile, foreign: ForeignChain, removed: str
) -> None:
    body = quota_body(profile)
    sign = QUOTA_DIALECTS[next(iter(QUOTA_DIALECTS))]
    body["signature"] = "0x" + sign(profile.profile_address, body["timestamp"], removed).hex()
    response = anonymous.post(_path(foreign, "quota"), body)
    assert_problem(response, 401, "quota-signature-invalid")


def test_a_removed_controller_cannot_sign_in(
    user: User, profile: Profile, foreign: ForeignChain, removed: str
) -> None:
    with pytest.raises(SignatureNotByController):
        signed_in(profile, private_key=removed)
    assert not SignInSession.objects.exists()


def test_the_session_of_another_account_does_not_agree(
    user: User,
    profile: Profile,
    foreign: ForeignChain,
    removed: str,
    create_profile: Callable[..., Profile],
    open_account: Callable[..., User],
) -> None:
    other = create_profile()
    open_account(other)
    stranger = signed_in(other)
    before = everything()
    call = foreign.sign(profile, private_key=removed, relay_nonce=0)
    response = stranger.post(EXECUTE, _with_chain(foreign, call))
    assert response.status in {403, 422}, response.body
    assert everything() == before


def test_a_session_ends_when_its_controller_lost_sign_at_home(
    user: User,
    profile: Profile,
    foreign: ForeignChain,
    create_profile: Callable[..., Profile],
) -> None:
    wallet = wallet_of(user)  # Its controller is a random address, which home does not have.
    before = everything()
    response = wallet.post(EXECUTE, _with_chain(foreign, foreign.sign(profile)))
    assert_problem(response, 401, "session-ended")
    assert everything() == before
    assert SignInSession.objects.get().revoked_reason == SignInSession.Reason.CONTROLLER_REVOKED


def test_prepare_ends_such_a_session_too(user: User, profile: Profile, foreign: ForeignChain) -> None:
    body = {"transaction": {"abi": "0x" + foreign.sign(profile).payload.hex()}, "chainId": foreign.id}
    body["controller"] = profile.controller.address
    before = everything()
    assert_problem(wallet_of(user).post("/api/relay/prepare", body), 401, "session-ended")
    assert everything() == before


def test_while_home_is_away_a_token_is_enough_and_a_signature_is_not(
    wallet: Wallet, anonymous: Wallet, user: User, profile: Profile, foreign: ForeignChain
) -> None:
    # The trusted code of the chain is compared with home before its first use.
    assert wallet.post(EXECUTE, _with_chain(foreign, foreign.sign(profile))).status == 200
    with node_away():
        response = anonymous.post(_path(foreign), lsp15_body(profile, foreign.sign(profile, ahead=1)))
        assert_problem(response, 503, "chain-unavailable")
        assert response.headers["Retry-After"]
        assert RelayTransaction.objects.count() == 1
        assert wallet.post(EXECUTE, _with_chain(foreign, foreign.sign(profile, ahead=1))).status == 200


@pytest.mark.parametrize(
    ("permissions", "status"),
    [
        (_RELAYS, 200),
        (Permission.SUPER_SETDATA | Permission.SIGN, 403),
        (Permission.EXECUTE_RELAY_CALL | Permission.SIGN, 403),
    ],
)
def test_without_a_token_home_must_permit_the_same_call(
    anonymous: Wallet,
    foreign: ForeignChain,
    create_profile: Callable[..., Profile],
    open_account: Callable[..., User],
    permissions: Permission,
    status: int,
) -> None:
    plan = ControllerPlan(permissions)
    profile = create_profile(ControllerPlan(), plan)
    open_account(profile)
    foreign.copy(profile, **{address_of(plan.private_key): int(ALL_PERMISSIONS)})
    call = foreign.sign(profile, private_key=plan.private_key)
    assert anonymous.post(_path(foreign), lsp15_body(profile, call)).status == status
    assert RelayTransaction.objects.count() == (status == 200)


@pytest.mark.parametrize("is_allowed", [True, False])
def test_allowed_calls_at_home_bind_on_every_chain(
    anonymous: Wallet,
    foreign: ForeignChain,
    create_profile: Callable[..., Profile],
    open_account: Callable[..., User],
    is_allowed: bool,
) -> None:
    target = random_address()
    plan = ControllerPlan(
        Permission.EXECUTE_RELAY_CALL | Permission.TRANSFERVALUE, allow_transfers_to(target)
    )
    profile = create_profile(ControllerPlan(), plan)
    open_account(profile)
    foreign.copy(profile, **{address_of(plan.private_key): int(ALL_PERMISSIONS)})
    payload = execute_payload(target if is_allowed else random_address(), value=1)
    call = foreign.sign(profile, private_key=plan.private_key, payload=payload)
    response = anonymous.post(_path(foreign), lsp15_body(profile, call))
    assert response.status == (200 if is_allowed else 403), response.body


def test_a_signature_is_worth_nothing_on_another_chain(
    wallet: Wallet,
    anonymous: Wallet,
    user: User,
    profile: Profile,
    foreign: ForeignChain,
    new_call: Callable[..., RelayCall],
) -> None:
    before = everything()
    of_home, of_foreign = new_call(), foreign.sign(profile)
    assert_problem(
        anonymous.post(_path(foreign), lsp15_body(profile, of_home)), 403, "home-permission-missing"
    )
    refused = wallet.post(EXECUTE, _with_chain(foreign, of_home))
    assert_problem(refused, 400, "signature-other-chain")
    for response in (
        wallet.post(EXECUTE, execute_body(of_foreign)),
        anonymous.post(LSP15_EXECUTE, lsp15_body(profile, of_foreign)),
    ):
        assert_problem(response, 403, "signer-not-a-controller")
    assert everything() == before


def test_a_call_is_accepted_once_on_its_chain(
    wallet: Wallet, anonymous: Wallet, user: User, profile: Profile, foreign: ForeignChain
) -> None:
    call = foreign.sign(profile)
    first = wallet.post(EXECUTE, _with_chain(foreign, call))
    held = balance_of(user).held
    assert anonymous.post(_path(foreign), lsp15_body(profile, call)).body == first.body
    assert (RelayTransaction.objects.count(), balance_of(user).held) == (1, held)


def test_a_profile_without_an_account_at_home_is_not_registered(
    anonymous: Wallet, foreign: ForeignChain, profile: Profile
) -> None:
    response = anonymous.post(_path(foreign), lsp15_body(profile, foreign.sign(profile)))
    assert_problem(response, 404, "profile-not-registered")


def test_another_key_manager_than_that_of_the_chain_is_refused(
    wallet: Wallet, user: User, profile: Profile, foreign: ForeignChain
) -> None:
    stray = foreign.deploy_stray_key_manager(profile.profile_address)
    before = everything()
    call = foreign.sign(profile)
    body = {**_with_chain(foreign, call), "keyManagerAddress": stray}
    assert wallet.post(EXECUTE, body).status in {403, 422}
    assert everything() == before


def test_code_that_is_not_trusted_is_not_called_on_another_chain(
    wallet: Wallet, user: User, profile: Profile, foreign: ForeignChain, settings: Settings
) -> None:
    foreign.universal_profile = random_address()
    foreign.copy(profile)
    before = everything()
    response = wallet.post(EXECUTE, _with_chain(foreign, foreign.sign(profile)))
    assert response.status in {403, 422}, response.body
    assert everything() == before


def test_a_sponsor_pays_on_the_chain_of_its_policy_and_on_no_other(
    wallet: Wallet, user: User, profile: Profile, foreign: ForeignChain
) -> None:
    sponsor = make_sponsor()
    make_policy(sponsor)
    before = all_rows()
    body = _with_chain(foreign, foreign.sign(profile))
    refused = wallet.post(EXECUTE, body, **{"Relay-Sponsor": sponsor.slug})
    assert_problem(refused, 403, "sponsor-chain")
    assert all_rows() == before

    make_policy(sponsor, chain_id=foreign.id, targets=[{"contract": "profile", "functions": []}])
    paid = wallet.post(EXECUTE, body, **{"Relay-Sponsor": sponsor.slug})
    assert paid.status == 200, paid.body
    assert (balance_of(user).held, account_of(sponsor).open_holds) == (0, 1)
    with on_chain(foreign.id):
        broadcast_all()
        foreign.mine(2)
        assert track() == 1
    row = RelayTransaction.objects.get()
    assert (row.status, row.chain_id) == ("Success", foreign.id)
    assert account_of(sponsor).balance == 100_000 - row.real_cost
    assert balance_of(user).balance == 10_000


def test_what_home_does_not_permit_no_sponsor_pays_elsewhere(
    anonymous: Wallet, user: User, profile: Profile, foreign: ForeignChain, removed: str
) -> None:
    sponsor = make_sponsor()
    make_policy(sponsor, chain_id=foreign.id)
    before = all_rows()
    call = foreign.sign(profile, private_key=removed, relay_nonce=0)
    body = lsp15_body(profile, call) | {"sponsor": sponsor.slug}
    assert_problem(anonymous.post(_path(foreign), body), 403, "home-permission-missing")
    assert all_rows() == before


def test_the_default_sponsor_is_not_asked_about_another_chain(
    profile: Profile, foreign: ForeignChain, open_account: Callable[..., User]
) -> None:
    open_account(profile, credits=1)
    sponsor = make_sponsor()
    make_policy(sponsor)
    Sponsor.objects.filter(pk=sponsor.pk).update(is_default=True)
    wallet, before = signed_in(profile), all_rows()
    response = wallet.post(EXECUTE, _with_chain(foreign, foreign.sign(profile)))
    assert_problem(response, 402, "insufficient-credits")
    assert all_rows() == before
