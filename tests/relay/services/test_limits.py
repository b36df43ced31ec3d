"""Limits per profile: calls that end without effect, and account nonces in flight."""

import random
import secrets
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from types import SimpleNamespace

import pytest
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from devstack.services.stack import Services
from devstack.world.profiles import Profile
from gateway.chain.errors import ResultTooLarge
from gateway.chain.lsp25 import RelayCall
from gateway.common.errors import TooManyRequests
from relay.errors import RelayShareUsed, SignerNotController, TooManyCancelledCalls
from relay.models import Relayer, RelayTransaction
from relay.queries.calls import CallKey, Identity, rows_of_calls
from relay.services.accepting import limits, submission
from relay.services.sending import replacement
from tests.fakes.profiles import random_address
from tests.relay.attacks import deploy_large_reverter
from tests.relay.callers import execute
from tests.relay.chain import Chain, FaultyClient
from tests.relay.conftest import Accept, Refused
from tests.relay.signing import execute_payload, sign_call
from tests.relay.workers import broadcast_all, bumped_fees, later, track
from tests.threads import at_once
from users.models import User

pytestmark = pytest.mark.django_db
NewCall = Callable[..., RelayCall]
WITHOUT_EFFECT = [
    ("Failed", "reverted"),
    ("Expired", "relay-call-expired"),
    ("ExecutedExternally", "executed-externally"),
    ("Cancelled", "predecessor-failed"),
]
NOT_THE_CALLERS_DOING = [
    ("Success", ""),
    ("Cancelled", "refused-by-node"),
    ("Cancelled", "account-nonce-lost"),
    ("Cancelled", "cancelled-by-staff"),
]


def any_channel() -> int:
    """Return an unused channel."""
    return secrets.randbits(120)


@pytest.fixture
def end_calls(accept: Accept, settle: Callable[[], int]) -> Callable[..., None]:
    """Return a function that leaves calls behind that ended in these ways, some seconds ago."""

    def make(*endings: tuple[str, str], ago: float = 0) -> None:
        for status, code in endings:
            row = accept(channel=any_channel())
            settle()
            at = timezone.now() - timedelta(seconds=ago)
            RelayTransaction.objects.filter(pk=row.pk).update(status=status, failure_code=code, settled_at=at)

    return make


def test_a_user_whose_calls_end_without_effect_waits(
    user: User,
    new_call: NewCall,
    refused: Refused,
    settings: Settings,
    end_calls: Callable[..., None],
    node: FaultyClient,
) -> None:
    settings.RELAY_CANCELLED_CALLS_PER_HOUR = len(WITHOUT_EFFECT)
    ago = random.randint(60, 3000)
    end_calls(*WITHOUT_EFFECT, ago=ago)
    call, requests_before = new_call(channel=any_channel()), node.requests
    refusal = refused.call(TooManyCancelledCalls, user, call)
    assert (refusal.status, node.requests) == (429, requests_before)
    assert refusal.members == {"maximum": 4, "windowSeconds": 3600}
    wait = refusal.retry_after or 0
    assert 0 <= 3600 - ago - wait + 2 <= 30

    assert execute(user=user, call=call, now=later(wait))


def test_failures_that_the_caller_did_not_cause_do_not_count(
    accept: Accept, settings: Settings, end_calls: Callable[..., None]
) -> None:
    settings.RELAY_CANCELLED_CALLS_PER_HOUR = settings.RELAY_CANCELLED_CALLS_PER_DAY = 1
    end_calls(*NOT_THE_CALLERS_DOING)
    assert accept(channel=any_channel()).status == "Pending"


