"""The order of calls within a channel."""

import random
import secrets
from collections.abc import Callable

import pytest
from django.conf import settings as django_settings
from django.utils import timezone
from pytest_django import Settings

from devstack.services.stack import Services
from devstack.world.permissions import Permission
from devstack.world.profiles import ControllerPlan, Profile
from gateway.chain.errors import NotAuthorised
from gateway.chain.lsp25 import RelayCall
from relay.errors import ChannelBusy, RelayersBusy, RelayNonceGap, RelayNonceTaken, RelayNonceUsed
from relay.models import Relayer, RelayTransaction
from tests.relay.callers import execute
from tests.relay.chain import Chain, FaultyClient
from tests.relay.conftest import Accept, Refused
from tests.relay.signing import set_data_payload, sign_call
from tests.relay.workers import broadcast_all, track
from users.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture
def channel() -> int:
    """An unused channel."""
    return secrets.randbits(120)


def test_a_used_nonce_is_refused_with_the_expected_one(
    user: User,
    accept: Accept,
    new_call: Callable[..., RelayCall],
    settle: Callable[[], int],
    refused: Refused,
    channel: int,
) -> None:
    accept(channel=channel)
    settle()
    refusal = refused.call(RelayNonceUsed, user, new_call(relay_nonce=channel << 128))
    assert (refusal.status, refusal.members) == (409, {"expectedNonce": str(channel << 128 | 1)})


@pytest.mark.parametrize("ahead", [1, 2**127])
def test_a_gap_is_refused_with_the_missing_nonce(
    user: User, new_call: Callable[..., RelayCall], refused: Refused, channel: int, ahead: int
) -> None:
    refusal = refused.call(RelayNonceGap, user, new_call(channel=channel, ahead=ahead))
    assert (refusal.status, refusal.members) == (409, {"expectedNonce": str(channel << 128)})


def test_a_gap_behind_followers_names_the_first_missing_nonce(
    user: User, accept: Accept, new_call: Callable[..., RelayCall], refused: Refused, channel: int
) -> None:
    followers = random.randint(1, 4)
    for ahead in range(followers):
        accept(channel=channel, ahead=ahead)
    refusal = refused.call(RelayNonceGap, user, new_call(channel=channel, ahead=followers + 1))
    assert refusal.members == {"expectedNonce": str(channel << 128 | followers)}


def test_calls_of_another_controller_close_no_gap(
    services: Services,
    create_profile: Callable[..., Profile],
    open_account: Callable[..., User],
    refused: Refused,
) -> None:
    made = create_profile(ControllerPlan(), ControllerPlan())
    user, other = open_account(made), made.controllers[1].private_key
    execute(user=user, call=sign_call(services=services, profile=made), now=timezone.now())
    refused.call(RelayNonceGap, user, sign_call(services=services, profile=made, private_key=other, ahead=1))


def test_calls_of_another_profile_by_the_same_controller_close_no_gap(
    services: Services,
    create_profile: Callable[..., Profile],
    open_account: Callable[..., User],
    refused: Refused,
) -> None:
    shared = ControllerPlan()
    first, second = create_profile(shared), create_profile(shared)
    execute(user=open_account(first), call=sign_call(services=services, profile=first), now=timezone.now())
    user = open_account(second)
    refused.call(RelayNonceGap, user, sign_call(services=services, profile=second, ahead=1))
    execute(user=user, call=sign_call(services=services, profile=second), now=timezone.now())


class TestWithANodeThatLags:
    """The node still tells the nonce of before the call was executed."""

    @pytest.mark.parametrize("status", ["Success", "ExecutedExternally"])
    def test_an_executed_call_keeps_its_nonce_closes_the_gap_and_binds_no_relayer(
        self,
        user: User,
        accept: Accept,
        new_call: Callable[..., RelayCall],
        settle: Callable[[], int],
        channel: int,
        node: FaultyClient,
        status: str,
    ) -> None:
        same, after = new_call(channel=channel), new_call(channel=channel, ahead=1)
        first = accept(channel=channel)
        assert settle() == 1
        RelayTransaction.objects.update(status=status)
        # Its relayer would be the only choice, if the channel still stuck to it.
        Relayer.objects.filter(pk=first.relayer_id).update(is_active=False)
        node.lagging_nonce = same.relay_nonce
        with pytest.raises(RelayNonceTaken):
            execute(user=user, call=same, now=timezone.now())
        assert execute(user=user, call=after, now=timezone.now())

    @pytest.mark.parametrize("status", ["Failed", "Expired", "Cancelled"])
    def test_a_call_without_effect_leaves_its_nonce(
        self,
        user: User,
        accept: Accept,
        new_call: Callable[..., RelayCall],
        settle: Callable[[], int],
        channel: int,
        node: FaultyClient,
        status: str,
    ) -> None:
        same, after = new_call(channel=channel), new_call(channel=channel, ahead=1)
        accept(channel=channel)
        assert settle() == 1
        RelayTransaction.objects.update(status=status)
        node.lagging_nonce = same.relay_nonce
        with pytest.raises(RelayNonceGap):
            execute(user=user, call=after, now=timezone.now())
        assert execute(user=user, call=same, now=timezone.now())


