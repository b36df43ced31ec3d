"""Many requests at the same moment: each call is accepted once, nothing is overspent, no account nonce is missing."""

import secrets
from collections.abc import Callable
from functools import partial

import pytest
from django.utils import timezone

from credits.errors import InsufficientCredits
from credits.models import CreditEntry, CreditHold, EntrySource
from credits.queries import balance_of
from credits.services import entries
from credits.services.reconciliation import find_differences
from devstack.services.stack import Services
from devstack.world.profiles import ProfilePlan
from gateway.chain.lsp25 import RelayCall
from relay.errors import RelayersBusy, RelayersEmpty, RelayNonceTaken
from relay.models import Attempt, Relayer, RelayTransaction
from relay.services.sending.broadcasting import sweep
from tests.relay.callers import execute, execute_elsewhere
from tests.relay.chain import Chain, FaultyClient
from tests.relay.signing import execute_payload, set_data_payload, sign_call
from tests.relay.workers import broadcast_all, later, track
from tests.threads import at_once
from users.models import User

pytestmark = pytest.mark.django_db(transaction=True)


def any_channel() -> int:
    """Return an unused channel."""
    return secrets.randbits(120)


def assert_account_nonces_are_gapless(start: list[Relayer]) -> None:
    """Every account nonce since `start` belongs to one attempt, and the next one follows."""
    for before in start:
        now = Relayer.objects.get(pk=before.pk)
        taken = now.attempts.filter(account_nonce__gte=before.next_account_nonce).order_by("account_nonce")
        nonces = list(taken.values_list("account_nonce", flat=True))
        assert nonces == list(range(before.next_account_nonce, now.next_account_nonce))


def test_the_same_call_sent_concurrently_is_accepted_once(
    user: User, new_call: Callable[..., RelayCall], settle: Callable[[], int]
) -> None:
    call = new_call()

    results = at_once([partial(execute, user=user, call=call, now=timezone.now())] * 16)

    row, attempt, hold = RelayTransaction.objects.get(), Attempt.objects.get(), CreditHold.objects.get()
    assert set(results) == {row.transaction_hash}
    assert (row.hold_id, attempt.relay_transaction_id) == (hold.pk, row.pk)
    assert settle() == 1
    assert find_differences() == []


@pytest.mark.parametrize("is_mined", [False, True])
def test_a_call_that_an_equal_request_overtakes_gets_its_hash(
    user: User,
    new_call: Callable[..., RelayCall],
    node: FaultyClient,
    settle: Callable[[], int],
    is_mined: bool,
) -> None:
    call = new_call()
    first: list[str] = []

    def equal_request() -> None:
        first.append(execute_elsewhere(user=user, call=call, now=timezone.now()))
        if is_mined:
            settle()

    node.meanwhile("read_relay_states", equal_request)
    assert [execute(user=user, call=call, now=timezone.now())] == first
    assert RelayTransaction.objects.count() == Attempt.objects.count() == CreditHold.objects.count() == 1


def test_a_call_that_an_equal_request_overtakes_and_loses_gets_its_hash_too(
    services: Services,
    user: User,
    new_call: Callable[..., RelayCall],
    node: FaultyClient,
    settle: Callable[[], int],
) -> None:
    flaky = services.world.deploy_flaky()
    # The rows know profile and key manager, so they are read once, before the equal request.
    execute(user=user, call=new_call(channel=9), now=timezone.now())
    settle()
    call = new_call(payload=execute_payload(flaky.address))
    first: list[str] = []

    def equal_request() -> None:
        first.append(execute_elsewhere(user=user, call=call, now=timezone.now()))
        flaky.flip()
        settle()
        flaky.flip()

    node.meanwhile("read_relay_states", equal_request)
    assert [execute(user=user, call=call, now=timezone.now())] == first
    assert RelayTransaction.objects.get(transaction_hash=first[0]).status == "Failed"


def test_concurrent_calls_are_accepted_up_to_the_balance(
    user: User,
    relayers: list[Relayer],
    new_call: Callable[..., RelayCall],
    settle: Callable[[], int],
) -> None:
    payload = set_data_payload()
    execute(user=user, call=new_call(payload=payload, channel=any_channel()), now=timezone.now())
    price = CreditHold.objects.get().amount
    # Signatures and nonces differ in a few bytes' gas, which is far less than half a hold in all.
    change = 10 * price + price // 2 - balance_of(user).available
    entries.adjust(user=user, credits=change, key=secrets.token_hex(8), actor=None, reason="opening balance")
    start = list(Relayer.objects.all())
    calls = [new_call(payload=payload, channel=any_channel()) for _ in range(25)]

    results = at_once([partial(execute, user=user, call=call, now=timezone.now()) for call in calls])

    assert sum(isinstance(result, str) for result in results) == 10
    assert sum(type(result) is InsufficientCredits for result in results) == 15
    assert RelayTransaction.objects.count() == CreditHold.objects.count() == 11
    assert 0 <= balance_of(user).available < price
    assert_account_nonces_are_gapless(start)
    assert find_differences() == []
    assert settle() == 11
    assert balance_of(user).held == 0
    assert find_differences() == []


