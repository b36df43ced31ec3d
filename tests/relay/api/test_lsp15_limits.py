"""What requests without a token can cost: form and rate are checked before the node is requests_before."""

import secrets
from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from devstack.ports import free_port
from devstack.services.stack import Services
from devstack.world.profiles import Profile
from gateway.chain.lsp25 import RelayCall
from relay.errors import CallFailedBefore
from relay.models import RelayTransaction
from relay.services.accepting import gas_limits, lsp15
from tests.relay.api.conftest import ApiResponse, Wallet, execute_body, network_address
from tests.relay.api.test_bodies import LSP15_EXECUTE, LSP15_QUOTA
from tests.relay.api.test_execute import EXECUTE, assert_problem
from tests.relay.api.test_lsp15 import lsp15_body
from tests.relay.api.test_quota import quota_body
from tests.relay.callers import execute
from tests.relay.chain import FaultyClient
from tests.relay.rows import everything
from tests.relay.signing import execute_payload, window
from users.models import User

pytestmark = pytest.mark.django_db
NewCall = Callable[..., RelayCall]


def post_without_token(path: str, body: Any) -> ApiResponse:
    """Ask from a network of its own."""
    return Wallet(None, network_address()).post(path, body)


@pytest.fixture
def forged(profile: Profile, new_call: NewCall) -> Callable[[], dict[str, Any]]:
    """Return a function that makes well-formed calls of an unknown signer."""
    return lambda: lsp15_body(profile, new_call(private_key="0x" + secrets.token_hex(32)))


@pytest.mark.parametrize(
    ("signature", "code"),
    [
        ("0x" + "11" * 64 + "05", "signature-malformed"),
        # No point of the curve has this r.
        ("0x" + "00" * 31 + "05" + "11" * 32 + "1b", "signature-unrecoverable"),
    ],
)
def test_a_signature_of_no_controller_costs_no_request_to_the_node(
    user: User, profile: Profile, new_call: NewCall, node: FaultyClient, signature: str, code: str
) -> None:
    call = lsp15_body(profile, new_call())
    call["transaction"]["signature"] = signature
    before = everything()
    for path, body in ((LSP15_EXECUTE, call), (LSP15_QUOTA, {**quota_body(profile), "signature": signature})):
        assert_problem(post_without_token(path, body), 400, code)
    assert (node.requests, everything()) == (0, before)


def test_an_expired_call_costs_no_request_to_the_node(
    user: User, profile: Profile, new_call: NewCall, node: FaultyClient
) -> None:
    past = int(timezone.now().timestamp()) - 60
    assert_problem(
        post_without_token(LSP15_EXECUTE, lsp15_body(profile, new_call(validity=window(0, past)))),
        422,
        "relay-call-expired",
    )
    assert node.requests == 0


@pytest.mark.parametrize("path", [LSP15_EXECUTE, LSP15_QUOTA])
def test_without_redis_requests_without_a_token_are_refused(
    user: User, profile: Profile, new_call: NewCall, settings: Settings, node: FaultyClient, path: str
) -> None:
    settings.REDIS_URL = f"redis://127.0.0.1:{free_port()}/0"
    body = lsp15_body(profile, new_call()) if path == LSP15_EXECUTE else quota_body(profile)
    before = everything()
    response = post_without_token(path, body)
    assert_problem(response, 503, "service-unavailable")
    assert response.headers["Retry-After"] == "5"
    assert (node.requests, everything()) == (0, before)


def test_callers_are_counted_by_their_network(
    profile: Profile, user: User, new_call: NewCall, settings: Settings
) -> None:
    settings.LSP15_RATE = "1/hour"
    body = lsp15_body(profile, new_call())
    machine, another = Wallet(None, network_address()), Wallet(None, network_address())
    neighbour = Wallet(None, machine.address.removesuffix("::1") + "::2")
    statuses = [caller.post(LSP15_EXECUTE, body).status for caller in (machine, machine, neighbour, another)]
    assert statuses == [200, 429, 429, 200]


def test_unknown_signers_are_counted_by_the_profile_they_claim_and_their_network(
    profile: Profile,
    user: User,
    new_call: NewCall,
    forged: Callable[[], dict[str, Any]],
    settings: Settings,
    node: FaultyClient,
) -> None:
    settings.LSP15_NEW_SIGNER_RATE = "2/hour"
    attacker = Wallet(None, network_address())
    codes = [attacker.post(LSP15_EXECUTE, forged()).body["code"] for _ in range(3)]
    assert codes == ["signer-not-a-controller"] * 2 + ["too-many-requests"]
    requests_before = node.requests
    response = attacker.post(LSP15_QUOTA, quota_body(profile))
    assert_problem(response, 429, "too-many-requests")
    assert 1 < int(response.headers["Retry-After"]) <= 3601
    assert node.requests == requests_before
    assert not RelayTransaction.objects.exists()
    # The profile is new, so its own controller is just as unknown; but it calls from elsewhere.
    assert post_without_token(LSP15_QUOTA, quota_body(profile)).status == 200
    assert post_without_token(LSP15_EXECUTE, lsp15_body(profile, new_call())).status == 200


