"""Gas, fees and validity windows, before anything is held."""

import random
import secrets
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from datetime import UTC, datetime

import pytest
from django.conf import settings
from django.utils import timezone
from eth_abi.abi import encode
from eth_utils.crypto import keccak
from pytest_django import Settings

from credits.models import CreditHold
from credits.services import entries
from devstack.services.stack import Services
from devstack.toolchain import creation_code
from devstack.world.profiles import Profile
from gateway.chain.client import set_chain_client
from gateway.chain.errors import NodeUnavailable, RelayCallExpired, RelayCallNotYetValid, TargetReverted
from gateway.chain.fees import FeesTooHigh
from gateway.chain.lsp25 import RelayCall
from gateway.chain.types import Head
from gateway.common.errors import DomainError
from relay.errors import GasLimitExceeded, ValidityTooShort
from relay.models import Attempt, RelayTransaction
from relay.services.accepting import gas_limits
from relay.services.accepting.calls import Caller
from relay.services.accepting.preflight import check_validity
from relay.services.accepting.preparation import Draft, prepare
from tests.relay.callers import execute
from tests.relay.chain import GWEI, Chain, FaultyClient, node_away
from tests.relay.conftest import Refused
from tests.relay.signing import execute_payload, set_data_payload, sign_call, window
from users.models import User

pytestmark = pytest.mark.django_db
_BLOCK = settings.CHAIN_BLOCK_SECONDS


def test_a_call_that_needs_more_gas_than_is_relayed_is_refused(
    user: User, new_call: Callable[..., RelayCall], refused: Refused, settings: Settings
) -> None:
    call = new_call(payload=set_data_payload(b"\x01" * 320))
    execute(user=user, call=call, now=timezone.now())
    gas_limit = RelayTransaction.objects.get().gas_limit

    gas_limits._learned.clear()
    # The estimate fits under the cap, but not with a margin of 2 %.
    settings.RELAY_MAX_GAS = cap = gas_limit * 100 // 115 * 101 // 100
    call = new_call(payload=set_data_payload(b"\x01" * 320), channel=1)
    refusal = refused.call(GasLimitExceeded, user, call)
    assert refusal.members["maximum"] == cap
    assert cap < refusal.members["gasLimit"] < gas_limit


def deployment(name: str, owner: str) -> bytes:
    """Return the payload by which a profile deploys a token of this artifact."""
    arguments = encode(["string", "string", "address", "uint256", "uint256"], ["Token", "TKN", owner, 0, 0])
    return keccak(text="execute(uint256,address,uint256,bytes)")[:4] + encode(
        ["uint256", "address", "uint256", "bytes"],
        [1, "0x" + "00" * 20, 0, creation_code(name) + arguments],
    )


def test_a_deployment_that_fits_is_relayed_although_its_padding_does_not(
    user: User,
    profile: Profile,
    new_call: Callable[..., RelayCall],
    settle: Callable[[], int],
    settings: Settings,
) -> None:
    settings.RELAY_MAX_GAS = 3_000_000
    entries.adjust(user=user, credits=10**6, key=secrets.token_hex(8), actor=None, reason="a deployment")
    call = new_call(payload=deployment("LSP7Mintable", profile.profile_address))
    execute(user=user, call=call, now=timezone.now())
    row = RelayTransaction.objects.get()
    assert row.gas_limit == settings.RELAY_MAX_GAS
    assert settle() == 1
    row.refresh_from_db()
    assert row.status == "Success"


@pytest.mark.parametrize("case", ["LSP8Mintable", "4,000 bytes"])
def test_by_default_a_token_can_be_deployed_and_4000_bytes_be_stored(
    user: User,
    profile: Profile,
    new_call: Callable[..., RelayCall],
    settle: Callable[[], int],
    case: str,
) -> None:
    entries.adjust(user=user, credits=10**6, key=secrets.token_hex(8), actor=None, reason="a large call")
    payload = (
        deployment(case, profile.profile_address)
        if case == "LSP8Mintable"
        else set_data_payload(secrets.token_bytes(4_000), key=secrets.token_bytes(32))
    )
    execute(user=user, call=new_call(payload=payload), now=timezone.now())
    row = RelayTransaction.objects.get()
    assert 3_000_000 < row.gas_limit <= settings.RELAY_MAX_GAS
    assert settle() == 1
    row.refresh_from_db()
    assert row.status == "Success"


@pytest.fixture
def small_blocks(services: Services, chain: Chain) -> Iterator[int]:
    """Blocks of eight million gas, a quarter of which is less than RELAY_MAX_GAS."""
    usual = int(services.rpc.call("eth_getBlockByNumber", "latest", False)["gasLimit"], 16)
    services.rpc.call("evm_setBlockGasLimit", hex(8_000_000))
    chain.mine()
    set_chain_client(None)
    yield 8_000_000
    services.rpc.call("evm_setBlockGasLimit", hex(usual))
    chain.mine()


