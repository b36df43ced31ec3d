"""
Calls that the service must cancel at its own cost, and spikes of the base fee: what they cost, against their bounds.

Measured on relayers' balances, on a real chain.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pytest
from django.utils import timezone
from pytest_django import Settings

from credits.queries import balance_of
from credits.services import entries
from devstack.services.stack import Services
from devstack.world.profiles import Profile
from gateway.chain.client import set_chain_client
from gateway.chain.lsp25 import RelayCall
from gateway.chain.types import SendKind
from relay.errors import RelayShareUsed, TooManyCancelledCalls
from relay.models import Loss, RelayTransaction
from relay.services.fleet import losses
from relay.services.sending import broadcasting
from tests.relay.attacks import LossMeter
from tests.relay.callers import execute
from tests.relay.chain import GWEI, Chain, FaultyClient
from tests.relay.conftest import Accept, Refused
from tests.relay.signing import set_data_payload, sign_call, window
from tests.relay.workers import broadcast_all, later, track
from users.models import User

pytestmark = pytest.mark.django_db
_SELF_TRANSFER_GAS = 21_000


@pytest.fixture
def meter(services: Services, user: User, chain: Chain) -> LossMeter:
    chain.set_base_fee(GWEI)
    return LossMeter(services)


@pytest.fixture
def finish(chain: Chain, settings: Settings) -> Callable[..., None]:
    """Return a function that has everything sent and settled, a number of seconds from now."""

    def run(seconds: float = 0) -> None:
        for _ in range(3):
            broadcast_all(now=later(seconds))
        chain.mine(settings.CONFIRMATIONS)
        track(now=later(seconds))

    return run


def any_channel() -> int:
    return secrets.randbits(120)


def soon() -> int:
    """Return a validity that ends in less than two minutes."""
    return window(0, int(timezone.now().timestamp()) + 100)


def spend_the_rest(*users: User) -> None:
    for user in users:
        entries.adjust(
            user=user,
            credits=-balance_of(user).available,
            key=secrets.token_hex(8),
            actor=None,
            reason="spent",
        )


@pytest.mark.parametrize("is_sent", [False, True], ids=["unsent", "sent"])
def test_a_user_lets_the_maximum_number_of_calls_expire(
    accept: Accept,
    user: User,
    new_call: Callable[..., RelayCall],
    refused: Refused,
    chain: Chain,
    settings: Settings,
    meter: LossMeter,
    finish: Callable[..., None],
    is_sent: bool,
) -> None:
    limit = settings.RELAY_CANCELLED_CALLS_PER_HOUR = 3
    for _ in range(limit):
        accept(channel=any_channel(), validity=soon())
    call = new_call(channel=any_channel())
    refused.call(RelayShareUsed, user, call)
    if is_sent:
        broadcast_all()
        chain.drop_pool()
        track(now=later(101))
    finish(101)

    assert set(RelayTransaction.objects.values_list("status", flat=True)) == {"Expired"}
    assert balance_of(user).held == 0
    bound = limit * _SELF_TRANSFER_GAS * settings.RELAY_FEE_CAP_WEI
    assert meter.assert_at_most(min(bound, settings.RELAY_LOSS_PER_HOUR_WEI)) > 0
    refused.call(TooManyCancelledCalls, user, call, now=later(101))


def test_a_node_that_refuses_everything_stops_costing_when_the_budget_is_used_up(
    accept: Accept,
    node: FaultyClient,
    chain: Chain,
    settings: Settings,
    meter: LossMeter,
    finish: Callable[..., None],
) -> None:
    settings.RELAY_LOSS_PER_HOUR_WEI = 4 * _SELF_TRANSFER_GAS * 3 * GWEI
    rows = [accept(channel=any_channel()) for _ in range(6)]
    node.answer_next(*[SendKind.REFUSED] * len(rows))
    broadcast_all()
    cancelled = [row for row in rows if row.attempts.count() == 2]
    assert 0 < len(cancelled) < len(rows)
    # A refused attempt is sent again a second later, and the node takes it now.
    finish(2)
    statuses = list(RelayTransaction.objects.order_by("status").values_list("status", flat=True))
    assert statuses == ["Cancelled"] * len(cancelled) + ["Success"] * (len(rows) - len(cancelled))
    meter.assert_at_most(settings.RELAY_LOSS_PER_HOUR_WEI)


@dataclass(frozen=True)
class Spike:
    """What the service may lose, whether the user could pay, and how often the call is then signed."""

    user_limit_wei: int
    service_limit_wei: int
    is_affordable: bool
    attempts: int


@pytest.mark.parametrize(
    "spike",
    [
        pytest.param(Spike(10**15, 5 * 10**16, is_affordable=False, attempts=1), id="limits by default"),
        pytest.param(Spike(10**16, 5 * 10**16, is_affordable=False, attempts=2), id="more for the user"),
        pytest.param(Spike(10**16, 3 * 10**15, is_affordable=False, attempts=1), id="less for the service"),
        pytest.param(Spike(10**15, 5 * 10**16, is_affordable=True, attempts=1), id="the user could pay"),
    ],
)
def test_the_spike_that_once_cost_7942_credits_costs_at_most_the_limits(
    accept: Accept,
    user: User,
    chain: Chain,
    settings: Settings,
    meter: LossMeter,
    finish: Callable[..., None],
    spike: Spike,
) -> None:
    """A call of 458,000 gas was held at 1,217 credits, sent again at a base fee 20 times as high, and cost 9,159."""
    settings.RELAY_USER_LOSS_PER_HOUR_WEI = spike.user_limit_wei
    settings.RELAY_LOSS_PER_HOUR_WEI = spike.service_limit_wei
    # A client keeps the price of a block for a while; this one's must not be that of the test before.
    set_chain_client(None)
    row = accept(payload=set_data_payload(secrets.token_bytes(480), key=secrets.token_bytes(32)))
    held = row.hold.amount
    broadcast_all()
    chain.drop_pool()
    if spike.is_affordable:
        entries.adjust(user=user, credits=10_000, key="spike", actor=None, reason="topped up")
    else:
        spend_the_rest(user)
    chain.set_base_fee(20 * GWEI)
    track(now=later(settings.RELAY_REPLACE_SECONDS + 1))
    assert row.attempts.count() == spike.attempts
    # The spike lasts: calls that pay enough are mined in it, the others afterwards.
    broadcast_all()
    chain.set_base_fee(20 * GWEI)
    finish()
    row.refresh_from_db()
    assert row.status == ("Success" if spike.attempts == 2 else "Submitted")
    chain.set_base_fee(GWEI)
    broadcasting.resend(now=later(settings.RELAY_RESEND_SECONDS + 1))
    finish()
    row.refresh_from_db()
    row.hold.refresh_from_db()
    lost = meter.assert_at_most(min(spike.user_limit_wei, spike.service_limit_wei))
    assert row.status == "Success"
    if spike.attempts == 2:
        # What the service may lose is what it loses: all but the hold.
        assert row.hold.captured_amount == held
        assert held < lost / settings.CREDIT_WEI < spike.user_limit_wei / settings.CREDIT_WEI
    else:
        assert lost <= 0
        assert row.hold.captured_amount == row.real_cost


def test_a_spike_costs_no_more_than_each_users_and_the_services_budget(
    services: Services,
    create_profile: Callable[..., Profile],
    open_account: Callable[..., User],
    chain: Chain,
    settings: Settings,
    finish: Callable[..., None],
) -> None:
    profiles = [create_profile() for _ in range(3)]
    owners = [open_account(profile) for profile in profiles]
    chain.set_base_fee(GWEI)
    meter = LossMeter(services)
    calls = [
        partial(execute, user=owner, call=sign_call(services=services, profile=profile, channel=channel))
        for owner, profile in zip(owners, profiles, strict=True)
        for channel in range(3)
    ]
    for call in calls:
        call(now=timezone.now())
    spend_the_rest(*owners)
    chain.set_base_fee(12 * GWEI)
    one = RelayTransaction.objects.first()
    assert one is not None
    # Enough for one replacement of each user, and for two of all.
    worst = one.gas_limit * settings.RELAY_FEE_CAP_WEI - one.hold.amount * settings.CREDIT_WEI
    settings.RELAY_USER_LOSS_PER_HOUR_WEI = worst * 3 // 2
    settings.RELAY_LOSS_PER_HOUR_WEI = worst * 4
    broadcast_all()
    usage = losses.usage(now=timezone.now())
    assert 0 < usage.reserved_wei <= settings.RELAY_LOSS_PER_HOUR_WEI * 3 // 4
    by_user = [row.reserved_wei for row in losses.biggest_users(since=later(-60))]
    assert max(by_user) <= settings.RELAY_USER_LOSS_PER_HOUR_WEI
    replaced = Loss.objects.count()
    assert 0 < replaced < len(calls)
    broadcast_all()
    chain.mine(settings.CONFIRMATIONS)
    track()
    assert RelayTransaction.objects.filter(status="Success").count() == replaced
    assert meter.assert_at_most(settings.RELAY_LOSS_PER_HOUR_WEI * 3 // 4) > 0

    chain.set_base_fee(GWEI)
    finish()
    assert {row.status for row in RelayTransaction.objects.all()} == {"Success"}
    meter.assert_at_most(settings.RELAY_LOSS_PER_HOUR_WEI * 3 // 4)
