"""Which relayer takes a call, and when none does."""

import random
import secrets
import threading
from collections.abc import Callable
from functools import partial

import pytest
from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone
from pytest_django import Settings

from gateway.chain.lsp25 import RelayCall
from relay.errors import RelayersBusy, RelayersEmpty
from relay.models import Attempt, Relayer, RelayTransaction
from relay.services.sending import replacement
from tests.factories import RelayerFactory, random_address
from tests.relay.callers import execute
from tests.relay.chain import Chain
from tests.relay.conftest import LYX, Accept, Refused
from tests.relay.slots import take_slot
from tests.relay.workers import broadcast_all, bumped_fees, track
from tests.threads import waits_for_this_transaction
from users.models import User

pytestmark = pytest.mark.django_db


def any_channel() -> int:
    """Return an unused channel."""
    return secrets.randbits(120)


def test_each_relayer_takes_calls_up_to_the_cap(
    user: User,
    relayers: list[Relayer],
    accept: Accept,
    new_call: Callable[..., RelayCall],
    refused: Refused,
    chain: Chain,
    settings: Settings,
) -> None:
    settings.RELAY_MAX_IN_FLIGHT, settings.RELAY_USER_SHARE_PERCENT = 2, 100
    for _ in range(2 * len(relayers)):
        accept(channel=any_channel())
    call = new_call(channel=any_channel())
    refusal = refused.call(RelayersBusy, user, call)
    assert (refusal.status, bool(refusal.retry_after)) == (503, True)

    # A new block frees account nonces, though nothing is final yet.
    broadcast_all()
    chain.mine()
    assert track() == 0
    execute(user=user, call=call, now=timezone.now())


def test_the_least_loaded_relayer_takes_the_next_call(relayers: list[Relayer], accept: Accept) -> None:
    busy, idle, idlest = relayers
    Relayer.objects.filter(pk=busy.pk).update(mined_account_nonce=F("mined_account_nonce") - 3)
    Relayer.objects.filter(pk=idle.pk).update(mined_account_nonce=F("mined_account_nonce") - 1)
    assert [accept(channel=any_channel()).relayer for _ in range(4)] == [idlest, idle, idlest, idle]


@pytest.mark.parametrize("changes", [{"is_active": False}, {"balance_wei": 0}], ids=["inactive", "poor"])
def test_a_relayer_that_cannot_send_is_passed_over(
    relayers: list[Relayer], accept: Accept, changes: dict[str, object]
) -> None:
    able = relayers[1]
    Relayer.objects.exclude(pk=able.pk).update(**changes)
    assert {accept(channel=any_channel()).relayer for _ in range(3)} == {able}


def test_a_refusal_tells_whether_the_relayers_are_empty_inactive_or_full(
    user: User, relayers: list[Relayer], new_call: Callable[..., RelayCall], refused: Refused
) -> None:
    call = new_call(channel=any_channel())
    rows = Relayer.objects.filter(pk__in=[relayer.pk for relayer in relayers])
    rows.update(balance_wei=random.randint(0, 10**9))
    refusal = refused.call(RelayersEmpty, user, call)
    assert (refusal.status, refusal.retry_after) == (503, 60)

    # Calls in flight use up the one that has funds, and will free them.
    Relayer.objects.filter(pk=relayers[0].pk).update(
        balance_wei=LYX, mined_account_nonce=F("mined_account_nonce") - 1_000
    )
    assert "full" in refused.call(RelayersBusy, user, call).detail

    rows.update(is_active=False)
    assert refused.call(RelayersBusy, user, call).detail == "No relayer is active. Retry the call."


def test_a_row_without_a_key_takes_no_call(relayers: list[Relayer], accept: Accept) -> None:
    retired = RelayerFactory.create(balance_wei=LYX)
    for _ in range(2 * len(relayers)):
        accept(channel=any_channel())
    assert retired.attempts.count() == 0


def test_a_follower_waits_where_its_relayer_has_lost_its_key(
    user: User, accept: Accept, new_call: Callable[..., RelayCall], refused: Refused
) -> None:
    channel = any_channel()
    keyless = accept(channel=channel).relayer
    Relayer.objects.filter(pk=keyless.pk).update(address=random_address())
    refused.call(RelayersBusy, user, new_call(channel=channel, ahead=1))


