"""Gas limits that are learned from an estimate and tried again by execution."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from django.utils import timezone
from eth_abi.abi import encode

from devstack.services.stack import Services
from devstack.world.profiles import Profile
from gateway.chain.contracts import CONTRACT_ERRORS
from gateway.chain.errors import RelayNonceRefused
from gateway.chain.lsp25 import RelayCall
from gateway.chain.types import RelayQuery, RelayState, Trial
from relay.models import Relayer, RelayTransaction
from relay.services.accepting import gas_limits
from tests.relay.callers import execute
from tests.relay.chain import FaultyClient
from tests.relay.signing import execute_payload, set_data_payload, sign_call
from users.models import User

pytestmark = pytest.mark.django_db
NewCall = Callable[..., RelayCall]
Accept = Callable[..., RelayTransaction]


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
    assert node.trials == [None, first.gas_limit // 2]
    assert node.estimates == 1
    assert second.gas_limit >= first.gas_limit * 9 // 10
    third = accept(payload=execute_payload(target, value=1), channel=_channel())
    assert (third.gas_limit, node.estimates) == (second.gas_limit, 1)


def test_a_limit_far_above_what_the_call_uses_is_estimated_again(
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
        gas_limits._learn(profile, call, estimate=1, maximum=10**6)
    limits = [gas_limits.learned_limit(profile=profile, call=call) for profile in profiles]
    assert limits == [None] * 2 + [2] * 19
    assert gas_limits.learned_limit(profile=profiles[-1], call=replace(call, payload=bytes(4))) is None
