"""Bytes that no block takes are replaced, whatever the nodes say about them, and stop no relayer for long."""

import pytest
from django.conf import settings
from pytest_django import Settings

from credits.queries import balance_of
from credits.services.reconciliation import find_differences
from gateway.chain.types import SendKind
from relay.models import Attempt, Loss, Relayer, RelayTransaction
from relay.services.sending import broadcasting
from relay.services.settling.tracking import Tracker
from tests.relay.chain import GWEI, Chain, FaultyClient
from tests.relay.conftest import Accept, Settle
from tests.relay.workers import broadcast_all, later, track
from users.models import User

pytestmark = pytest.mark.django_db
SOON, DUE = settings.RELAY_REPLACE_SECONDS - 1, settings.RELAY_REPLACE_SECONDS + 1


@pytest.fixture(autouse=True)
def calm(chain: Chain) -> Chain:
    """A chain whose base fee is one gwei."""
    chain.set_base_fee(GWEI)
    return chain


@pytest.fixture
def one_relayer(relayers: list[Relayer]) -> Relayer:
    """The only relayer that takes calls."""
    Relayer.objects.exclude(pk=relayers[0].pk).update(is_active=False)
    return relayers[0]


def drop(node: FaultyClient, *, count: int = 1) -> None:
    """Let the node accept the next bytes, and lose them."""
    node.answer_next(*[SendKind.ACCEPTED] * count, message="already known")


def test_bytes_that_a_node_calls_known_and_has_dropped_are_replaced_after_some_block_times(
    accept: Accept, user: User, node: FaultyClient, settle: Settle
) -> None:
    row = accept()
    held = row.hold.amount
    drop(node)
    assert broadcast_all() == 1
    drop(node)
    broadcasting.sweep(now=later(settings.RELAY_RESEND_SECONDS + 1))
    track(now=later(SOON))
    assert row.attempts.count() == 1
    track(now=later(DUE))
    old, new = row.attempts.order_by("sequence")
    assert (old.status, new.status, new.kind) == ("replaced", "signed", "call")
    for fee in ("max_fee_per_gas_wei", "max_priority_fee_per_gas_wei"):
        assert getattr(new, fee) * 8 >= getattr(old, fee) * 9

    assert settle() == 1
    row.refresh_from_db()
    assert (row.status, row.transaction_hash) == ("Success", new.transaction_hash)
    assert row.real_cost <= held
    assert Loss.objects.get().lost_wei == 0
    assert balance_of(user).held == 0
    assert find_differences() == []


def test_a_call_behind_dropped_bytes_is_replaced_only_once_it_has_been_next_for_as_long(
    accept: Accept, one_relayer: Relayer, node: FaultyClient, chain: Chain
) -> None:
    first, second = accept(channel=1), accept(channel=2)
    drop(node, count=2)
    assert broadcast_all() == 2
    track(now=later(DUE))
    assert (first.attempts.count(), second.attempts.count()) == (2, 1)
    broadcast_all(now=later(DUE))
    chain.mine()
    track(now=later(DUE + 1))
    track(now=later(DUE + SOON // 2))
    assert second.attempts.count() == 1
    track(now=later(2 * DUE + 20))
    assert (first.attempts.count(), second.attempts.count()) == (2, 2)


def test_a_new_process_replaces_nothing_before_it_has_seen_a_block_leave_it_out(
    accept: Accept, chain: Chain, node: FaultyClient
) -> None:
    row, tracker = accept(), Tracker()
    drop(node)
    broadcast_all()
    tracker.track_new_block(now=later(DUE))
    tracker.track_new_block(now=later(DUE))
    assert row.attempts.count() == 1
    chain.mine()
    tracker.track_new_block(now=later(DUE))
    assert row.attempts.count() == 2


def test_bytes_that_no_node_takes_are_replaced_too(
    accept: Accept, node: FaultyClient, settle: Settle
) -> None:
    row = accept()
    node.answer_next(SendKind.LATER, message="an odd reason")
    assert broadcast_all() == 0
    track(now=later(SOON))
    assert row.attempts.count() == 1
    track(now=later(DUE))
    assert list(row.attempts.order_by("sequence").values_list("status", flat=True)) == ["withdrawn", "signed"]
    assert settle() == 1


def test_a_dropped_self_transfer_is_replaced(accept: Accept, node: FaultyClient, settle: Settle) -> None:
    row = accept()
    node.answer_next(SendKind.REFUSED)
    broadcast_all()
    drop(node)
    assert broadcast_all() == 1
    track(now=later(DUE))
    kinds = list(row.attempts.order_by("sequence").values_list("kind", flat=True))
    assert kinds == ["call", "cancellation", "cancellation"]
    assert settle() == 1


def test_a_dropped_call_that_no_budget_replaces_stops_its_relayer_for_minutes_and_not_for_an_hour(
    accept: Accept, user: User, one_relayer: Relayer, node: FaultyClient, chain: Chain, settings: Settings
) -> None:
    settings.RELAY_USER_LOSS_PER_HOUR_WEI = 0
    row = accept(channel=1)
    behind = accept(channel=2)
    drop(node)
    broadcast_all()
    minutes = 10 * settings.RELAY_REPLACE_SECONDS
    track(now=later(minutes - 10))
    assert (row.attempts.count(), newest(row).kind) == (1, "call")
    track(now=later(minutes + 10))
    assert newest(row).kind == "cancellation"
    broadcast_all(now=later(minutes + 10))
    chain.mine(settings.CONFIRMATIONS)
    assert track(now=later(minutes + 20)) == 2
    row.refresh_from_db()
    behind.refresh_from_db()
    assert (row.status, row.failure_code, behind.status) == ("Cancelled", "not-mined-in-time", "Success")
    assert (row.real_cost, balance_of(user).held) == (0, 0)


def newest(row: RelayTransaction) -> Attempt:
    return row.attempts.latest("sequence")