def test_a_day_has_a_limit_of_its_own(
    user: User, new_call: NewCall, refused: Refused, settings: Settings, end_calls: Callable[..., None]
) -> None:
    settings.RELAY_CANCELLED_CALLS_PER_HOUR, settings.RELAY_CANCELLED_CALLS_PER_DAY = 2, 3
    for hours in (20, 10, 5):
        end_calls(random.choice(WITHOUT_EFFECT), ago=3600 * hours)
    call = new_call(channel=any_channel())
    refusal = refused.call(TooManyCancelledCalls, user, call)
    assert refusal.members == {"maximum": 3, "windowSeconds": 86400}
    assert 3 * 3600 < (refusal.retry_after or 0) <= 4 * 3600
    assert execute(user=user, call=call, now=later(4 * 3600 + 1))


def test_the_hours_limit_counts_below_the_limit_of_the_day(
    user: User, new_call: NewCall, refused: Refused, settings: Settings, end_calls: Callable[..., None]
) -> None:
    settings.RELAY_CANCELLED_CALLS_PER_HOUR, settings.RELAY_CANCELLED_CALLS_PER_DAY = 1, 3
    for ago in (7200, 60):
        end_calls(random.choice(WITHOUT_EFFECT), ago=ago)
    with connection.cursor() as cursor:
        # Rows come as they lie, and not as an index happens to have them.
        cursor.execute("SET LOCAL enable_indexscan = off; SET LOCAL enable_bitmapscan = off")
    refusal = refused.call(TooManyCancelledCalls, user, new_call(channel=any_channel()))
    assert refusal.members == {"maximum": 1, "windowSeconds": 3600}


@pytest.mark.parametrize(("hourly", "hours"), [(1, 1), (9, 24)])
def test_a_window_is_over_at_its_last_moment(
    user: User, settings: Settings, end_calls: Callable[..., None], hourly: int, hours: int
) -> None:
    settings.RELAY_CANCELLED_CALLS_PER_HOUR, settings.RELAY_CANCELLED_CALLS_PER_DAY = (
        hourly,
        1 if hours == 24 else 9,
    )
    end_calls(random.choice(WITHOUT_EFFECT))
    settled_at = RelayTransaction.objects.get().settled_at
    assert settled_at is not None
    over = settled_at + timedelta(hours=hours)

    def check(now: datetime) -> None:
        key = CallKey(
            Identity("0x" + secrets.token_hex(32), random_address()), random_address(), user.pk, None, now
        )
        limits.check_cancelled_calls(rows=rows_of_calls([key])[0], now=now)

    with pytest.raises(TooManyCancelledCalls) as refusal:
        check(over - timedelta(microseconds=1))
    assert refusal.value.retry_after == 1
    assert refusal.value.detail.endswith("within a day." if hours == 24 else "within an hour.")
    check(over)


def test_calls_of_one_user_do_not_count_for_another(
    settings: Settings,
    end_calls: Callable[..., None],
    create_profile: Callable[..., Profile],
    open_account: Callable[..., User],
    services: Services,
) -> None:
    settings.RELAY_CANCELLED_CALLS_PER_HOUR = 1
    end_calls(random.choice(WITHOUT_EFFECT))
    other = create_profile()
    assert execute(
        user=open_account(other), call=sign_call(services=services, profile=other), now=timezone.now()
    )


def test_a_call_in_progress_returns_its_hash_whatever_ended_in_between(
    user: User, accept: Accept, new_call: NewCall, settings: Settings, end_calls: Callable[..., None]
) -> None:
    settings.RELAY_CANCELLED_CALLS_PER_HOUR = 1
    end_calls(random.choice(WITHOUT_EFFECT))
    settings.RELAY_CANCELLED_CALLS_PER_HOUR = 2
    call = new_call(channel=any_channel())
    row = accept(call)
    settings.RELAY_CANCELLED_CALLS_PER_HOUR = 1
    assert execute(user=user, call=call, now=timezone.now()) == row.transaction_hash