@pytest.mark.parametrize("prepares", [False, True])
def test_no_call_gets_more_than_a_quarter_of_a_block(
    user: User,
    profile: Profile,
    new_call: Callable[..., RelayCall],
    refused: Refused,
    small_blocks: int,
    prepares: bool,
) -> None:
    payload = set_data_payload(secrets.token_bytes(3_000), key=secrets.token_bytes(32))
    if prepares:
        draft = Draft(payload, controller=profile.controller.address)
        caller = Caller(user.pk, profile.profile_address)
        (error,) = prepare(caller=caller, draft=draft, now=timezone.now()).refusals
    else:
        error = refused.call(GasLimitExceeded, user, new_call(payload=payload))
    assert isinstance(error, GasLimitExceeded)
    assert error.members["maximum"] == small_blocks // 4 < error.members["gasLimit"]


@pytest.mark.parametrize(
    ("case", "prepares", "words"),
    [
        ("10 kB", False, "a gas limit of at least"),
        ("10 kB", True, "a gas limit of at least"),
        ("30 kB", False, "more than 10000000 gas"),
        ("30 kB", True, "more than 10000000 gas"),
    ],
)
def test_too_little_gas_is_not_blamed_on_the_contract(
    user: User,
    profile: Profile,
    new_call: Callable[..., RelayCall],
    refused: Refused,
    case: str,
    prepares: bool,
    words: str,
) -> None:
    payload = set_data_payload(secrets.token_bytes(1024 * int(case.split()[0])))
    if prepares:
        prepared = prepare(
            caller=Caller(user.pk, profile.profile_address),
            draft=Draft(payload, controller=profile.controller.address),
            now=timezone.now(),
        )
        (error,) = prepared.refusals
    else:
        refusal = refused.call(GasLimitExceeded, user, new_call(payload=payload))
        error = refusal
    assert isinstance(error, GasLimitExceeded)
    assert error.members["maximum"] == settings.RELAY_MAX_GAS
    assert error.members["gasLimit"] > settings.RELAY_MAX_GAS
    assert str(error.members["gasLimit"]) in error.detail
    assert words in error.detail


def test_a_contract_that_reverts_within_its_gas_is_reported_as_before(
    user: User, services: Services, new_call: Callable[..., RelayCall], refused: Refused
) -> None:
    flaky = services.world.deploy_flaky()
    flaky.flip()
    refused.call(TargetReverted, user, new_call(payload=execute_payload(flaky.address)))


def test_a_call_is_refused_for_now_while_fees_exceed_the_cap(
    user: User, new_call: Callable[..., RelayCall], chain: Chain, refused: Refused, settings: Settings
) -> None:
    chain.set_base_fee(settings.RELAY_FEE_CAP_WEI + GWEI)
    refusal = refused.call(FeesTooHigh, user, new_call())
    assert (refusal.status, refusal.retry_after) == (503, 60)


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


def test_a_call_costs_one_request_to_the_node_a_profiles_first_call_two_and_a_follower_three(
    services: Services,
    create_profile: Callable[..., Profile],
    open_account: Callable[..., User],
    node: FaultyClient,
) -> None:
    # One of its own: no limit is learned, and no channel is used, as the first call of a channel needs more gas.
    profile = create_profile()
    user = open_account(profile)
    first, follower, other_channel = (
        sign_call(services=services, profile=profile, channel=channel, ahead=ahead)
        for channel, ahead in ((0, 0), (0, 1), (9, 0))
    )
    for call, expected in ((first, 2), (follower, 3), (other_channel, 1)):
        before = node.requests
        execute(user=user, call=call, now=timezone.now())
        assert node.requests - before == expected


def test_a_call_outside_its_window_is_refused_without_a_request_to_the_node(
    user: User, new_call: Callable[..., RelayCall], node: FaultyClient, refused: Refused
) -> None:
    now = timezone.now()
    server_time = int(now.timestamp())
    wait, end = random.randint(1, 10**6), server_time - random.randint(1, 10**6)
    start = server_time + settings.CHAIN_BLOCK_SECONDS + wait
    refusal = refused.call(RelayCallNotYetValid, user, new_call(validity=window(start, 0)), now=now)
    assert refusal.members == {"validFrom": start, "serverTime": server_time}
    assert refusal.retry_after == wait
    refusal = refused.call(RelayCallExpired, user, new_call(validity=window(0, end)), now=now)
    assert refusal.members == {"validUntil": end, "serverTime": server_time}
    end = server_time + settings.RELAY_MIN_VALIDITY_SECONDS - 1
    refusal = refused.call(ValidityTooShort, user, new_call(validity=window(0, end)), now=now)
    assert refusal.members["minimumSeconds"] == settings.RELAY_MIN_VALIDITY_SECONDS
    assert node.requests == 0


