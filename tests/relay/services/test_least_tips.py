"""A tip that the nodes require above ours is learned, shown and offered, bounded by what was shown, and forgotten."""

import logging
from collections.abc import Callable

import pytest
from django.utils import timezone
from pytest_django import Settings

from credits.queries import balance_of
from credits.services.reconciliation import find_differences
from devstack.world.profiles import Profile
from gateway.chain.fees import FeesTooHigh
from gateway.chain.lsp25 import RelayCall
from relay.models import Attempt, LeastTip, Loss, RelayTransaction
from relay.services.accepting import gas_limits
from relay.services.fleet import tips
from relay.services.sending import broadcasting
from tests.relay.chain import GWEI, Chain, FaultyClient
from tests.relay.conftest import Accept, Refused, Settle
from tests.relay.quoting import execute_prepared, prepare
from tests.relay.workers import broadcast_all, later, track
from users.models import User

pytestmark = pytest.mark.django_db
REQUIRED = 3 * GWEI


@pytest.fixture(autouse=True)
def calm(chain: Chain) -> Chain:
    """A chain whose base fee is one gwei, and nothing learned from other tests' calls."""
    gas_limits._learned.clear()
    chain.set_base_fee(GWEI)
    return chain


@pytest.fixture
def demanding(node: FaultyClient) -> FaultyClient:
    """A node that requires more than our tip."""
    node.least_tip_wei = REQUIRED
    return node


def newest(row: RelayTransaction) -> Attempt:
    return row.attempts.latest("sequence")


def test_a_call_in_flight_is_replaced_at_the_required_tip_and_costs_no_more_than_it_showed(
    accept: Accept, user: User, profile: Profile, demanding: FaultyClient, settle: Settle
) -> None:
    prepared = prepare(user, profile).highest_cost
    row = accept()
    shown = row.hold.amount
    assert shown <= (prepared or 0)
    assert broadcast_all() == 0
    assert newest(row).max_priority_fee_per_gas_wei == REQUIRED
    assert tips.least_tip_wei() == REQUIRED

    assert settle() == 1
    row.refresh_from_db()
    assert (row.status, row.attempts.count()) == ("Success", 2)
    assert row.hold.captured_amount == shown
    mined, loss = newest(row), Loss.objects.get(kind=Loss.Kind.REPLACEMENT)
    spent_wei = int(mined.gas_used or 0) * int(mined.effective_gas_price_wei or 0)
    assert loss.lost_wei == max(0, spent_wei - shown * 10**12) > 0
    assert find_differences() == []


def test_the_next_call_shows_the_required_tip_and_is_sent_at_once(
    accept: Accept, user: User, profile: Profile, demanding: FaultyClient, settle: Settle
) -> None:
    before = prepare(user, profile).expected_cost or 0
    accept()
    broadcast_all()
    assert settle() == 1
    Loss.objects.all().delete()

    prepared = prepare(user, profile)
    assert (prepared.expected_cost or 0) > before
    row = execute_prepared(user, profile, prepared)
    assert newest(row).max_priority_fee_per_gas_wei == REQUIRED
    assert settle() == 1
    row.refresh_from_db()
    assert (row.status, row.attempts.count()) == ("Success", 1)
    assert row.real_cost <= (prepared.expected_cost or 0)
    assert not Loss.objects.filter(lost_wei__gt=0).exists()


def test_a_quote_from_before_still_bounds_the_cost(
    accept: Accept, user: User, profile: Profile, node: FaultyClient, settle: Settle
) -> None:
    prepared = prepare(user, profile)
    node.least_tip_wei = REQUIRED
    row = execute_prepared(user, profile, prepared)
    assert broadcast_all() == 0
    assert settle() == 1
    row.refresh_from_db()
    assert row.status == "Success"
    assert (row.hold.captured_amount or 0) <= (prepared.highest_cost or 0)


def test_a_required_tip_above_the_cap_is_named_in_a_503_and_nothing_is_stored(
    accept: Accept,
    new_call: Callable[..., RelayCall],
    user: User,
    profile: Profile,
    node: FaultyClient,
    refused: Refused,
    settings: Settings,
) -> None:
    node.least_tip_wei = settings.RELAY_FEE_CAP_WEI + GWEI
    row = accept()
    for seconds in (0, 3, 6):
        broadcasting.sweep(now=later(seconds))
    assert row.attempts.count() == 1
    refusal = refused.call(FeesTooHigh, user, new_call(channel=5))
    assert (refusal.status, refusal.retry_after) == (503, 60)
    assert f"a tip of {node.least_tip_wei} wei" in refusal.detail
    assert [type(one) for one in prepare(user, profile).refusals] == [FeesTooHigh]

    # Once the node takes the waiting bytes, the tip is forgotten.
    node.least_tip_wei = 0
    assert broadcasting.sweep(now=later(20)) == 1
    assert (tips.least_tip_wei(), LeastTip.objects.count()) == (0, 0)
    assert prepare(user, profile).refusals == ()