def test_one_user_leaves_account_nonces_for_others(
    user: User,
    accept: Accept,
    new_call: NewCall,
    refused: Refused,
    relayers: list[Relayer],
    settings: Settings,
    chain: Chain,
    create_profile: Callable[..., Profile],
    open_account: Callable[..., User],
    services: Services,
) -> None:
    settings.RELAY_MAX_IN_FLIGHT, settings.RELAY_USER_SHARE_PERCENT = 2, 50
    for _ in relayers:
        accept(channel=any_channel())
    call = new_call(channel=any_channel())
    refusal = refused.call(RelayShareUsed, user, call)
    assert (refusal.status, bool(refusal.retry_after)) == (503, True)
    assert refusal.members == {"maximum": len(relayers)}

    other = create_profile()
    newcomer = open_account(other)
    theirs = sign_call(services=services, profile=other, channel=0)
    assert execute(user=newcomer, call=theirs, now=timezone.now())

    # A call counts until it is settled.
    broadcast_all()
    chain.mine()
    assert track() == 0
    refused.call(RelayShareUsed, user, call)
    chain.mine(settings.CONFIRMATIONS)
    assert track() == len(relayers) + 1
    assert execute(user=user, call=call, now=timezone.now())


@pytest.mark.parametrize("is_sent", [False, True])
def test_a_call_whose_bytes_were_replaced_counts_once(
    accept: Accept, user: User, new_call: NewCall, refused: Refused, settings: Settings, is_sent: bool
) -> None:
    settings.RELAY_MAX_IN_FLIGHT, settings.RELAY_USER_SHARE_PERCENT = 2, 34
    attempt = accept(channel=any_channel()).attempts.get()
    if is_sent:
        broadcast_all()
    assert replacement.replace(attempt_id=attempt.pk, fees=bumped_fees(attempt), now=timezone.now())
    attempt.refresh_from_db()
    assert attempt.status == ("replaced" if is_sent else "withdrawn")
    accept(channel=any_channel())
    refusal = refused.call(RelayShareUsed, user, new_call(channel=any_channel()))
    assert refusal.members == {"maximum": 2}


@pytest.mark.parametrize("percent", [1, 66])
def test_a_share_is_rounded_down_and_is_one_at_least(
    accept: Accept, user: User, new_call: NewCall, refused: Refused, settings: Settings, percent: int
) -> None:
    settings.RELAY_MAX_IN_FLIGHT, settings.RELAY_USER_SHARE_PERCENT = 1, percent
    accept(channel=any_channel())
    refusal = refused.call(RelayShareUsed, user, new_call(channel=any_channel()))
    assert refusal.members == {"maximum": 1}


def test_a_paused_relayer_adds_nothing_to_the_share(
    user: User,
    accept: Accept,
    new_call: NewCall,
    refused: Refused,
    relayers: list[Relayer],
    settings: Settings,
) -> None:
    settings.RELAY_MAX_IN_FLIGHT = 2
    Relayer.objects.exclude(pk=relayers[0].pk).update(is_active=False)
    accept(channel=any_channel())
    refused.call(RelayShareUsed, user, new_call(channel=any_channel()))


def test_each_greedy_user_leaves_as_much_free_as_they_hold(
    relayers: list[Relayer],
    refused: Refused,
    settings: Settings,
    create_profile: Callable[..., Profile],
    open_account: Callable[..., User],
    services: Services,
) -> None:
    settings.RELAY_MAX_IN_FLIGHT = 4
    slots = 4 * len(relayers)
    held: list[int] = []
    for _ in range(3):
        profile = create_profile()
        owner, count = open_account(profile), 0
        while count < (slots - sum(held)) // 2:
            call = sign_call(services=services, profile=profile, channel=any_channel())
            execute(user=owner, call=call, now=timezone.now())
            count += 1
        one_more = sign_call(services=services, profile=profile, channel=any_channel())
        refusal = refused.call(RelayShareUsed, owner, one_more)
        assert refusal.members == {"maximum": count}
        held.append(count)
    # Of 12: half, half of the rest, half of that.
    assert held == [6, 3, 1]