def test_a_call_that_is_valid_just_long_enough_is_executed(
    user: User, new_call: Callable[..., RelayCall], settle: Callable[[], int], chain: Chain
) -> None:
    chain.mine()
    now = timezone.now()
    # One second of grace: the chain's newest block may be a second ahead.
    end = int(now.timestamp()) + settings.RELAY_MIN_VALIDITY_SECONDS + 1
    execute(user=user, call=new_call(validity=window(int(now.timestamp()) - 60, end)), now=now)
    assert settle() == 1
    assert RelayTransaction.objects.get().status == "Success"


@pytest.mark.parametrize("ahead", [0, 1])
def test_a_call_that_is_valid_from_now_is_prepared_accepted_and_mined_by_the_next_block(
    user: User,
    profile: Profile,
    new_call: Callable[..., RelayCall],
    settle: Callable[[], int],
    chain: Chain,
    ahead: int,
) -> None:
    chain.mine()
    # Between two blocks, the service's time is ahead of the newest block's; a caller's may be ahead of both.
    since = random.randint(1, settings.CHAIN_BLOCK_SECONDS)
    now = datetime.fromtimestamp(chain.time() + random.randint(0, since), UTC)
    validity = window(chain.time() + since, chain.time() + 3600)
    channel = random.randint(1, 2**128 - 1)
    if ahead:
        execute(user=user, call=new_call(channel=channel), now=now)
    draft = Draft(set_data_payload(), channel, validity, controller=profile.controller.address)
    prepared = prepare(caller=Caller(user.pk, profile.profile_address), draft=draft, now=now)
    assert (prepared.refusals, prepared.quote is None) == ((), False)
    execute(user=user, call=new_call(validity=validity, channel=channel, ahead=ahead), now=now)
    with chain.later(chain.time() + settings.CHAIN_BLOCK_SECONDS):
        assert settle() == 1 + ahead
    assert RelayTransaction.objects.latest("pk").status == "Success"


@pytest.mark.parametrize(
    ("validity", "newest_block", "wait"),
    [
        (window(1_000 + _BLOCK, 0), 1_000, 0),
        (window(1_001 + _BLOCK, 0), 1_000, 1),
        (window(1_000, 0), 1_000 - _BLOCK, 0),
        (window(1_000, 0), 999 - _BLOCK, 1),
        (window(1_009 + _BLOCK, 0), 1_100, 9),
    ],
)
def test_a_call_may_begin_a_block_after_the_earlier_of_both_clocks(
    validity: int, newest_block: int, wait: int
) -> None:
    call = RelayCall("0x" + "00" * 20, b"", b"", 0, validity)
    with pytest.raises(RelayCallNotYetValid) if wait else nullcontext() as refused:
        check_validity(call=call, now=1_000, head=Head(1, newest_block, 1))
    assert refused is None or refused.value.retry_after == wait
    assert refused is None or refused.value.members["serverTime"] == 1_000


@pytest.mark.parametrize(
    ("validity", "kind"),
    [
        (0, None),
        (window(1_000, 0), None),
        (window(1_001 + _BLOCK, 0), RelayCallNotYetValid),
        (window(0, 1_000 + settings.RELAY_MIN_VALIDITY_SECONDS), None),
        (window(0, 999 + settings.RELAY_MIN_VALIDITY_SECONDS), ValidityTooShort),
        (window(0, 1_000), ValidityTooShort),
        (window(0, 999), RelayCallExpired),
        (window(2_000, 500), RelayCallNotYetValid),
    ],
)
def test_the_window_is_exact_to_the_second(validity: int, kind: type[DomainError] | None) -> None:
    call = RelayCall("0x" + "00" * 20, b"", b"", 0, validity)
    for now, newest_block in ((1_000, None), (1_000, 990), (990, 1_000)):
        with pytest.raises(kind) if kind else nullcontext():
            check_validity(
                call=call, now=now, head=None if newest_block is None else Head(1, newest_block, 1)
            )


def test_the_chains_clock_counts_as_well_as_ours(
    user: User, new_call: Callable[..., RelayCall], refused: Refused, chain: Chain
) -> None:
    wait = random.randint(1, 600)
    start = chain.time() + settings.CHAIN_BLOCK_SECONDS + wait
    # Our clock runs ahead: the call is due for us and not for the chain.
    now = datetime.fromtimestamp(start + 100, UTC)
    refusal = refused.call(RelayCallNotYetValid, user, new_call(validity=window(start, 0)), now=now)
    assert refusal.members == {"validFrom": start, "serverTime": start + 100}
    assert refusal.retry_after == wait