@pytest.mark.parametrize("is_sent", [False, True])
def test_other_content_on_a_nonce_in_progress_is_refused(
    user: User, accept: Accept, new_call: Callable[..., RelayCall], refused: Refused, is_sent: bool
) -> None:
    accept()
    if is_sent:
        broadcast_all()
    call = new_call()
    refusal = refused.call(RelayNonceTaken, user, call)
    assert (refusal.status, refusal.members) == (409, {"nonce": str(call.relay_nonce)})


def test_followers_wait_behind_each_other_up_to_the_limit(
    user: User,
    accept: Accept,
    new_call: Callable[..., RelayCall],
    settle: Callable[[], int],
    refused: Refused,
    channel: int,
) -> None:
    limit = django_settings.RELAY_MAX_FOLLOWERS
    for ahead in range(limit + 1):
        accept(channel=channel, ahead=ahead)
    call = new_call(channel=channel, ahead=limit + 1)
    refusal = refused.call(ChannelBusy, user, call)
    assert (refusal.status, refusal.members) == (503, {"maximumFollowers": limit})
    assert refusal.retry_after

    assert settle() == limit + 1
    execute(user=user, call=call, now=timezone.now())


def test_calls_of_a_channel_use_one_relayer_in_their_own_order(
    relayers: list[Relayer], accept: Accept, channel: int, settle: Callable[[], int]
) -> None:
    accepted = [accept(channel=channel, ahead=ahead) for ahead in range(5)]
    assert len({row.relayer_id for row in accepted}) == 1
    assert [row.is_follower for row in accepted] == [False, True, True, True, True]
    nonces = [row.attempts.get().account_nonce for row in accepted]
    assert nonces == list(range(nonces[0], nonces[0] + 5))

    assert settle() == 5
    assert set(RelayTransaction.objects.values_list("status", flat=True)) == {"Success"}


UNUSABLE_STATES: dict[str, dict[str, object]] = {
    "full": {},
    "inactive": {"is_active": False},
    "too poor": {"balance_wei": 1},
}


@pytest.mark.parametrize("state", UNUSABLE_STATES)
def test_a_follower_is_never_assigned_to_another_relayer(
    user: User,
    accept: Accept,
    new_call: Callable[..., RelayCall],
    refused: Refused,
    settings: Settings,
    channel: int,
    state: str,
) -> None:
    sticky = accept(channel=channel).relayer_id
    if state == "full":
        settings.RELAY_MAX_IN_FLIGHT, settings.RELAY_USER_SHARE_PERCENT = 1, 100
    Relayer.objects.filter(pk=sticky).update(**UNUSABLE_STATES[state] or {"is_active": True})
    refusal = refused.call(RelayersBusy, user, new_call(channel=channel, ahead=1))
    assert (refusal.status, bool(refusal.retry_after)) == (503, True)


def test_a_channel_sticks_to_its_relayer_until_it_is_settled(
    relayers: list[Relayer], accept: Accept, chain: Chain, channel: int, settings: Settings
) -> None:
    settings.CONFIRMATIONS = 3
    favourite, sticky = relayers[:2]
    Relayer.objects.filter(pk=favourite.pk).update(is_active=False)
    first = accept(channel=channel)
    Relayer.objects.filter(pk=favourite.pk).update(is_active=True)
    broadcast_all()
    chain.mine()
    track()
    # Mined and not yet final: a reorganisation could still take it back.
    second = accept(channel=channel)
    assert (second.is_follower, first.relayer, second.relayer) == (False, sticky, sticky)

    broadcast_all()
    chain.mine(3)
    assert track() == 2
    assert accept(channel=channel).relayer == favourite


def test_a_follower_is_simulated_without_its_nonce_and_refused_without_permission(
    services: Services,
    create_profile: Callable[..., Profile],
    open_account: Callable[..., User],
    refused: Refused,
) -> None:
    permissions = Permission.EXECUTE_RELAY_CALL | Permission.SUPER_CALL
    made = create_profile(ControllerPlan(permissions))
    user = open_account(made)
    fine = sign_call(
        services=services,
        profile=made,
        payload=bytes.fromhex("44c028fe") + bytes(64 + 32) + bytes(31) + b"\x80" + bytes(32),
    )
    execute(user=user, call=fine, now=timezone.now())
    refused.call(
        NotAuthorised, user, sign_call(services=services, profile=made, payload=set_data_payload(), ahead=1)
    )
