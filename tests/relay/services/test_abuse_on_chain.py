"""
Calls that pass here and do something else on chain: who pays, measured on relayers' balances.

Each vector costs the service nothing: the user's hold covers the gas, whatever the chain made of the call.
"""

import secrets
from collections.abc import Callable
from decimal import Decimal
from functools import partial

import pytest
from django.utils import timezone
from pytest_django import Settings

from credits.models import CreditEntry
from credits.queries import balance_of
from devstack.services.stack import Services
from devstack.world.deployer import Call
from devstack.world.permissions import ALL_PERMISSIONS, Permission
from devstack.world.profiles import ControllerPlan, Profile
from devstack.world.test_contracts import FLIP
from gateway.chain.contracts import encode_execute_relay_call
from gateway.chain.errors import ResultTooLarge
from gateway.chain.lsp25 import RelayCall
from relay.errors import TooManyCancelledCalls
from relay.models import RelayTransaction
from relay.services.accepting import submission
from relay.services.accepting.calls import Caller, Step, SubmittedCall
from relay.services.accepting.together import Progress
from relay.services.sending import broadcasting
from rewards.models import Badge, ExperienceEntry
from tests.relay.attacks import (
    LossMeter,
    deploy_burner,
    deploy_forwarder,
    deploy_gas_price_aware,
    deploy_large_reverter,
)
from tests.relay.callers import execute, pass_together
from tests.relay.chain import Chain, FaultyClient
from tests.relay.conftest import Accept, Refused, Settle
from tests.relay.signing import execute_payload, next_nonce, sign_call, window
from tests.relay.workers import broadcast_all, track
from users.models import User

pytestmark = pytest.mark.django_db
NewCall = Callable[..., RelayCall]


@pytest.fixture
def meter(services: Services, user: User) -> LossMeter:
    return LossMeter(services)


def any_channel() -> int:
    return secrets.randbits(120)


def ending_of(row: RelayTransaction) -> tuple[str, str]:
    row.refresh_from_db()
    return row.status, row.failure_code


def test_a_target_that_burns_all_gas_after_the_simulation(
    services: Services, accept: Accept, settle: Settle, meter: LossMeter
) -> None:
    burner = deploy_burner(services)
    row = accept(payload=execute_payload(burner))
    services.world.deployer.send([Call(burner, FLIP, gas=100_000)])
    settle()
    assert ending_of(row)[0] == "Failed"
    attempt = row.attempts.get()
    assert int(attempt.gas_used or 0) > attempt.gas_limit * 9 // 10
    meter.assert_at_most(0)


def test_a_target_reverts_where_gas_has_a_price(
    services: Services, accept: Accept, settle: Settle, meter: LossMeter
) -> None:
    row = accept(payload=execute_payload(deploy_gas_price_aware(services)))
    settle()
    assert ending_of(row)[0] == "Failed"
    meter.assert_at_most(0)


def reentering(forwarder: str, inner: RelayCall) -> bytes:
    """Return the payload of a call to a contract that hands the inner call to the key manager."""
    again = encode_execute_relay_call(
        signature=inner.signature, nonce=inner.relay_nonce, validity=inner.validity, payload=inner.payload
    )
    return execute_payload(forwarder, data=int(inner.key_manager, 16).to_bytes(32, "big") + again)


def test_a_target_that_enters_the_key_manager_again(
    services: Services, profile: Profile, accept: Accept, new_call: NewCall, settle: Settle, meter: LossMeter
) -> None:
    inner = new_call(channel=any_channel())
    row = accept(channel=any_channel(), payload=reentering(deploy_forwarder(services), inner))
    settle()
    # The forwarder does not mind that the key manager's guard has stopped the inner call.
    assert ending_of(row) == ("Success", "")
    assert next_nonce(services, profile, profile.controller.address, inner.channel) == inner.relay_nonce
    meter.assert_at_most(0)
    # It is as good as before, and is charged once.
    inner_row = accept(inner)
    settle()
    assert ending_of(inner_row) == ("Success", "")
    assert CreditEntry.objects.filter(source="RELAY_TRANSACTION").count() == 2
    meter.assert_at_most(0)


