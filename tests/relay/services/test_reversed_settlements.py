"""What was settled is undone when its block disappears, and follows the new chain."""

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.conf import settings
from django.utils import timezone
from eth_account import Account

from credits.models import CreditEntry, EntrySource
from credits.queries import balance_of
from credits.services import reconciliation as ledger
from devstack.services.stack import Services
from devstack.world.profiles import Profile
from devstack.world.test_contracts import Flaky
from gateway.chain.client import get_chain_client
from gateway.chain.config import get_chain
from gateway.chain.lsp25 import RelayCall
from relay.models import FinalBlock, Relayer, RelayTransaction, ReversedSettlement
from relay.queries.reports import credits_of, transactions_of
from relay.services.fleet import losses, relayers
from relay.services.sending import broadcasting, cancellation, replacement
from relay.services.settling import reconciliation, reorganisations
from relay.services.settling.reorganisations import FinalBlockReplaced
from rewards.models import Badge
from tests.relay.callers import execute
from tests.relay.chain import Chain
from tests.relay.signing import execute_payload
from tests.relay.workers import broadcast_all, bumped_fees, track
from users.models import User

pytestmark = pytest.mark.django_db
Accept = Callable[..., RelayTransaction]
Settle = Callable[[], int]
CREDITS = 10_000


def resend() -> int:
    """Send unmined transactions again. Those that a reorganisation removed are sent at once."""
    return broadcasting.resend(now=timezone.now())


def audit() -> None:
    """The books agree with each other, and the ledger with itself."""
    assert ledger.find_differences() == []
    assert reconciliation.find_differences(since=timezone.now() - timedelta(days=1)) == []


def mine_and_settle(chain: Chain) -> int:
    chain.mine(settings.CONFIRMATIONS)
    return track()


@pytest.fixture
def _cashback(user: User) -> None:
    Badge.objects.update(credits_back_percent=Decimal("0.1"))


