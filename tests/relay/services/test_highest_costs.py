"""A call costs at most what the operator allows on its chain, and prepared calls say so before."""

from collections.abc import Callable

import pytest
from django.conf import settings as configured
from django.utils import timezone
from pytest_django import Settings

from devstack.world.profiles import Profile
from gateway.chain.config import on_chain
from gateway.chain.lsp25 import RelayCall
from relay.errors import CallTooExpensive
from relay.models import CreditPrice
from tests.relay.callers import execute
from tests.relay.chain import GWEI, Chain
from tests.relay.conftest import Accept, Refused
from tests.relay.quoting import execute_prepared, prepare
from tests.relay.two_chains import ForeignChain, settings_of
from users.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture
def calm(chain: Chain) -> Chain:
    chain.set_base_fee(GWEI)
    return chain


def test_a_call_at_the_limit_is_accepted_and_one_credit_more_is_refused_by_name(
    user: User,
    profile: Profile,
    calm: Chain,
    refused: Refused,
    settings: Settings,
) -> None:
    prepared = prepare(user, profile)
    cost = prepared.highest_cost
    assert cost is not None
    settings.RELAY_MAX_CALL_CREDITS = cost - 1
    with refused(CallTooExpensive) as refusal:
        execute_prepared(user, profile, prepared)
    assert refusal.value.status == 422
    assert refusal.value.members == {
        "highestCost": cost,
        "maximumCost": cost - 1,
        "chainId": configured.CHAIN_ID,
    }
    settings.RELAY_MAX_CALL_CREDITS = cost
    assert execute_prepared(user, profile, prepared).hold.amount == cost


def test_a_prepared_call_shows_its_cost_and_the_refusal_and_gets_no_quote(
    user: User, profile: Profile, calm: Chain, settings: Settings
) -> None:
    cost = prepare(user, profile).highest_cost
    settings.RELAY_MAX_CALL_CREDITS = 1
    prepared = prepare(user, profile)
    assert [refusal.code for refusal in prepared.refusals] == ["call-too-expensive"]
    assert (prepared.highest_cost, prepared.quote) == (cost, None)


def test_the_limit_is_in_credits_at_the_price_of_the_chain(
    user: User, new_call: Callable[..., RelayCall], accept: Accept, refused: Refused, settings: Settings
) -> None:
    settings.RELAY_MAX_CALL_CREDITS = accept().hold.amount * 3
    CreditPrice.objects.create(chain_id=configured.CHAIN_ID, credit_wei=configured.CREDIT_WEI // 9)
    refused.call(CallTooExpensive, user, new_call())


def test_each_chain_has_its_own_limit(
    foreign: ForeignChain, profile: Profile, user: User, accept: Accept, refused: Refused, settings: Settings
) -> None:
    keys = {"relayer_keys": settings.RELAY_RELAYER_KEYS}
    settings.CHAINS = {foreign.id: settings_of(foreign.id, max_call_credits=1, **keys)}
    with on_chain(foreign.id):
        with refused(CallTooExpensive) as refusal:
            execute(user=user, call=foreign.sign(profile), now=timezone.now())
        assert refusal.value.members["chainId"] == foreign.id
    assert accept().chain_id == configured.CHAIN_ID