@pytest.mark.django_db(transaction=True)
def test_a_locked_relayer_is_skipped_and_awaited_only_without_an_alternative(
    relayers: list[Relayer], accept: Accept
) -> None:
    def hold(locked: list[Relayer], begun: threading.Event, over: threading.Event) -> None:
        with transaction.atomic():
            keys = [relayer.pk for relayer in locked]
            list(Relayer.objects.select_for_update(no_key=True).filter(pk__in=keys))
            begun.set()
            assert over.wait(120)
        connection.close()

    def run(locked: list[Relayer], seconds: float | None) -> Relayer:
        begun, over = threading.Event(), threading.Event()
        holder = threading.Thread(target=hold, args=(locked, begun, over))
        holder.start()
        assert begun.wait(120)
        if seconds is not None:
            threading.Timer(seconds, over.set).start()
        try:
            return accept(channel=any_channel()).relayer
        finally:
            over.set()
            holder.join()

    assert run(relayers[:1], None) == relayers[1]
    assert run(relayers, 0.5) in relayers


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_sticky", [False, True])
def test_a_request_that_waited_for_a_relayer_counts_calls_stored_in_between(
    relayers: list[Relayer], accept: Accept, is_sticky: bool
) -> None:
    one = relayers[0]
    Relayer.objects.exclude(pk=one.pk).update(is_active=False)
    row = accept(channel=any_channel())
    worst = row.attempts.get().worst_cost_wei
    Attempt.objects.update(status="withdrawn")
    Relayer.objects.filter(pk=one.pk).update(balance_wei=worst * 3 // 2)
    take = partial(take_slot, after=row, is_sticky=is_sticky, worst_cost_wei=worst)
    with waits_for_this_transaction(take, in_transaction=True) as second:
        assert take().relayer_id == one.pk
        # Stands for the bytes that this transaction stores.
        Attempt.objects.update(status="signed")
    assert type(second.result()) is RelayersBusy


@pytest.mark.parametrize("is_sticky", [False, True])
def test_a_balance_may_be_used_to_the_last_wei_and_no_further(
    relayers: list[Relayer], accept: Accept, is_sticky: bool
) -> None:
    one = relayers[0]
    Relayer.objects.exclude(pk=one.pk).update(is_active=False)
    row = accept(channel=any_channel())
    in_flight, worst = row.attempts.get().worst_cost_wei, random.randint(1, LYX)
    Relayer.objects.filter(pk=one.pk).update(balance_wei=in_flight + worst - 1)
    next_nonce = Relayer.objects.get(pk=one.pk).next_account_nonce
    with transaction.atomic():
        with pytest.raises(RelayersBusy):
            take_slot(after=row, is_sticky=is_sticky, worst_cost_wei=worst)
        Relayer.objects.filter(pk=one.pk).update(balance_wei=in_flight + worst)
        slot = take_slot(after=row, is_sticky=is_sticky, worst_cost_wei=worst)
    assert slot == (one.pk, one.address, next_nonce)


def test_the_cost_of_transactions_that_may_be_mined_is_reserved(
    relayers: list[Relayer], accept: Accept
) -> None:
    one = relayers[0]
    Relayer.objects.exclude(pk=one.pk).update(is_active=False)
    row = accept(channel=any_channel())
    attempt = row.attempts.get()
    Relayer.objects.filter(pk=one.pk).update(balance_wei=attempt.worst_cost_wei)
    for status in ("signed", "sent", "replaced"):
        Attempt.objects.update(status=status)
        with pytest.raises(RelayersBusy), transaction.atomic():
            take_slot(after=row, is_sticky=False, worst_cost_wei=1)
    assert Relayer.objects.get(pk=one.pk).next_account_nonce == attempt.account_nonce + 1


@pytest.mark.parametrize("status", ["withdrawn", "mined"])
def test_withdrawn_and_mined_attempts_are_not_set_aside(
    relayers: list[Relayer], accept: Accept, status: str
) -> None:
    one = relayers[0]
    Relayer.objects.exclude(pk=one.pk).update(is_active=False)
    row = accept(channel=any_channel())
    attempt = row.attempts.get()
    # The relayer's mined account nonce is not updated yet.
    Attempt.objects.update(status=status)
    Relayer.objects.filter(pk=one.pk).update(balance_wei=attempt.worst_cost_wei)
    with transaction.atomic():
        slot = take_slot(after=row, is_sticky=False, worst_cost_wei=attempt.worst_cost_wei)
    assert slot.account_nonce == attempt.account_nonce + 1


def test_transactions_of_other_relayers_are_not_reserved_for(relayers: list[Relayer], accept: Accept) -> None:
    one, other = relayers[:2]
    Relayer.objects.exclude(pk=other.pk).update(is_active=False)
    row = accept(channel=any_channel())
    worst = row.attempts.get().worst_cost_wei
    # The oldest account nonce in flight is the other's, and this one has not come as far.
    Relayer.objects.filter(pk=other.pk).update(is_active=False)
    Relayer.objects.filter(pk=one.pk).update(
        is_active=True, balance_wei=worst, next_account_nonce=0, mined_account_nonce=0
    )
    RelayTransaction.objects.update(relayer=one)
    for is_sticky in (False, True):
        with transaction.atomic():
            slot = take_slot(after=row, is_sticky=is_sticky, worst_cost_wei=worst)
        assert slot.relayer_id == one.pk


def test_if_the_least_loaded_relayer_has_no_balance_another_gets_the_call(
    relayers: list[Relayer], accept: Accept
) -> None:
    spent, rich, resting = relayers
    Relayer.objects.filter(pk=resting.pk).update(is_active=False)
    # It looks busier than the other and can still pay.
    Relayer.objects.filter(pk=rich.pk).update(mined_account_nonce=F("mined_account_nonce") - 5)
    row = accept(channel=any_channel())
    assert row.relayer == spent
    Relayer.objects.filter(pk=spent.pk).update(balance_wei=row.attempts.get().worst_cost_wei * 3 // 2)
    assert accept(channel=any_channel()).relayer == rich


def test_the_reservation_ends_when_a_transaction_is_mined(
    relayers: list[Relayer], accept: Accept, chain: Chain, settings: Settings
) -> None:
    settings.CONFIRMATIONS = 5
    one = relayers[0]
    Relayer.objects.exclude(pk=one.pk).update(is_active=False)
    row = accept(channel=any_channel())
    attempt = row.attempts.get()
    worst = attempt.worst_cost_wei
    broadcast_all()
    # Replaced attempts on the same account nonce are not set aside any more either.
    assert replacement.replace(attempt_id=attempt.pk, fees=bumped_fees(attempt), now=timezone.now())
    broadcast_all()
    chain.mine()
    chain.fund(worst * 3 // 2, one.address)
    track()
    assert accept(channel=any_channel()).relayer == one