@pytest.mark.usefixtures("_cashback")
def test_a_success_whose_block_is_gone_is_undone_and_sent_again(
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
    audit()

    assert resend() == 1
    assert mine_and_settle(chain) == 1
    row.refresh_from_db()
    assert row.status == "Success"
    assert balance_of(user) == (CREDITS - row.real_cost + row.real_cost // 10, 0, balance_of(user).balance)
    charges = CreditEntry.objects.filter(source=EntrySource.RELAY_TRANSACTION).order_by("pk")
    assert [entry.key for entry in charges] == [f"hold:{row.hold_id}", f"hold:{row.hold_id}:1"]
    assert Relayer.objects.get(pk=row.relayer_id).in_flight == 0
    audit()


def test_the_relayer_goes_on_after_a_reorganisation(accept: Accept, settle: Settle, chain: Chain) -> None:
    first = accept()
    settle()
    chain.reorganise(settings.CONFIRMATIONS)
    track()
    resend()
    chain.mine()
    second = accept()
    broadcast_all()
    assert mine_and_settle(chain) == 2
    for row in (first, second):
        row.refresh_from_db()
        assert row.status == "Success"
    audit()


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
    audit()


def test_the_same_block_again_changes_nothing(accept: Accept, settle: Settle, chain: Chain) -> None:
    accept()
    settle()
    chain.mine()
    assert track() == 0
    assert not ReversedSettlement.objects.exists()


def test_a_chain_that_is_shorter_for_a_moment_says_nothing_yet(
    user: User, accept: Accept, chain: Chain
) -> None:
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
    audit()


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
    audit()


def test_a_cancelled_call_is_cancelled_again(user: User, accept: Accept, chain: Chain) -> None:
    row = accept()
    cancellation.cancel_unsent(relay_transaction_id=row.pk, now=timezone.now())
    broadcast_all()
    assert mine_and_settle(chain) == 1
    row.refresh_from_db()
    assert (row.status, balance_of(user).held) == ("Cancelled", 0)

    chain.reorganise(settings.CONFIRMATIONS)
    track()
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
    audit()


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
    audit()


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
    audit()


class TestRepeats:
    """A call that failed was repeated; then a reorganisation removes the failure."""

    @pytest.fixture
    def flaky(self, services: Services) -> Flaky:
        return services.world.deploy_flaky()

    @pytest.fixture
    def failed_and_repeated(
        self,
        flaky: Flaky,
        accept: Accept,
        new_call: Callable[..., RelayCall],
        chain: Chain,
        settle: Settle,
    ) -> tuple[RelayTransaction, RelayTransaction]:
        """Return the failed call and its repeat, settled as a success, in the newest blocks."""
        call = new_call(payload=execute_payload(flaky.address))
        first = accept(call)
        flaky.flip()
        broadcast_all()
        chain.mine(settings.CONFIRMATIONS)
        track()
        flaky.flip()
        second = accept(call)
        assert second.generation == 1
        settle()
        for row, status in ((first, "Failed"), (second, "Success")):
            row.refresh_from_db()
            assert row.status == status
        return first, second

    def depth_of(self, row: RelayTransaction) -> int:
        block = row.attempts.filter(block_number__isnull=False).get().block_number
        assert block is not None
        return get_chain_client().head().number - block + 1

    def test_the_repeat_is_executed_and_the_first_gives_way(
        self,
        user: User,
        chain: Chain,
        flaky: Flaky,
        failed_and_repeated: tuple[RelayTransaction, RelayTransaction],
    ) -> None:
        first, second = failed_and_repeated
        chain.reorganise(self.depth_of(first))
        # The block in which the target was repaired has disappeared with the others.
        flaky.flip()
        track()
        for row in (first, second):
            row.refresh_from_db()
            assert row.status == "Submitted"
        assert (first.is_superseded, second.is_superseded) == (True, False)
        assert first.terminal_status == "Cancelled"

        resend()
        broadcast_all()
        assert mine_and_settle(chain) == 2
        for row in (first, second):
            row.refresh_from_db()
        assert (first.status, first.failure_code) == ("Cancelled", reorganisations.SUPERSEDED)
        assert second.status == "Success"
        assert balance_of(user) == (CREDITS - second.real_cost, 0, CREDITS - second.real_cost)
        audit()

    def test_if_the_first_is_executed_all_the_same_the_repeat_costs_nothing(
        self,
        user: User,
        chain: Chain,
        flaky: Flaky,
        failed_and_repeated: tuple[RelayTransaction, RelayTransaction],
    ) -> None:
        first, second = failed_and_repeated
        raws = [bytes(row.attempts.get().raw) for row in (first, second)]
        chain.reorganise(self.depth_of(first))
        flaky.flip()
        # The node's pool has kept both, and the first one succeeds in the new chain.
        get_chain_client().send_raw_transactions(raws)
        chain.mine(settings.CONFIRMATIONS)
        assert track() == 2
        for row in (first, second):
            row.refresh_from_db()
        assert first.status == "Success"
        assert (second.status, second.failure_code, second.real_cost) == (
            "Failed",
            reorganisations.OVERTAKEN,
            0,
        )
        assert balance_of(user) == (CREDITS - first.real_cost, 0, CREDITS - first.real_cost)
        audit()

        # And once more: still it is the newer one that is wanted.
        chain.reorganise(self.depth_of(first))
        track()
        for row in (first, second):
            row.refresh_from_db()
            assert row.status == "Submitted"
        assert (first.is_superseded, second.is_superseded) == (True, False)

    def test_of_two_failures_the_newer_one_is_tried_again(
        self, accept: Accept, new_call: Callable[..., RelayCall], chain: Chain, settle: Settle, flaky: Flaky
    ) -> None:
        call = new_call(payload=execute_payload(flaky.address))
        rows = []
        # Both are accepted while the target works, and fail when it does not.
        for _ in range(2):
            rows.append(accept(call))
            flaky.flip()
            settle()
            flaky.flip()
        for row in rows:
            row.refresh_from_db()
            assert row.status == "Failed"
        chain.reorganise(self.depth_of(rows[0]))
        track()
        for row in rows:
            row.refresh_from_db()
        assert [row.status for row in rows] == ["Submitted", "Submitted"]
        assert [row.is_superseded for row in rows] == [True, False]

    def test_a_wallet_that_repeats_meanwhile_gets_one_of_both(
        self,
        user: User,
        chain: Chain,
        failed_and_repeated: tuple[RelayTransaction, RelayTransaction],
    ) -> None:
        first, second = failed_and_repeated
        chain.reorganise(self.depth_of(first))
        track()
        call = RelayCall(
            first.key_manager_address,
            bytes(first.payload),
            bytes(first.signature),
            first.relay_nonce,
            first.validity,
        )
        again = execute(user=user, call=call, now=timezone.now())
        assert again in {first.transaction_hash, second.transaction_hash}
        assert RelayTransaction.objects.count() == 2


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


def test_what_a_reopened_call_may_cost_the_service_is_reserved_again(accept: Accept, chain: Chain) -> None:
    row = accept()
    cancellation.cancel_unsent(relay_transaction_id=row.pk, now=timezone.now())
    broadcast_all()
    mine_and_settle(chain)
    assert losses.usage(now=timezone.now()).reserved_wei == 0
    chain.reorganise(settings.CONFIRMATIONS)
    track()
    usage = losses.usage(now=timezone.now())
    assert (usage.lost_wei, usage.reserved_wei > 0) == (0, True)
    resend()
    mine_and_settle(chain)
    usage = losses.usage(now=timezone.now())
    assert (usage.lost_wei > 0, usage.reserved_wei) == (True, 0)


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


def test_an_executed_call_that_somebody_else_overtakes_on_the_new_chain(
    user: User, accept: Accept, settle: Settle, chain: Chain, new_call: Callable[..., RelayCall]
) -> None:
    call = new_call()
    row = accept(call)
    settle()
    chain.reorganise(settings.CONFIRMATIONS)
    chain.execute_externally(call)
    track()
    resend()
    assert mine_and_settle(chain) == 1
    row.refresh_from_db()
    assert row.status == "ExecutedExternally"
    assert balance_of(user) == (CREDITS - row.real_cost, 0, CREDITS - row.real_cost)
    audit()


def test_many_reorganisations_one_after_the_other(
    user: User, accept: Accept, settle: Settle, chain: Chain
) -> None:
    row = accept()
    settle()
    for number in range(1, 4):
        chain.reorganise(settings.CONFIRMATIONS)
        track()
        resend()
        assert mine_and_settle(chain) == 1
        assert ReversedSettlement.objects.count() == number
    row.refresh_from_db()
    assert balance_of(user) == (CREDITS - row.real_cost, 0, CREDITS - row.real_cost)
    audit()


class TestFinality:
    def test_a_call_is_watched_until_its_block_is_final(
        self, accept: Accept, settle: Settle, chain: Chain, settings: Any
    ) -> None:
        settings.FINALITY_BLOCKS = 5
        row = accept()
        settle()
        block = row.attempts.get().block_number
        assert block in reorganisations.watch().heights
        chain.mine(5 - settings.CONFIRMATIONS)
        track()
        assert FinalBlock.objects.get().number == block
        assert reorganisations.watch().settled == []

    def test_what_a_node_did_not_say_is_compared_later(
        self, accept: Accept, settle: Settle, chain: Chain, settings: Any
    ) -> None:
        settings.FINALITY_BLOCKS = 3
        accept()
        settle()
        before, watch = FinalBlock.objects.get(), reorganisations.watch()
        chain.mine(5)
        view = get_chain_client().read_chain(
            transaction_hashes=[],
            accounts=[],
            confirmations=1,
            heights=[before.number],
            finality=get_chain().finality,
        )
        assert reorganisations.reopen_vanished(watch=watch, view=view, now=timezone.now()) == 0
        assert FinalBlock.objects.get().number == before.number
        track()
        assert FinalBlock.objects.get().number > before.number

    def test_the_nodes_tag_decides_where_the_setting_says_so(
        self, accept: Accept, settle: Settle, chain: Chain, settings: Any
    ) -> None:
        settings.FINALITY_TAG = True
        row = accept()
        settle()
        chain.mine(60)
        track()
        assert reorganisations.watch().settled != []
        chain.mine(10)
        track()
        assert reorganisations.watch().settled == []
        chain.reorganise(3)
        track()
        row.refresh_from_db()
        assert row.status == "Success"

    def test_below_finality_the_tracker_stops_until_an_operator_decides(
        self, user: User, accept: Accept, settle: Settle, chain: Chain, settings: Any
    ) -> None:
        settings.FINALITY_BLOCKS = 3
        row = accept()
        settle()
        chain.mine(2)
        track()
        balance = balance_of(user)
        final = FinalBlock.objects.get().number
        chain.reorganise(get_chain_client().head().number - final + 2)
        for _ in range(2):
            with pytest.raises(FinalBlockReplaced):
                track()
        row.refresh_from_db()
        assert (row.status, balance_of(user)) == ("Success", balance)
        assert FinalBlock.objects.get().replaced_at is not None

        reorganisations.accept_chain(from_height=final - 2)
        track()
        row.refresh_from_db()
        assert row.status == "Submitted"
        assert FinalBlock.objects.get().replaced_at is None
        resend()
        assert mine_and_settle(chain) == 1
        audit()

    def test_a_node_that_comes_back_to_the_old_chain_is_believed_again(
        self, accept: Accept, settle: Settle, chain: Chain
    ) -> None:
        accept()
        settle()
        hidden = FinalBlock.objects.get().block_hash
        FinalBlock.objects.update(block_hash="0x" + "ab" * 32)
        with pytest.raises(FinalBlockReplaced):
            track()
        FinalBlock.objects.update(block_hash=hidden)
        track()
        assert FinalBlock.objects.get().replaced_at is None


def test_a_worker_that_was_away_compares_what_was_settled_before(
    accept: Accept, settle: Settle, chain: Chain, profile: Profile
) -> None:
    row = accept()
    settle()
    # Far more blocks than are watched pass unread; the call is in none of them.
    chain.reorganise(settings.CONFIRMATIONS)
    chain.mine(settings.FINALITY_BLOCKS * 2)
    track()
    row.refresh_from_db()
    assert row.status == "Submitted"


def test_a_call_whose_account_nonce_was_lost_is_settled_only_when_that_is_final(
    accept: Accept, chain: Chain, settings: Any
) -> None:
    settings.FINALITY_BLOCKS = 40
    row = accept()
    attempt = row.attempts.select_related("relayer").get()
    keys = {Account.from_key(key).address: key for key in settings.RELAY_RELAYER_KEYS}
    chain.use_key_elsewhere(keys[attempt.relayer.address], account_nonce=attempt.account_nonce)
    chain.mine(39)
    assert track() == 0
    chain.mine()
    assert track() == 1
    row.refresh_from_db()
    assert (row.status, row.failure_code) == ("Cancelled", "account-nonce-lost")