def test_calls_in_flight_count_as_if_they_ended_without_effect(
    user: User,
    accept: Accept,
    new_call: NewCall,
    refused: Refused,
    settings: Settings,
    end_calls: Callable[..., None],
    settle: Callable[[], int],
) -> None:
    settings.RELAY_CANCELLED_CALLS_PER_HOUR = 3
    end_calls(random.choice(WITHOUT_EFFECT), ago=60)
    end_calls(random.choice(NOT_THE_CALLERS_DOING), ago=60)
    for _ in range(2):
        accept(channel=any_channel())
    call = new_call(channel=any_channel())
    refusal = refused.call(RelayShareUsed, user, call)
    assert refusal.members == {"maximum": 2}
    assert 0 < (refusal.retry_after or 0) < 60
    settle()
    assert execute(user=user, call=call, now=timezone.now())


def test_calls_in_flight_count_within_a_day_too(
    user: User,
    accept: Accept,
    new_call: NewCall,
    refused: Refused,
    settings: Settings,
    end_calls: Callable[..., None],
) -> None:
    settings.RELAY_CANCELLED_CALLS_PER_HOUR, settings.RELAY_CANCELLED_CALLS_PER_DAY = 3, 3
    for hours in (2, 23):
        end_calls(random.choice(WITHOUT_EFFECT), ago=3600 * hours)
    accept(channel=any_channel())
    refusal = refused.call(RelayShareUsed, user, new_call(channel=any_channel()))
    assert refusal.members == {"maximum": 1}


@pytest.mark.django_db(transaction=True)
def test_concurrent_requests_stay_within_the_limit_of_calls_that_may_end_without_effect(
    user: User, new_call: NewCall, settings: Settings
) -> None:
    settings.RELAY_CANCELLED_CALLS_PER_HOUR = 4
    calls = [new_call(channel=any_channel()) for _ in range(12)]
    results = at_once([partial(execute, user=user, call=call, now=timezone.now()) for call in calls])
    refusals = [result for result in results if not isinstance(result, str)]
    assert [type(refusal) for refusal in refusals] == [RelayShareUsed] * 8
    assert RelayTransaction.objects.count() == 4


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time of the counts of refused calls, which a test sets."""
    now = [random.uniform(1, 1e6)]
    monkeypatch.setattr(limits, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


def test_a_profile_with_many_refused_calls_waits_before_any_node_request(
    services: Services,
    user: User,
    new_call: NewCall,
    accept: Accept,
    node: FaultyClient,
    refused: Refused,
    seconds: list[float],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    most = random.randint(2, 4)
    monkeypatch.setattr(submission, "refused_calls", limits.RefusedCalls(most=most))
    accept(channel=any_channel())
    reverting = new_call(channel=any_channel(), payload=execute_payload(deploy_large_reverter(services)))
    for _ in range(most):
        with refused(ResultTooLarge):
            execute(user=user, call=reverting, now=timezone.now())
    asked = node.requests
    with refused(TooManyRequests) as refusal:
        execute(user=user, call=new_call(channel=any_channel()), now=timezone.now())
    assert (refusal.value.retry_after, node.requests) == (1, asked)
    seconds[0] += 1
    accept(channel=any_channel())


def test_callers_without_a_token_do_not_delay_owners(
    user: User, new_call: NewCall, accept: Accept, seconds: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submission, "refused_calls", limits.RefusedCalls(most=1))
    call, now = new_call(channel=any_channel(), private_key=f"0x{secrets.token_hex(32)}"), timezone.now()
    with pytest.raises(SignerNotController):
        execute(user=user, call=call, now=now, is_signed_in=False)
    with pytest.raises(TooManyRequests):
        execute(user=user, call=call, now=now, is_signed_in=False)
    accept(channel=any_channel())


def test_refused_calls_are_counted_for_a_bounded_number_of_senders(seconds: list[float]) -> None:
    counted = limits.RefusedCalls(most=1, most_senders=1)
    first, second = random_address(), random_address()
    counted.add(first)
    counted.add(second)
    counted.check(second)
    with pytest.raises(TooManyRequests):
        counted.check(first)
    seconds[0] += 1
    counted.add(second)
    counted.check(first)
    with pytest.raises(TooManyRequests):
        counted.check(second)