def test_of_concurrent_calls_on_one_nonce_one_is_accepted(
    user: User, relayers: list[Relayer], new_call: Callable[..., RelayCall], settle: Callable[[], int]
) -> None:
    calls = [new_call() for _ in range(10)]

    results = at_once([partial(execute, user=user, call=call, now=timezone.now()) for call in calls])

    assert sum(isinstance(result, str) for result in results) == 1
    assert sum(type(result) is RelayNonceTaken for result in results) == 9
    assert RelayTransaction.objects.count() == Attempt.objects.count() == CreditHold.objects.count() == 1
    assert_account_nonces_are_gapless(relayers)
    assert settle() == 1
    assert find_differences() == []


def test_a_whole_channel_posted_concurrently_stays_in_order(
    user: User, relayers: list[Relayer], new_call: Callable[..., RelayCall], settle: Callable[[], int]
) -> None:
    channel = any_channel()
    calls = [new_call(channel=channel, ahead=ahead) for ahead in range(6)]
    # A request that comes too early is refused with the missing nonce, and repeats.
    for _ in calls:
        at_once([partial(execute, user=user, call=call, now=timezone.now()) for call in calls])

    rows = RelayTransaction.objects.order_by("relay_nonce").prefetch_related("attempts")
    nonces = [attempt.account_nonce for row in rows for attempt in row.attempts.all()]
    assert nonces == list(range(nonces[0], nonces[0] + len(calls)))
    assert_account_nonces_are_gapless(relayers)
    assert settle() == len(calls)
    assert set(RelayTransaction.objects.values_list("status", flat=True)) == {"Success"}


def test_concurrent_workers_of_every_kind_settle_each_call_once(
    user: User, relayers: list[Relayer], new_call: Callable[..., RelayCall], chain: Chain
) -> None:
    # Eighteen calls are held for at once, at any price of gas that the chain begins with.
    entries.grant(user=user, credits=100_000, source=EntrySource.VIDEO_ADS, key=secrets.token_hex(8))
    before = balance_of(user)
    for channel in (any_channel() for _ in range(6)):
        for ahead in range(3):
            execute(user=user, call=new_call(channel=channel, ahead=ahead), now=timezone.now())

    for _ in range(4):
        at_once([broadcast_all] * 3 + [track] * 2 + [partial(sweep, now=later(3))] * 2)
        chain.mine()
    track()

    assert set(RelayTransaction.objects.values_list("status", flat=True)) == {"Success"}
    assert_account_nonces_are_gapless(relayers)
    spent = sum(RelayTransaction.objects.values_list("real_cost", flat=True))
    assert balance_of(user) == (before.balance - spent, 0, before.balance - spent)
    assert CreditEntry.objects.filter(source="RELAY_TRANSACTION").count() == 18
    assert find_differences() == []


def test_relayers_without_funds_refuse_many_requests_without_a_deadlock(
    services: Services, relayers: list[Relayer], open_account: Callable[..., User]
) -> None:
    crowd = services.world.create_profiles(*[ProfilePlan() for _ in range(12)])
    calls = [(open_account(made), sign_call(services=services, profile=made)) for made in crowd]
    Relayer.objects.update(balance_wei=1)

    results = at_once([partial(execute, user=user, call=call, now=timezone.now()) for user, call in calls])

    assert {type(result) for result in results} == {RelayersEmpty}
    assert CreditHold.objects.count() == 0


def test_many_users_share_relayers_that_can_pay_for_some_calls(
    services: Services, relayers: list[Relayer], open_account: Callable[..., User], settle: Callable[[], int]
) -> None:
    crowd = services.world.create_profiles(*[ProfilePlan() for _ in range(12)])
    calls = [(open_account(made), sign_call(services=services, profile=made)) for made in crowd]
    user, call = calls.pop()
    execute(user=user, call=call, now=timezone.now())
    worst = Attempt.objects.get().worst_cost_wei
    Relayer.objects.update(balance_wei=worst * 5 // 2)

    results = at_once([partial(execute, user=user, call=call, now=timezone.now()) for user, call in calls])

    assert {type(result) for result in results} == {str, RelayersBusy}
    for relayer in relayers:
        assert relayer.attempts.count() <= 2
    assert_account_nonces_are_gapless(relayers)
    assert settle() == RelayTransaction.objects.count()
    assert find_differences() == []