def test_unknown_signers_use_up_no_known_signers_rate(
    profile: Profile,
    user: User,
    new_call: NewCall,
    forged: Callable[[], dict[str, Any]],
    settings: Settings,
) -> None:
    settings.LSP15_NEW_SIGNER_RATE = "3/hour"
    wallet = Wallet(None, network_address())
    assert wallet.post(LSP15_EXECUTE, lsp15_body(profile, new_call())).status == 200
    assert {wallet.post(LSP15_EXECUTE, forged()).status for _ in range(3)} == {403, 429}
    assert wallet.post(LSP15_EXECUTE, lsp15_body(profile, new_call(channel=7))).status == 200
    assert wallet.post(LSP15_QUOTA, quota_body(profile)).status == 200


def test_a_known_signer_has_a_rate_that_repeats_of_a_known_call_do_not_touch(
    profile: Profile, user: User, new_call: NewCall, settings: Settings
) -> None:
    settings.LSP15_SIGNER_RATE = "1/hour"
    first = lsp15_body(profile, new_call())
    hashes = {post_without_token(LSP15_EXECUTE, first).body["transactionHash"] for _ in range(4)}
    assert len(hashes) == 1
    statuses = [
        post_without_token(LSP15_EXECUTE, lsp15_body(profile, new_call(channel=at))).status for at in (8, 9)
    ]
    assert statuses == [200, 429]
    assert RelayTransaction.objects.count() == 2


def test_a_call_of_a_known_profile_costs_one_request_to_the_node(
    profile: Profile, user: User, new_call: NewCall, node: FaultyClient
) -> None:
    gas_limits._learned.clear()
    spent = []
    # First the key manager is looked up, and verified to be the profile's.
    # Channels that no other test has used: a channel's first call needs more gas than one after it.
    for channel in (secrets.randbits(96), secrets.randbits(96)):
        before = node.requests
        assert post_without_token(LSP15_EXECUTE, lsp15_body(profile, new_call(channel=channel))).status == 200
        spent.append(node.requests - before)
    assert spent == [3, 1]


def test_a_profile_that_has_moved_to_another_key_manager_is_served_there(
    profile: Profile, user: User, new_call: NewCall, services: Services
) -> None:
    assert post_without_token(LSP15_EXECUTE, lsp15_body(profile, new_call())).status == 200
    # The stored key manager does not own the profile any more.
    former = services.world.deploy_stray_key_manager(profile.profile_address)
    RelayTransaction.objects.update(key_manager_address=former)
    response = post_without_token(LSP15_EXECUTE, lsp15_body(profile, new_call(channel=5)))
    assert response.status == 200, response.body
    assert RelayTransaction.objects.latest("id").key_manager_address == profile.key_manager_address


def test_a_call_that_failed_is_repeated_without_a_token_so_often_and_no_more(
    wallet: Wallet,
    profile: Profile,
    new_call: NewCall,
    services: Services,
    settle: Callable[[], int],
    settings: Settings,
    node: FaultyClient,
) -> None:
    settings.LSP15_FAILURES_PER_CALL = 2
    flaky = services.world.deploy_flaky()
    call = new_call(payload=execute_payload(flaky.address))
    for _ in range(2):
        assert post_without_token(LSP15_EXECUTE, lsp15_body(profile, call)).status == 200
        flaky.flip()
        settle()
        flaky.flip()
    assert set(RelayTransaction.objects.values_list("status", flat=True)) == {"Failed"}
    # Repeats by third parties use up no user's rate.
    settings.LSP15_SIGNER_RATE = "1/day"
    before, requests_before = everything(), node.requests
    for _ in range(3):
        members = assert_problem(
            post_without_token(LSP15_EXECUTE, lsp15_body(profile, call)), 409, "call-failed-before"
        )
        assert members == {"maximum": 2}
    assert (everything(), node.requests) == (before, requests_before)
    # Another call of the same controller is accepted, and so is this one with a token.
    another = new_call(payload=execute_payload(flaky.address), channel=11)
    assert post_without_token(LSP15_EXECUTE, lsp15_body(profile, another)).status == 200
    again = wallet.post(EXECUTE, execute_body(call))
    assert again.status == 200, again.body
    # A call in progress gets its hash again.
    assert post_without_token(LSP15_EXECUTE, lsp15_body(profile, call)).body == again.body


def test_a_call_that_fails_while_an_equal_request_waits_is_refused(
    profile: Profile,
    user: User,
    new_call: NewCall,
    services: Services,
    settle: Callable[[], int],
    settings: Settings,
) -> None:
    settings.LSP15_FAILURES_PER_CALL = 1
    flaky = services.world.deploy_flaky()
    call = new_call(payload=execute_payload(flaky.address))

    def fail_first(signer: str | None) -> None:
        execute(user=user, call=call, now=timezone.now())
        flaky.flip()
        settle()
        flaky.flip()

    assert post_without_token(LSP15_EXECUTE, lsp15_body(profile, new_call(channel=12))).status == 200
    with pytest.raises(CallFailedBefore):
        lsp15.execute(key_manager=None, user=user, call=call, now=timezone.now(), admit=fail_first)
    assert RelayTransaction.objects.filter(payload=call.payload).count() == 1
