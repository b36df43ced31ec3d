"""Replacing an attempt at bumped fees: when it happens, who pays, and where it ends."""

import secrets
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.conf import settings
from django.utils import timezone
from pytest_django import Settings

from credits.models import CreditEntry, HoldStatus
from credits.queries import balance_of
from credits.services import entries
from credits.services.reconciliation import find_differences
from gateway.chain.fees import Fees, FeesTooHigh
from gateway.chain.lsp25 import RelayCall
from gateway.chain.types import Head, SendKind
from relay.models import Attempt, Loss, RelayTransaction
from relay.services.sending import broadcasting, replacement
from relay.services.sending.replacement import current_fees
from tests.relay.callers import report_of
from tests.relay.chain import GWEI, Chain, FaultyClient
from tests.relay.conftest import Accept, Refused
from tests.relay.signing import window
from tests.relay.workers import broadcast_all, later, track
from users.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture
def calm(chain: Chain) -> Chain:
    """A chain whose base fee is one gwei."""
    chain.set_base_fee(GWEI)
    return chain


def worst_of(attempt: Attempt) -> int:
    """Return the most that an attempt may cost, in credits."""
    return -(-attempt.gas_limit * attempt.max_fee_per_gas_wei // settings.CREDIT_WEI)


def assert_replaced(row: RelayTransaction) -> tuple[Attempt, Attempt]:
    """Return the last two attempts, after checking that the newer one carries the same call at higher fees."""
    old, new = row.attempts.order_by("-sequence")[:2][::-1]
    assert (new.kind, new.account_nonce, new.gas_limit) == (old.kind, old.account_nonce, old.gas_limit)
    assert new.max_fee_per_gas_wei > old.max_fee_per_gas_wei
    return old, new


def test_a_base_fee_above_our_fees_is_met_by_bumped_fees(
    user: User, accept: Accept, calm: Chain, settle: Callable[[], int]
) -> None:
    row = accept()
    first, held = row.attempts.get(), row.hold.amount
    calm.set_base_fee(first.max_fee_per_gas_wei + GWEI)
    assert broadcast_all() == 0

    old, new = assert_replaced(row)
    assert (old.status, old.first_sent_at, new.status) == ("withdrawn", None, "signed")
    assert new.max_fee_per_gas_wei >= 2 * (first.max_fee_per_gas_wei + GWEI)
    row.hold.refresh_from_db()
    assert balance_of(user).held == row.hold.amount == held < worst_of(new)
    assert Loss.objects.get().reserved_wei == new.worst_cost_wei - held * settings.CREDIT_WEI

    assert settle() == 1
    row.refresh_from_db()
    assert (row.status, row.transaction_hash) == ("Success", new.transaction_hash)
    for attempt in (old, new):
        report = report_of(user=user, transaction_hash=attempt.transaction_hash)
        assert report.status == "Success"
    assert -CreditEntry.objects.get(source="RELAY_TRANSACTION").amount == min(row.real_cost, held)
    assert find_differences() == []


def test_an_attempt_too_cheap_for_the_base_fee_is_replaced_after_a_while(
    user: User, accept: Accept, calm: Chain, settle: Callable[[], int]
) -> None:
    row, start = accept(), timezone.now()
    held = row.hold.amount
    broadcast_all(now=start)
    first = row.attempts.get()
    calm.drop_pool()
    calm.set_base_fee(first.max_fee_per_gas_wei + 1)
    track(now=start + timedelta(seconds=settings.RELAY_REPLACE_SECONDS))
    assert row.attempts.count() == 1

    track(now=start + timedelta(seconds=settings.RELAY_REPLACE_SECONDS + 1))

    old, new = assert_replaced(row)
    assert old.status == "replaced"
    for fee in ("max_fee_per_gas_wei", "max_priority_fee_per_gas_wei"):
        assert getattr(new, fee) * 8 >= getattr(old, fee) * 9
    assert balance_of(user).held == held
    assert settle() == 1
    row.refresh_from_db()
    assert (row.status, row.transaction_hash) == ("Success", new.transaction_hash)


def test_an_attempt_that_pays_no_full_tip_is_replaced_after_a_while(accept: Accept, calm: Chain) -> None:
    row, start = accept(), timezone.now()
    broadcast_all(now=start)
    most = row.attempts.get().max_fee_per_gas_wei
    # Minable by the rules, for a tip that no validator wants.
    calm.drop_pool()
    calm.set_base_fee(most - 1)
    track(now=start + timedelta(seconds=settings.RELAY_REPLACE_SECONDS))
    assert row.attempts.count() == 1
    track(now=start + timedelta(seconds=settings.RELAY_REPLACE_SECONDS + 1))
    assert_replaced(row)


def test_the_fees_of_a_new_call_can_be_bumped_below_the_cap(accept: Accept, calm: Chain) -> None:
    calm.set_base_fee(settings.RELAY_FEE_CAP_WEI * 7 // 10)
    row = accept()
    broadcast_all()
    attempt = row.attempts.get()
    assert attempt.max_fee_per_gas_wei == settings.RELAY_FEE_CAP_WEI * 4 // 5
    assert replacement.replace(attempt_id=attempt.pk, fees=current_fees(head=Head(1, 1, GWEI)), now=later(0))
    assert_replaced(row)


def test_above_the_cap_todays_fees_are_the_cap_with_the_tip(db: None) -> None:
    cap = settings.RELAY_FEE_CAP_WEI
    assert current_fees(head=Head(1, 1, 10 * cap)) == Fees(cap, settings.RELAY_TIP_WEI, cap)


def test_the_old_attempt_may_be_mined_instead(user: User, accept: Accept, calm: Chain) -> None:
    row = accept()
    broadcast_all()
    old = row.attempts.get()
    assert replacement.replace(
        attempt_id=old.pk, fees=current_fees(head=Head(0, 0, 3 * GWEI)), now=timezone.now()
    )
    held = balance_of(user).held
    # Its replacement never reaches the node.
    calm.mine(settings.CONFIRMATIONS)
    assert track() == 1
    row.refresh_from_db()
    assert (row.status, row.transaction_hash) == ("Success", old.transaction_hash)
    assert balance_of(user).held == 0 < held
    assert find_differences() == []


@pytest.mark.parametrize("ends", [True, False], ids=["expired since", "too cheap since"])
def test_a_mined_call_is_neither_cancelled_nor_replaced_through_its_other_attempt(
    accept: Accept, calm: Chain, node: FaultyClient, settings: Settings, ends: bool
) -> None:
    settings.CONFIRMATIONS = 4
    row = accept(validity=window(0, int(timezone.now().timestamp()) + 100) if ends else 0)
    broadcast_all()
    old = row.attempts.get()
    replacement.replace(attempt_id=old.pk, fees=current_fees(head=Head(0, 0, 2 * GWEI)), now=timezone.now())
    # The replacement counts as sent, and the node mines the old one.
    node.answer_next(SendKind.ACCEPTED)
    broadcast_all()
    calm.mine()
    calm.set_base_fee(row.attempts.get(sequence=1).max_fee_per_gas_wei + 1)
    assert track(now=later(settings.RELAY_REPLACE_SECONDS + 101)) == 0

    row.refresh_from_db()
    assert (row.terminal_status, row.attempts.count()) == ("", 2)
    calm.mine(settings.CONFIRMATIONS)
    assert track() == 1
    row.refresh_from_db()
    assert (row.status, row.transaction_hash) == ("Success", old.transaction_hash)


@pytest.fixture
def spend_the_rest(user: User) -> Callable[[], None]:
    """Return a function that takes from the user whatever is not held."""

    def take() -> None:
        entries.adjust(
            user=user,
            credits=-balance_of(user).available,
            key=secrets.token_hex(8),
            actor=None,
            reason="nothing left",
        )

    return take


def test_the_service_pays_an_unaffordable_excess_within_its_limits(
    accept: Accept,
    user: User,
    calm: Chain,
    settle: Callable[[], int],
    spend_the_rest: Callable[[], None],
    settings: Settings,
) -> None:
    settings.RELAY_LOSS_PER_HOUR_WEI, settings.RELAY_USER_LOSS_PER_HOUR_WEI = 10**17, 10**16
    row = accept()
    held = row.hold.amount
    spend_the_rest()
    calm.set_base_fee(14 * GWEI)
    broadcast_all()
    _, new = assert_replaced(row)
    row.hold.refresh_from_db()
    assert balance_of(user).held == row.hold.amount == held
    reserved = Loss.objects.get()
    assert reserved.reserved_wei == new.worst_cost_wei - held * settings.CREDIT_WEI

    assert settle() == 1

    row.refresh_from_db()
    entry = CreditEntry.objects.get(source="RELAY_TRANSACTION")
    assert row.status == "Success"
    assert (-entry.amount, balance_of(user).balance) == (held, 0)
    new.refresh_from_db()
    reserved.refresh_from_db()
    spent_wei = int(new.gas_used or 0) * int(new.effective_gas_price_wei or 0)
    assert reserved.lost_wei == spent_wei - held * settings.CREDIT_WEI > 0
    assert find_differences() == []


def test_a_spike_of_the_base_fee_ends_in_waiting_and_not_in_a_loss(
    accept: Accept,
    user: User,
    calm: Chain,
    settle: Callable[[], int],
    spend_the_rest: Callable[[], None],
    node: FaultyClient,
    new_call: Callable[..., RelayCall],
    refused: Refused,
) -> None:
    waiting, sent = accept(channel=1), accept(channel=2)
    broadcast_all(now=timezone.now())
    unsent = accept(channel=3)
    calm.drop_pool()
    spend_the_rest()
    calm.set_base_fee(20 * GWEI)
    # What the three would cost the service above what their users pay, if they were sent at once.
    price_wei = 20 * GWEI
    excess = sum(
        attempt.gas_limit * price_wei - row.hold.amount * settings.CREDIT_WEI
        for row in (waiting, sent, unsent)
        for attempt in row.attempts.all()
    )
    assert excess > 3 * settings.RELAY_USER_LOSS_PER_HOUR_WEI
    node.sent.clear()
    for seconds in (settings.RELAY_REPLACE_SECONDS + 1, settings.RELAY_DEADLINE_SECONDS - 60):
        broadcasting.sweep(now=later(seconds))
        track(now=later(seconds))
    refusal = refused.call(FeesTooHigh, user, new_call(channel=4))
    assert (refusal.status, refusal.retry_after) == (503, 60)
    for row in (waiting, sent, unsent):
        row.refresh_from_db()
        assert (row.is_in_progress, row.terminal_status, row.attempts.count()) == (True, "", 1)

    calm.set_base_fee(GWEI)
    broadcasting.sweep(now=later(settings.RELAY_DEADLINE_SECONDS))
    assert settle() == 3
    assert set(RelayTransaction.objects.values_list("status", flat=True)) == {"Success"}
    assert not Loss.objects.exists()
    assert find_differences() == []


def test_a_spike_that_outlasts_the_deadline_ends_in_a_cancellation(
    accept: Accept, user: User, calm: Chain, spend_the_rest: Callable[[], None], settings: Settings
) -> None:
    settings.RELAY_USER_LOSS_PER_HOUR_WEI = 0
    unsent, sent = accept(channel=1), accept(channel=2)
    calm.set_base_fee(15 * GWEI)
    spend_the_rest()
    held = balance_of(user).held
    for seconds in (settings.RELAY_DEADLINE_SECONDS - 30, settings.RELAY_DEADLINE_SECONDS + 30):
        broadcast_all(now=later(seconds))
        kinds = {row.attempts.latest("sequence").kind for row in (unsent, sent)}
        assert kinds == ({"call"} if seconds < settings.RELAY_DEADLINE_SECONDS else {"cancellation"})
    assert balance_of(user).held == held

    broadcast_all(now=later(settings.RELAY_DEADLINE_SECONDS + 31))
    calm.mine(settings.CONFIRMATIONS)
    assert track(now=later(settings.RELAY_DEADLINE_SECONDS + 32)) == 2
    for row in (unsent, sent):
        row.refresh_from_db()
        assert (row.status, row.failure_code) == ("Cancelled", "not-mined-in-time")
    assert balance_of(user).held == 0
    lost = sum(int(loss.lost_wei or 0) for loss in Loss.objects.all())
    assert 2 * 21_000 * 12 * GWEI <= lost <= 2 * 21_000 * settings.RELAY_FEE_CAP_WEI


def test_a_sent_call_that_stays_too_cheap_is_cancelled_at_its_deadline(
    accept: Accept, calm: Chain, spend_the_rest: Callable[[], None], settings: Settings
) -> None:
    settings.RELAY_USER_LOSS_PER_HOUR_WEI = 0
    row = accept()
    broadcast_all()
    calm.drop_pool()
    spend_the_rest()
    calm.set_base_fee(14 * GWEI)
    track(now=later(settings.RELAY_DEADLINE_SECONDS - 30))
    assert row.attempts.count() == 1
    track(now=later(settings.RELAY_DEADLINE_SECONDS + 30))
    row.refresh_from_db()
    assert (row.terminal_status, row.attempts.latest("sequence").kind) == ("Cancelled", "cancellation")


def test_above_the_cap_the_call_waits_until_the_chain_is_cheaper(
    user: User, accept: Accept, calm: Chain
) -> None:
    row = accept()
    calm.set_base_fee(2 * settings.RELAY_FEE_CAP_WEI)
    for seconds in (3, 6, 9):
        broadcasting.sweep(now=later(seconds))
    row.refresh_from_db()
    newest = row.attempts.latest("sequence")
    assert (row.terminal_status, newest.kind, newest.status) == ("", "call", "signed")
    assert max(attempt.max_fee_per_gas_wei for attempt in row.attempts.all()) <= settings.RELAY_FEE_CAP_WEI
    attempts = row.attempts.count()
    for seconds in (12, 15):
        broadcasting.sweep(now=later(seconds))
    assert row.attempts.count() == attempts
    assert balance_of(user).held > 0

    calm.set_base_fee(GWEI)
    assert broadcasting.sweep(now=later(18)) == 1
    calm.mine(settings.CONFIRMATIONS)
    assert track() == 1
    row.refresh_from_db()
    assert (row.status, row.hold.status) == ("Success", HoldStatus.CAPTURED)
    assert find_differences() == []


def test_a_node_that_requires_higher_fees_gets_an_eighth_more_on_each_retry(
    user: User, accept: Accept, calm: Chain, node: FaultyClient, settle: Callable[[], int]
) -> None:
    row = accept()
    held = row.hold.amount
    for _ in range(2):
        node.answer_next(SendKind.UNDERPRICED, message="below the minimum")
        assert broadcast_all() == 0
        old, new = assert_replaced(row)
        assert new.max_fee_per_gas_wei * 8 >= old.max_fee_per_gas_wei * 9
    assert balance_of(user).held == held
    assert settle() == 1
    row.refresh_from_db()
    assert (row.status, row.transaction_hash) == ("Success", new.transaction_hash)


def test_the_fees_of_a_self_transfer_are_bumped_too(
    user: User, accept: Accept, calm: Chain, node: FaultyClient, settle: Callable[[], int]
) -> None:
    row = accept()
    answered = row.transaction_hash
    node.answer_next(SendKind.REFUSED)
    broadcast_all()
    node.answer_next(SendKind.UNDERPRICED)
    broadcast_all()
    assert row.attempts.count() == 3
    _, new = assert_replaced(row)
    assert new.kind == "cancellation"
    assert settle() == 1
    row.refresh_from_db()
    assert (row.status, row.transaction_hash) == ("Cancelled", answered)
    assert balance_of(user).held == 0
