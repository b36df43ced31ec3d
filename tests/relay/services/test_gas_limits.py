"""Gas limits that are learned from an estimate and tried again by execution."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from django.conf import settings
from django.utils import timezone
from eth_abi.abi import encode
from pytest_django import Settings

from credits.services import entries
from devstack.services.stack import Services
from devstack.world.profiles import Profile
from gateway.chain.contracts import CONTRACT_ERRORS
from gateway.chain.errors import RelayNonceRefused
from gateway.chain.lsp25 import RelayCall
from gateway.chain.types import RelayQuery, RelayState, Trial
from relay.models import Relayer
from relay.pricing import gas_limit_for
from relay.services.accepting import gas_limits
from relay.services.accepting.calls import Caller, Gas
from relay.services.accepting.preparation import Draft, prepare
from tests.relay.attacks import Catcher, deploy_catcher, deploy_gas_reader
from tests.relay.callers import execute
from tests.relay.chain import FaultyClient
from tests.relay.conftest import Accept
from tests.relay.signing import execute_payload, set_data_payload, sign_call
from users.models import User

pytestmark = pytest.mark.django_db
NewCall = Callable[..., RelayCall]


@pytest.fixture(autouse=True)
def _nothing_learned() -> None:
    gas_limits._learned.clear()


def _channel() -> int:
    return secrets.randbits(100)


def test_only_the_first_call_to_a_target_is_estimated(
    accept: Accept, node: FaultyClient, relayers: list[Relayer]
) -> None:
    target = "0x" + secrets.token_hex(20)
    first, second = (
        accept(payload=execute_payload(target, value=count), channel=_channel()) for count in (1, 2)
    )
    assert node.trials == [None, first.gas_limit]
    assert node.estimates == 0
    # The first use of a channel costs both the same; the expected cost is what the execution used.
    assert second.gas_limit == first.gas_limit
    assert second.expected_cost < first.expected_cost


def test_another_target_payload_or_profile_is_estimated_for_itself(
    accept: Accept,
    node: FaultyClient,
    create_profile: Callable[..., Profile],
    open_account: Callable[..., User],
    services: Services,
) -> None:
    target = "0x" + secrets.token_hex(20)
    accept(payload=execute_payload(target, value=1), channel=_channel())
    accept(payload=execute_payload("0x" + secrets.token_hex(20), value=1), channel=_channel())
    accept(payload=set_data_payload(), channel=_channel())
    other = create_profile()
    call = sign_call(services=services, profile=other, payload=execute_payload(target, value=1))
    execute(user=open_account(other), call=call, now=timezone.now())
    assert node.trials == [None] * 4


def test_a_limit_that_does_not_suffice_any_more_is_estimated_again(
    accept: Accept, node: FaultyClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = "0x" + secrets.token_hex(20)
    first = accept(payload=execute_payload(target, value=1), channel=_channel())
    for kind, learned in gas_limits._learned.items():
        too_low = learned.gas._replace(limit=first.gas_limit // 2)
        monkeypatch.setitem(gas_limits._learned, kind, learned._replace(gas=too_low))
    second = accept(payload=execute_payload(target, value=1), channel=_channel())
    assert node.trials[:2] == [None, first.gas_limit // 2]
    assert node.estimates == 1
    assert second.gas_limit >= first.gas_limit * 9 // 10
    third = accept(payload=execute_payload(target, value=1), channel=_channel())
    assert (third.gas_limit, node.estimates) == (second.gas_limit, 1)


def test_a_limit_far_above_the_calls_use_is_estimated_again(
    accept: Accept, node: FaultyClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = "0x" + secrets.token_hex(20)
    first = accept(payload=execute_payload(target, value=1), channel=_channel())
    for kind, learned in gas_limits._learned.items():
        too_high = learned.gas._replace(limit=3 * first.gas_limit)
        monkeypatch.setitem(gas_limits._learned, kind, learned._replace(gas=too_high))
    second = accept(payload=execute_payload(target, value=1), channel=_channel())
    assert node.estimates == 1
    assert second.gas_limit < 2 * first.gas_limit


def test_a_call_that_was_tried_a_block_before_its_nonce_was_read_is_estimated_again(
    accept: Accept, node: FaultyClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors = {error.refusal: selector for selector, error in CONTRACT_ERRORS.items()}
    arguments = encode(["address", "uint256", "bytes"], ["0x" + secrets.token_hex(20), 7, b""])
    too_early = Trial(gas_limit=None, revert=errors[RelayNonceRefused] + arguments)
    read = node.read_relay_states

    def tried_too_early(queries: Sequence[RelayQuery]) -> list[RelayState]:
        return [replace(state, trial=too_early) for state in read(queries)]

    target = "0x" + secrets.token_hex(20)
    first = accept(payload=execute_payload(target, value=1), channel=_channel())
    gas_limits._learned.clear()
    monkeypatch.setattr(node, "read_relay_states", tried_too_early)
    second = accept(payload=execute_payload(target, value=1), channel=_channel())
    assert node.estimates == 1
    assert second.gas_limit == pytest.approx(first.gas_limit, rel=0.05)


def test_a_learned_limit_expires(accept: Accept, node: FaultyClient, monkeypatch: pytest.MonkeyPatch) -> None:
    target = "0x" + secrets.token_hex(20)
    accept(payload=execute_payload(target, value=1), channel=_channel())
    for kind, learned in gas_limits._learned.items():
        monkeypatch.setitem(gas_limits._learned, kind, learned._replace(valid_until=0.0))
    accept(payload=execute_payload(target, value=1), channel=_channel())
    assert node.trials == [None, None]


def test_the_oldest_limits_are_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gas_limits, "MOST_KEPT", 20)
    call = RelayCall("0x" + "11" * 20, secrets.token_bytes(4), b"", 0)
    profiles = ["0x" + secrets.token_hex(20) for _ in range(21)]
    for profile in profiles:
        gas_limits._learn(profile, call, Gas(2, 1))
    limits = [gas_limits.plan_for(profile=profile, call=call).limit for profile in profiles]
    assert limits == [None] * 2 + [2] * 19
    assert gas_limits.plan_for(profile=profiles[-1], call=replace(call, payload=bytes(4))).limit is None


@pytest.fixture
def catcher(services: Services) -> Catcher:
    """A contract that catches the failure of an inner call."""
    return deploy_catcher(services)


def test_the_limit_suffices_for_inner_calls_whose_failure_is_caught(
    accept: Accept, settle: Callable[[], int], catcher: Catcher
) -> None:
    row = accept(payload=execute_payload(catcher.address, data=catcher.work(60)), channel=_channel())
    settle()
    row.refresh_from_db()
    assert row.status == "Success"
    assert (catcher.tried, catcher.done) == (1, 1)
    assert row.gas_limit < settings.RELAY_MAX_GAS


def test_a_limit_learned_from_less_work_is_raised_for_more(
    accept: Accept, settle: Callable[[], int], catcher: Catcher, node: FaultyClient
) -> None:
    for count, done in ((2, 1), (60, 2), (60, 3)):
        payload = execute_payload(catcher.address, data=catcher.work(count))
        accept(payload=payload, channel=_channel())
        settle()
        assert (catcher.tried, catcher.done) == (done, done)
    assert node.estimates == 1


def test_a_kind_of_call_is_compared_with_the_highest_limit_once(
    accept: Accept, node: FaultyClient, relayers: list[Relayer]
) -> None:
    target = "0x" + secrets.token_hex(20)
    for count in range(1, 5):
        accept(payload=execute_payload(target, value=count), channel=_channel())
    # The first is estimated, the second compared at the learned limit.
    assert node.compared == [True, True, False, False]
    assert node.estimates == 0


@pytest.mark.parametrize("more", [8, 25, 60])
def test_a_call_that_starves_an_inner_call_at_a_proven_limit_is_noticed(
    accept: Accept, user: User, settle: Callable[[], int], catcher: Catcher, node: FaultyClient, more: int
) -> None:
    entries.adjust(user=user, credits=10**6, key=secrets.token_hex(8), actor=None, reason="much gas")
    for done, count in enumerate((2, 2, 2, more, more, 2), start=1):
        accept(payload=execute_payload(catcher.address, data=catcher.work(count)), channel=_channel())
        settle()
        assert (catcher.tried, catcher.done) == (done, done)
    # The fourth was tried at the proven limit alone, and then compared.
    assert node.compared[:5] == [True, True, False, False, True]


def test_a_follower_is_compared_although_its_kind_is_proven(
    accept: Accept, user: User, settle: Callable[[], int], catcher: Catcher, node: FaultyClient
) -> None:
    entries.adjust(user=user, credits=10**6, key=secrets.token_hex(8), actor=None, reason="much gas")
    channel = _channel()
    for _ in range(3):
        accept(payload=execute_payload(catcher.address, data=catcher.work(2)), channel=_channel())
        settle()
    accept(payload=execute_payload(catcher.address, data=catcher.work(60)), channel=channel)
    accept(payload=execute_payload(catcher.address, data=catcher.work(60)), channel=channel, ahead=1)
    settle()
    assert (catcher.tried, catcher.done) == (5, 5)


def test_a_call_that_reverts_at_a_proven_limit_is_estimated_and_compared(
    accept: Accept, node: FaultyClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = "0x" + secrets.token_hex(20)
    for count in (1, 2, 3):
        row = accept(payload=execute_payload(target, value=count), channel=_channel())
    ((kind, learned),) = gas_limits._learned.items()
    assert learned.is_proven
    too_low = learned.gas._replace(limit=row.gas_limit // 2)
    monkeypatch.setitem(gas_limits._learned, kind, learned._replace(gas=too_low))
    accept(payload=execute_payload(target, value=4), channel=_channel())
    assert node.estimates == 1
    assert node.compared[-2:] == [False, True]


def test_a_call_deep_below_a_proxy_that_runs_out_of_gas_is_noticed() -> None:
    limit = 1_000_000
    for levels in range(1, 9):
        left = sum((limit - 21_000) * 63**level // 64 ** (level + 1) for level in range(levels))
        trial = Trial(limit, gas_used=limit - left, most_gas_used=limit - left)
        assert not gas_limits._starves_none(trial, refund=None)
    assert gas_limits._starves_none(replace(trial, most_gas_used=limit - left - 100), refund=None)


def test_the_refund_of_a_call_counts_as_gas_used() -> None:
    trial = Trial(1_000_000, gas_used=800_000)
    assert not gas_limits._starves_none(trial, refund=None)
    assert not gas_limits._starves_none(trial, refund=100_000)
    assert gas_limits._starves_none(trial, refund=10_000)
    assert gas_limits._starves_none(replace(trial, most_gas_used=810_000), refund=None)
    # No refund is more than a fifth of the gas.
    assert gas_limits._starves_none(Trial(1_000_000, gas_used=600_000), refund=None)


def test_a_follower_and_a_quoted_call_get_the_gas_of_their_inner_calls(
    accept: Accept,
    settle: Callable[[], int],
    catcher: Catcher,
    user: User,
    profile: Profile,
    new_call: NewCall,
    settings: Settings,
) -> None:
    settings.RELAY_LOSS_PER_HOUR_WEI = settings.RELAY_USER_LOSS_PER_HOUR_WEI = 10**19
    entries.adjust(user=user, credits=10**6, key=secrets.token_hex(8), actor=None, reason="much gas")
    payload, channel = execute_payload(catcher.address, data=catcher.work(60)), _channel()
    prepared = prepare(
        caller=Caller(user.pk, profile.profile_address),
        draft=Draft(payload, channel=channel, controller=profile.controller.address, validity=0),
        now=timezone.now(),
    )
    assert prepared.quote is not None
    call = new_call(payload=payload, channel=channel)
    execute(user=user, call=call, now=timezone.now(), quote_id=prepared.quote.pk)
    accept(payload=payload, channel=channel, ahead=1)
    settle()
    assert (catcher.tried, catcher.done) == (2, 2)


def test_a_contract_that_reads_its_gas_gets_the_highest_limit(
    accept: Accept, services: Services, user: User, new_call: NewCall, node: FaultyClient
) -> None:
    entries.adjust(user=user, credits=10**6, key=secrets.token_hex(8), actor=None, reason="much gas")
    target, learned = deploy_gas_reader(services), Gas(200_000, 150_000)
    call = new_call(payload=execute_payload(target), channel=_channel())
    gas_limits._learn(str(user.profile_address), call, learned)
    row = accept(call)
    assert row.gas_limit == settings.RELAY_MAX_GAS
    # The learned limit, the one for a new estimate, and two raises.
    limits = [limit for limit in node.trials if limit is not None]
    assert (len(limits), limits[1:]) == (4, sorted(set(limits[1:])))


def test_on_a_node_that_cannot_simulate_the_margin_is_all(
    accept: Accept, node: FaultyClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = node.read_relay_states

    def without_simulation(queries: Sequence[RelayQuery]) -> list[RelayState]:
        states = read(queries)
        return [
            replace(state, trial=Trial(state.trial.gas_limit, revert=state.trial.revert)) for state in states
        ]

    monkeypatch.setattr(node, "read_relay_states", without_simulation)
    row = accept(payload=execute_payload("0x" + secrets.token_hex(20), value=1), channel=_channel())
    assert row.gas_limit == gas_limit_for(
        estimate=next(iter(gas_limits._learned.values())).gas.expected, maximum=10**7
    )
