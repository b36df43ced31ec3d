"""How many queries each path makes, so that a loop or a growing history shows."""

import secrets
from collections.abc import Callable
from decimal import Decimal

import pytest
from django.conf import settings
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from gateway.chain.lsp25 import RelayCall
from relay.models import Relayer, RelayTransaction
from relay.services.sending import broadcasting
from rewards.models import Badge
from tests.relay.callers import execute, report_of
from tests.relay.chain import Chain
from tests.relay.conftest import Accept
from tests.relay.workers import broadcast_all, track
from users.models import User

pytestmark = pytest.mark.django_db

# The rows; BEGIN, the slots, the rows, COMMIT.
OF_EXECUTE = 5
OF_REPEAT = 1
# Relayers, attempts, settled blocks that are not final; the block's state of each of three relayers, since never all
# of them are locked at once; what calls that ended have cost the service; the tip that nodes require, and whether they
# still do.
OF_TICK = 10
# Another block is final.
OF_BLOCK = 1
# BEGIN, the lock timeout, the rows, the captures, experience and what decides the cashback, what comes back, its
# entries, COMMIT.
OF_SETTLEMENT = 8


@pytest.fixture
def history(accept: Accept, settle: Callable[[], int]) -> None:
    """Some calls that are settled, and some that wait."""
    for _ in range(6):
        accept(channel=secrets.randbits(120))
    settle()
    for _ in range(6):
        accept(channel=secrets.randbits(120))


@pytest.mark.parametrize("is_old", [False, True])
def test_a_call_runs_the_same_queries_regardless_of_history(
    request: pytest.FixtureRequest,
    user: User,
    new_call: Callable[..., RelayCall],
    django_assert_num_queries: DjangoAssertNumQueries,
    is_old: bool,
) -> None:
    if is_old:
        request.getfixturevalue("history")
    calls = [new_call(ahead=ahead) for ahead in range(3)]
    for call in calls:
        with django_assert_num_queries(OF_EXECUTE):
            execute(user=user, call=call, now=timezone.now())
    with django_assert_num_queries(OF_REPEAT):
        execute(user=user, call=calls[0], now=timezone.now())


def test_a_broadcast_costs_the_same_however_many_leave_together(
    accept: Accept, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    relayer = accept(channel=secrets.randbits(120)).relayer
    for count in (1, 4):
        while relayer.attempts.filter(status="signed").count() < count:
            accept(channel=secrets.randbits(120))
        # What waits; then one mark for all of them.
        with django_assert_num_queries(2):
            assert broadcasting.broadcast(relayer_id=relayer.pk, now=timezone.now()) == count
    with django_assert_num_queries(1):
        broadcasting.broadcast(relayer_id=relayer.pk, now=timezone.now())


def test_a_broadcast_of_all_relayers_costs_what_one_costs(
    accept: Accept, relayers: list[Relayer], django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    rows = [accept(channel=secrets.randbits(120)) for _ in range(2 * len(relayers))]
    assert len({row.relayer_id for row in rows}) == len(relayers)
    with django_assert_num_queries(2):
        assert broadcasting.broadcast(now=timezone.now()) == len(rows)


def test_tracking_and_settling_a_block_cost_a_constant(
    history: None,
    accept: Accept,
    chain: Chain,
    settle: Callable[[], int],
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    # A chain long enough that each new block makes another one final.
    chain.mine(100)
    settle()
    Badge.objects.update(credits_back_percent=Decimal("0.5"))
    for _ in range(5):
        accept(channel=secrets.randbits(120))
    broadcast_all()
    with django_assert_num_queries(OF_TICK):
        track()
    chain.mine()
    # The receipts of all, and what they mean for their calls.
    with django_assert_num_queries(OF_TICK + OF_BLOCK + 1):
        track()
    chain.mine(settings.CONFIRMATIONS)
    with django_assert_num_queries(OF_TICK + OF_BLOCK + OF_SETTLEMENT):
        assert track() == 5


def test_a_status_is_one_query(
    user: User, history: None, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    hashes = [row.transaction_hash for row in RelayTransaction.objects.all()]
    for transaction_hash in hashes:
        with django_assert_num_queries(1):
            report_of(user=user, transaction_hash=transaction_hash)
