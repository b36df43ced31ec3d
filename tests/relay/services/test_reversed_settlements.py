"""What was settled is undone when its block disappears, and follows the new chain."""

from decimal import Decimal

import pytest
from django.conf import settings
from django.utils import timezone

from credits.models import CreditEntry, EntrySource
from credits.queries import balance_of
from devstack.services.stack import Services
from gateway.chain.client import get_chain_client
from relay.models import Relayer, RelayTransaction, ReversedSettlement
from relay.queries.reports import credits_of, transactions_of
from relay.services.fleet import losses, relayers
from relay.services.sending import cancellation, replacement
from relay.services.settling import reorganisations
from rewards.models import Badge
from tests.relay.chain import Chain
from tests.relay.conftest import CREDITS, Accept, Settle
from tests.relay.signing import execute_payload
from tests.relay.workers import assert_books_agree, broadcast_all, bumped_fees, mine_and_settle, resend, track
from users.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture
def _cashback(user: User) -> None:
    Badge.objects.update(credits_back_percent=Decimal("0.1"))


@pytest.mark.usefixtures("_cashback")
def test_a_success_in_a_removed_block_is_undone_and_resent(
    user: User, accept: Accept, settle: Settle, chain: Chain
) -> None:
    row = accept()
    held = balance_of(user).held
    settle()
    row.refresh_from_db()
    assert (row.status, balance_of(user).held) == ("Success", 0)
    cost = row.real_cost

    chain.reorganise(settings.CONFIRMATIONS)
    assert track() == 0
    row.refresh_from_db()
    assert (row.status, row.settled_at, row.real_cost, row.terminal_status) == ("Submitted", None, 0, "")
    assert balance_of(user) == (CREDITS, held, CREDITS - held)
    listed = transactions_of(user).get(id=row.pk)
    assert credits_of(listed) == (row.expected_cost, CREDITS, CREDITS - row.expected_cost)
    attempt, relayer = row.attempts.get(), Relayer.objects.get(pk=row.relayer_id)
    assert (attempt.status, attempt.block_number, relayer.in_flight) == ("sent", None, 1)
    undone = ReversedSettlement.objects.get()
    assert (undone.relay_transaction_id, undone.number, undone.status) == (row.pk, 0, "Success")
    assert (undone.real_cost, undone.transaction_hash) == (cost, attempt.transaction_hash)
    reversals = CreditEntry.objects.filter(source=EntrySource.RELAY_REVERSAL).order_by("pk")
    assert [entry.amount for entry in reversals] == [cost, -(cost // 10)]
    assert_books_agree()

    assert resend() == 1
    assert mine_and_settle(chain) == 1
    row.refresh_from_db()
    assert row.status == "Success"
    assert balance_of(user) == (CREDITS - row.real_cost + row.real_cost // 10, 0, balance_of(user).balance)
    charges = CreditEntry.objects.filter(source=EntrySource.RELAY_TRANSACTION).order_by("pk")
    assert [entry.key for entry in charges] == [f"hold:{row.hold_id}", f"hold:{row.hold_id}:1"]
    assert Relayer.objects.get(pk=row.relayer_id).in_flight == 0
    assert_books_agree()


def test_a_call_in_another_block_is_settled_at_its_new_cost(
    user: User, accept: Accept, settle: Settle, chain: Chain
) -> None:
    chain.set_base_fee(10**9)
    row = accept()
    settle()
    row.refresh_from_db()
    before = row.real_cost
    (raw,) = row.attempts.values_list("raw", flat=True)
    # Its block comes later, and has another base fee.
    chain.reorganise(settings.CONFIRMATIONS + 1)
    chain.set_base_fee(5 * 10**8)
    get_chain_client().send_raw_transactions([bytes(raw)])
    chain.mine(settings.CONFIRMATIONS)
    assert track() == 1
    row.refresh_from_db()
    receipt = chain.receipt(row.transaction_hash)
    assert receipt is not None
    wei = int(receipt["gasUsed"], 16) * int(receipt["effectiveGasPrice"], 16)
    assert row.real_cost == -(-wei // settings.CREDIT_WEI) != before
    assert balance_of(user) == (CREDITS - row.real_cost, 0, CREDITS - row.real_cost)
    assert ReversedSettlement.objects.count() == 1
    assert_books_agree()


def test_the_same_block_again_changes_nothing(accept: Accept, settle: Settle, chain: Chain) -> None:
    accept()
    settle()
    chain.mine()
    assert track() == 0
    assert not ReversedSettlement.objects.exists()


def test_a_temporarily_shorter_chain_decides_nothing(user: User, accept: Accept, chain: Chain) -> None:
    snapshot = chain.snapshot()
    row = accept()
    broadcast_all()
    mine_and_settle(chain)
    balance = balance_of(user)
    chain.revert(snapshot)
    assert track() == 0
    row.refresh_from_db()
    assert (row.status, balance_of(user)) == ("Success", balance)

    chain.mine(settings.CONFIRMATIONS + 1)
    track()
    row.refresh_from_db()
    assert row.status == "Submitted"
    resend()
    assert mine_and_settle(chain) == 1
    row.refresh_from_db()
    assert row.status == "Success"
    assert_books_agree()


def test_a_failed_call_may_succeed_on_the_new_chain(
    services: Services, user: User, accept: Accept, settle: Settle, chain: Chain
) -> None:
    flaky = services.world.deploy_flaky()
    row = accept(payload=execute_payload(flaky.address))
    flaky.flip()
    settle()
    row.refresh_from_db()
    assert (row.status, row.real_cost > 0) == ("Failed", True)
    # `flip` was mined by itself; it is in a block below.
    chain.reorganise(settings.CONFIRMATIONS)
    track()
    row.refresh_from_db()
    assert (row.status, row.failure_code, row.failure_detail) == ("Submitted", "", "")
    flaky.flip()
    resend()
    assert mine_and_settle(chain) == 1
    row.refresh_from_db()
    assert (row.status, balance_of(user).balance) == ("Success", CREDITS - row.real_cost)
    assert_books_agree()


def test_a_cancelled_call_is_cancelled_again_and_its_loss_reserved_again(
    user: User, accept: Accept, chain: Chain
) -> None:
    row = accept()
    cancellation.cancel_unsent(relay_transaction_id=row.pk, now=timezone.now())
    broadcast_all()
    assert mine_and_settle(chain) == 1
    row.refresh_from_db()
    assert (row.status, balance_of(user).held) == ("Cancelled", 0)
    assert losses.usage(now=timezone.now()).reserved_wei == 0

    chain.reorganise(settings.CONFIRMATIONS)
    track()
    usage = losses.usage(now=timezone.now())
    assert (usage.lost_wei, usage.reserved_wei > 0) == (0, True)
    row.refresh_from_db()
    assert (row.status, row.terminal_status, row.failure_code) == (
        "Submitted",
        "Cancelled",
        "cancelled-by-staff",
    )
    assert balance_of(user).held > 0
    resend()
    assert mine_and_settle(chain) == 1
    row.refresh_from_db()
    assert (row.status, row.failure_code) == ("Cancelled", "cancelled-by-staff")
    assert balance_of(user) == (CREDITS, 0, CREDITS)
    usage = losses.usage(now=timezone.now())
    assert (usage.lost_wei > 0, usage.reserved_wei) == (True, 0)
    assert_books_agree()


def test_the_replaced_attempt_may_win_on_the_new_chain(
    user: User, accept: Accept, settle: Settle, chain: Chain
) -> None:
    row = accept()
    broadcast_all()
    old = row.attempts.get()
    assert replacement.replace(attempt_id=old.pk, fees=bumped_fees(old), now=timezone.now())
    settle()
    row.refresh_from_db()
    new = row.attempts.latest("sequence")
    assert row.transaction_hash == new.transaction_hash

    chain.reorganise(settings.CONFIRMATIONS, [bytes(old.raw)])
    assert track() == 1
    row.refresh_from_db()
    assert (row.status, row.transaction_hash) == ("Success", old.transaction_hash)
    assert balance_of(user) == (CREDITS - row.real_cost, 0, CREDITS - row.real_cost)
    assert_books_agree()


def test_the_cancellation_may_win_on_the_new_chain(user: User, accept: Accept, chain: Chain) -> None:
    row = accept()
    broadcast_all()
    call = row.attempts.get()
    cancellation.begin(
        attempt=call,
        terminal_status=RelayTransaction.Status.CANCELLED,
        code="refused-by-node",
        detail="",
        fees=bumped_fees(call),
        now=timezone.now(),
    )
    mine_and_settle(chain)  # The call itself was mined.
    row.refresh_from_db()
    assert row.status == "Success"

    chain.reorganise(settings.CONFIRMATIONS)
    track()
    row.refresh_from_db()
    assert (row.status, row.terminal_status) == ("Submitted", "Cancelled")
    broadcast_all()
    assert mine_and_settle(chain) == 1
    row.refresh_from_db()
    assert (row.status, row.failure_code) == ("Cancelled", reorganisations.REORGANISED)
    assert balance_of(user) == (CREDITS, 0, CREDITS)
    assert_books_agree()


def test_a_retired_relayer_is_brought_back_for_what_is_reopened(
    accept: Accept, settle: Settle, chain: Chain
) -> None:
    row = accept()
    settle()
    relayers.set_active(relayer_id=row.relayer_id, is_active=False)
    assert relayers.retire(relayer_id=row.relayer_id, now=timezone.now())
    chain.reorganise(settings.CONFIRMATIONS)
    track()
    relayer = Relayer.objects.get(pk=row.relayer_id)
    assert (relayer.retired_at, relayer.is_active, relayer.in_flight) == (None, False, 1)
    resend()
    assert mine_and_settle(chain) == 1


def test_two_workers_undo_a_settlement_once(accept: Accept, settle: Settle, chain: Chain) -> None:
    row = accept()
    settle()
    watch = reorganisations.watch()
    chain.reorganise(settings.CONFIRMATIONS, [bytes(row.attempts.get().raw)])
    view = get_chain_client().read_chain(
        transaction_hashes=[], accounts=[], confirmations=1, heights=watch.heights
    )
    # The other one undoes it and settles it in its new block.
    assert track() == 1
    assert reorganisations.reopen_vanished(watch=watch, view=view, now=timezone.now()) == 0
    row.refresh_from_db()
    assert (row.status, ReversedSettlement.objects.count()) == ("Success", 1)
