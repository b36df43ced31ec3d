"""Gas and fees: what is too much, what is held, and how many questions the node is asked."""

from collections.abc import Callable

import pytest
from django.utils import timezone
from pytest_django import Settings

from credits.models import CreditHold
from devstack.services.stack import Services
from gateway.chain.errors import NodeUnavailable, TargetReverted
from gateway.chain.fees import FeesTooHigh
from gateway.chain.lsp25 import RelayCall
from relay.errors import GasLimitExceeded
from relay.models import Attempt, RelayTransaction
from relay.services.submission import execute
from tests.relay.chain import GWEI, Chain, MeddlingClient, node_away
from tests.relay.conftest import Refused
from tests.relay.signing import set_data_payload
from users.models import User

pytestmark = pytest.mark.django_db


def test_a_call_that_needs_more_gas_than_is_relayed_is_refused(
    user: User, new_call: Callable[..., RelayCall], refused: Refused, settings: Settings
) -> None:
    call = new_call(payload=set_data_payload(b"\x01" * 320))
    execute(user=user, call=call, now=timezone.now())
    gas_limit = RelayTransaction.objects.get().gas_limit

    # The estimate would fit under the cap and the limit with its margin does not.
    settings.RELAY_MAX_GAS = gas_limit - 1
    call = new_call(payload=set_data_payload(b"\x01" * 320), channel=1)
    with refused(GasLimitExceeded) as refusal:
        execute(user=user, call=call, now=timezone.now())
    assert refusal.value.members["maximum"] == gas_limit - 1
    assert refusal.value.members["gasLimit"] >= gas_limit


def test_a_call_that_runs_out_of_the_capped_gas_is_refused(
    user: User, new_call: Callable[..., RelayCall], refused: Refused, settings: Settings
) -> None:
    settings.RELAY_MAX_GAS = 100_000
    call = new_call(payload=set_data_payload(b"\x01" * 500))
    with refused(TargetReverted):
        execute(user=user, call=call, now=timezone.now())


def test_a_chain_that_asks_for_more_than_the_cap_is_waited_for(
    user: User, new_call: Callable[..., RelayCall], chain: Chain, refused: Refused, settings: Settings
) -> None:
    chain.set_base_fee(settings.RELAY_FEE_CAP_WEI + GWEI)
    call = new_call()
    with refused(FeesTooHigh) as refusal:
        execute(user=user, call=call, now=timezone.now())
    assert (refusal.value.status, refusal.value.retry_after) == (503, 60)


def test_nothing_is_stored_while_the_node_is_away(
    user: User, new_call: Callable[..., RelayCall], refused: Refused
) -> None:
    call = new_call()
    with refused(NodeUnavailable) as refusal, node_away():
        execute(user=user, call=call, now=timezone.now())
    assert (refusal.value.status, bool(refusal.value.retry_after)) == (503, True)


def test_the_hold_covers_the_gas_limit_at_the_highest_price(
    services: Services, user: User, new_call: Callable[..., RelayCall], settings: Settings
) -> None:
    execute(user=user, call=new_call(), now=timezone.now())

    row, attempt, hold = RelayTransaction.objects.get(), Attempt.objects.get(), CreditHold.objects.get()
    base_fee = int(services.rpc.call("eth_getBlockByNumber", "latest", False)["baseFeePerGas"], 16)
    assert attempt.max_fee_per_gas_wei == 2 * base_fee + attempt.max_priority_fee_per_gas_wei
    assert hold.amount == -(-row.gas_limit * attempt.max_fee_per_gas_wei // settings.CREDIT_WEI)
    assert 0 < row.expected_cost < hold.amount


def test_a_call_costs_two_questions_to_the_node(
    user: User, new_call: Callable[..., RelayCall], node: MeddlingClient
) -> None:
    for call in (new_call(), new_call(ahead=1)):
        before = node.requests
        execute(user=user, call=call, now=timezone.now())
        assert node.requests - before == 2