def test_a_required_tip_is_forgotten_once_refused_bytes_pass_and_kept_until_then(
    accept: Accept, demanding: FaultyClient, settle: Settle, caplog: pytest.LogCaptureFixture, chain: Chain
) -> None:
    row = accept()
    broadcast_all()
    assert settle() == 1
    sent = len(demanding.sent)
    track(now=later(50))
    assert (len(demanding.sent), tips.least_tip_wei()) == (sent, REQUIRED)
    learned_at = LeastTip.objects.get().learned_at

    track(now=later(70))
    kept = LeastTip.objects.get()
    assert (kept.learned_at, kept.confirmed_at > later(60)) == (learned_at, True)

    demanding.least_tip_wei = GWEI + 5
    track(now=later(140))
    assert tips.least_tip_wei() == GWEI + 5

    demanding.least_tip_wei = 0
    track(now=later(210))
    assert (tips.least_tip_wei(), LeastTip.objects.count()) == (0, 0)
    # The bytes that asked changed nothing: their account nonce was used.
    chain.mine()
    row.refresh_from_db()
    assert (row.status, chain.account_nonce(row.relayer.address)) == (
        "Success",
        newest(row).account_nonce + 1,
    )
    assert newest(accept(channel=7)).max_priority_fee_per_gas_wei < REQUIRED
    logged = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert [line for line in logged if "require a tip" in line] == [
        f"the nodes require a tip of {REQUIRED} wei per gas; {GWEI} was offered",
        f"the nodes require a tip of {GWEI + 5} wei per gas; {GWEI} was offered",
        f"the nodes no longer require a tip of {GWEI + 5} wei per gas",
    ]


def test_without_evidence_for_an_hour_a_required_tip_does_not_count(
    accept: Accept, user: User, profile: Profile, demanding: FaultyClient
) -> None:
    before = prepare(user, profile).highest_cost
    accept()
    broadcast_all()
    assert (prepare(user, profile).highest_cost or 0) > (before or 0)
    LeastTip.objects.update(confirmed_at=later(-3601))
    assert tips.least_tip_wei() == 0
    assert prepare(user, profile).highest_cost == before


def test_callers_cause_no_loss_above_their_limit_when_the_required_tip_rises(
    accept: Accept, user: User, demanding: FaultyClient, settings: Settings, chain: Chain
) -> None:
    rows = [accept(channel=channel) for channel in range(1, 7)]
    worst = rows[0].attempts.get().gas_limit * 3 * GWEI
    settings.RELAY_USER_LOSS_PER_HOUR_WEI = 2 * worst
    held = balance_of(user).held
    for seconds in range(0, 30, 3):
        broadcasting.sweep(now=later(seconds))
        assert sum(int(loss.reserved_wei) for loss in Loss.objects.all()) <= 2 * worst
    waiting = [row for row in rows if row.attempts.count() == 1]
    assert 0 < len(waiting) < len(rows)
    assert balance_of(user).held == held

    # What the budget does not cover is cancelled, and costs its caller nothing.
    settings.RELAY_USER_LOSS_PER_HOUR_WEI = 0
    for seconds in (settings.RELAY_REPLACE_SECONDS * 10 + 1, settings.RELAY_DEADLINE_SECONDS + 1):
        for step in range(4):
            track(now=later(seconds + 4 * step))
            broadcasting.sweep(now=later(seconds + 4 * step + 2))
            chain.mine(settings.CONFIRMATIONS)
    track(now=later(settings.RELAY_DEADLINE_SECONDS + 60))
    for row in rows:
        row.refresh_from_db()
        assert row.status in ({"Cancelled"} if row in waiting else {"Success", "Cancelled"})
        assert (row.hold.captured_amount or 0) <= (row.hold.amount if row.status == "Success" else 0)
    assert balance_of(user).held == 0
    assert find_differences() == []


def test_replacements_of_self_transfers_offer_the_required_tip(
    accept: Accept, demanding: FaultyClient, settle: Settle
) -> None:
    row = accept()
    broadcast_all()
    LeastTip.objects.update(attempt=newest(row))
    other = accept(channel=3)
    broadcasting._cancel(
        broadcasting._read(broadcasting._Sql.unsent, {"relayer": other.relayer_id})[-1],
        RelayTransaction.Status.CANCELLED,
        "test",
        "",
        broadcasting._CurrentChain(timezone.now()).fees,
        timezone.now(),
    )
    assert newest(other).kind == "cancellation"
    assert newest(other).max_priority_fee_per_gas_wei == REQUIRED
    assert settle() == 2