def test_a_controller_that_may_re_enter_executes_its_next_call_inside_another(
    services: Services,
    chain: Chain,
    create_profile: Callable[..., Profile],
    open_account: Callable[..., User],
    settle: Settle,
) -> None:
    profile = create_profile(ControllerPlan(ALL_PERMISSIONS | Permission.REENTRANCY))
    owner, meter = open_account(profile), LossMeter(services)
    inner = sign_call(services=services, profile=profile, channel=any_channel())
    payload = reentering(deploy_forwarder(services, is_strict=True), inner)
    outer = sign_call(services=services, profile=profile, channel=any_channel(), payload=payload)
    for call in (outer, inner):
        execute(user=owner, call=call, now=timezone.now())
    first = RelayTransaction.objects.earliest("pk")
    broadcasting.broadcast(relayer_id=first.relayer_id, now=timezone.now())
    chain.mine()
    settle()
    used = next_nonce(services, profile, profile.controller.address, inner.channel)
    assert used == inner.relay_nonce + 1
    rows = RelayTransaction.objects.order_by("pk")
    assert [row.status for row in rows] == ["Success", "Failed"]
    meter.assert_at_most(0)


def test_the_profile_is_emptied_before_its_transfer_is_mined(
    services: Services,
    chain: Chain,
    create_profile: Callable[..., Profile],
    open_account: Callable[..., User],
    settle: Settle,
) -> None:
    poor = create_profile()
    owner, meter = open_account(poor), LossMeter(services)
    target = services.world.deploy_flaky().address
    call = sign_call(services=services, profile=poor, payload=execute_payload(target, 10**17))
    execute(user=owner, call=call, now=timezone.now())
    chain.fund(0, poor.profile_address)
    settle()
    assert ending_of(RelayTransaction.objects.get())[0] == "Failed"
    meter.assert_at_most(0)


def test_the_validity_ends_between_the_broadcast_and_the_block(
    chain: Chain, accept: Accept, settings: Settings, meter: LossMeter
) -> None:
    end = int(timezone.now().timestamp()) + 600
    row = accept(validity=window(0, end))
    assert broadcast_all() == 1
    with chain.later(end + 1):
        chain.mine(settings.CONFIRMATIONS)
        track()
        assert ending_of(row)[0] == "Failed"
        meter.assert_at_most(0)


def test_the_same_revert_for_ever_ends_at_the_limit(
    services: Services,
    user: User,
    accept: Accept,
    new_call: NewCall,
    refused: Refused,
    settle: Settle,
    settings: Settings,
    meter: LossMeter,
) -> None:
    settings.RELAY_CANCELLED_CALLS_PER_HOUR = 3
    flaky = services.world.deploy_flaky()
    call = new_call(payload=execute_payload(flaky.address))
    for _ in range(3):
        accept(call)
        flaky.flip()
        settle()
        flaky.flip()
    refused.call(TooManyCancelledCalls, user, call)
    meter.assert_at_most(0)


def test_a_failed_call_earns_neither_cashback_nor_experience(
    services: Services, user: User, accept: Accept, settle: Settle
) -> None:
    Badge.objects.update(credits_back_percent=Decimal("0.5"))
    flaky, before = services.world.deploy_flaky(), balance_of(user).balance
    row = accept(payload=execute_payload(flaky.address))
    flaky.flip()
    settle()
    assert ending_of(row)[0] == "Failed"
    assert balance_of(user).balance == before - row.real_cost < before
    assert not CreditEntry.objects.filter(source="CREDITS_BACK").exists()
    assert not ExperienceEntry.objects.filter(progress__user=user).exists()


def test_an_oversized_contract_result_refuses_the_call_and_does_not_fault_the_node(
    services: Services,
    create_profile: Callable[..., Profile],
    open_account: Callable[..., User],
    node: FaultyClient,
    refused: Refused,
) -> None:
    # A process reads this profile alone for minutes, so it is not that of other tests.
    profile = create_profile()
    user, new_call = open_account(profile), partial(sign_call, services=services, profile=profile)
    execute(user=user, call=new_call(channel=any_channel()), now=timezone.now())
    call = new_call(channel=any_channel(), payload=execute_payload(deploy_large_reverter(services)))
    for _ in range(4):
        refusal = refused.call(ResultTooLarge, user, call)
    assert (refusal.status, refusal.code) == (422, "answer-too-large")
    (only,) = node.pool
    assert (only.fault, only.guard.is_open) == ("", False)
    execute(user=user, call=new_call(channel=any_channel()), now=timezone.now())
    assert RelayTransaction.objects.count() == 2
    # Its author no longer shares the trips of others.
    call, identity = submission.identify(call=new_call(channel=any_channel()))
    submitted = SubmittedCall(Caller(user.pk, str(user.profile_address)), call, identity, timezone.now())
    (progress,) = pass_together(Progress(submitted, submission.story(submitted)))
    assert progress.call.rows.is_pair_known
    assert progress.step is Step.ALONE
