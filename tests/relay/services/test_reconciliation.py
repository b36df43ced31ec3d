"""Captured credits agree with the receipts; every difference is found."""

import random
import secrets
from datetime import timedelta
from io import StringIO

import pytest
from celery import current_app
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db.models import F
from django.utils import timezone
from pytest_django import Settings

from credits.models import CreditHold, ReconciliationRun
from credits.services import holds
from gateway.chain.client import get_chain_client
from gateway.chain.errors import NodeUnavailable
from gateway.common.leases import try_lease
from relay.models import Attempt, FinalBlock, Relayer, RelayTransaction
from relay.services.sending import cancellation
from relay.services.settling import reconciliation
from relay.tasks import reconcile_with_chain
from tests.credits.holding import place_hold
from tests.credits.rows import query
from tests.factories import UserFactory
from tests.relay.chain import Chain, node_away
from tests.relay.conftest import Accept, Settle
from tests.relay.workers import track
from tests.threads import at_once
from users.models import User

pytestmark = pytest.mark.django_db

COST = "the cost is that of the attempt that was mined"
CAPTURED = "captured is the cost, and never more than was held"
MINED = "a success was mined, and succeeded"
CALL_HOLD = "a call in progress has an open hold"
HOLD_CALL = "an open hold has a call in progress"
RECEIPT = "a mined attempt has a whole receipt"


def findings() -> dict[str, tuple[int | None, int, int]]:
    return {
        finding.rule: (finding.relay_transaction_id, finding.expected, finding.actual)
        for finding in reconciliation.find_differences(since=timezone.now() - timedelta(days=1))
    }


@pytest.fixture
def settled(accept: Accept, settle: Settle) -> RelayTransaction:
    """A call that succeeded, beside one in progress; the second must never be blamed."""
    row = accept()
    assert settle() == 1
    accept()
    row.refresh_from_db()
    assert row.status == "Success"
    return row


def test_a_consistent_relay_has_no_findings(settled: RelayTransaction) -> None:
    assert findings() == {}
    run = reconciliation.reconcile(now=timezone.now())
    assert run == ReconciliationRun.objects.get(kind="chain")
    assert run is not None
    assert run.counts == {
        "settled calls": 1,
        "calls in progress": 1,
        "mined attempts": 1,
        "open holds": 1,
        "calls compared with the nodes": 0,
        "findings": 0,
    }


def test_a_cost_that_is_not_that_of_the_gas_is_found(settled: RelayTransaction) -> None:
    mined = settled.attempts.get()
    assert mined.gas_used is not None
    assert mined.effective_gas_price_wei is not None
    before = settled.real_cost
    price = mined.effective_gas_price_wei * random.randint(2, 9)
    Attempt.objects.filter(pk=mined.pk).update(effective_gas_price_wei=price)
    wanted = -(-mined.gas_used * price // settings.CREDIT_WEI)
    assert findings() == {COST: (settled.pk, wanted, before)}
    assert reconciliation.find_differences(since=timezone.now() + timedelta(minutes=1)) == []


def test_more_or_less_captured_than_the_cost_is_found(settled: RelayTransaction) -> None:
    captured = CreditHold.objects.get(pk=settled.hold_id).captured_amount
    assert captured is not None
    assert captured > 1
    CreditHold.objects.filter(pk=settled.hold_id).update(captured_amount=captured - 1)
    assert findings() == {CAPTURED: (settled.pk, captured, captured - 1)}


def test_a_cost_above_the_hold_takes_the_hold(settled: RelayTransaction) -> None:
    captured = CreditHold.objects.get(pk=settled.hold_id).captured_amount
    assert captured is not None
    query("UPDATE credits_hold SET amount = %s WHERE id = %s", captured, settled.hold_id)
    mined = settled.attempts.get()
    assert mined.effective_gas_price_wei is not None
    price = mined.effective_gas_price_wei * 5
    Attempt.objects.filter(pk=mined.pk).update(effective_gas_price_wei=price)
    cost = -(-(mined.gas_used or 0) * price // settings.CREDIT_WEI)
    RelayTransaction.objects.filter(pk=settled.pk).update(real_cost=cost)
    assert cost > captured
    assert findings() == {}


def test_a_success_without_a_mined_transaction_is_found(settled: RelayTransaction) -> None:
    Attempt.objects.filter(relay_transaction=settled).update(status=Attempt.Status.SENT)
    assert set(findings()) == {COST, MINED}


def test_a_closed_hold_of_a_call_in_progress_is_found(accept: Accept) -> None:
    row = accept()
    holds.release(hold_id=row.hold_id)
    assert findings() == {CALL_HOLD: (row.pk, 1, 0)}


def test_an_open_hold_whose_call_has_ended_is_found_until_staff_release_it(accept: Accept) -> None:
    row = accept()
    cost = random.randint(1, row.expected_cost)
    RelayTransaction.objects.filter(pk=row.pk).update(
        status="Failed", settled_at=timezone.now() - timedelta(days=9), real_cost=cost
    )
    held = row.hold.amount
    assert findings() == {CAPTURED: (row.pk, cost, 0), HOLD_CALL: (row.pk, 0, held)}
    staff = UserFactory.create(profile_address=None, is_staff=True)
    cancellation.release(hold_id=row.hold_id, actor=staff, reason="stuck", now=timezone.now())
    assert findings() == {}


def test_an_open_relay_hold_without_a_call_is_found(user: User) -> None:
    place_hold(user=user, credits=3, key="shop:1")
    assert findings() == {}
    amount = random.randint(1, 99)
    place_hold(user=user, credits=amount, key="relay:0x1:0x2:0")
    assert findings() == {HOLD_CALL: (None, 0, amount)}


@pytest.mark.parametrize("missing", ["block_hash = ''", "effective_gas_price_wei = NULL"])
def test_a_receipt_that_lacks_something_is_found(settled: RelayTransaction, missing: str) -> None:
    query(f"UPDATE relay_attempt SET {missing} WHERE relay_transaction_id = {settled.pk}")  # noqa: S608
    assert set(findings()) == {RECEIPT}


def test_a_call_that_was_cancelled_costs_nothing(accept: Accept) -> None:
    row = accept()
    holds.release(hold_id=row.hold_id)
    RelayTransaction.objects.filter(pk=row.pk).update(status="Cancelled", settled_at=timezone.now())
    assert findings() == {}


def test_the_exit_code_depends_on_the_findings(settled: RelayTransaction) -> None:
    output = StringIO()
    call_command("reconcile_relay", stdout=output)
    assert output.getvalue().splitlines()[-1] == "No difference."
    RelayTransaction.objects.filter(pk=settled.pk).update(real_cost=settled.real_cost + 1)
    output = StringIO()
    with pytest.raises(CommandError, match=r"^2 differences$") as refusal:
        call_command("reconcile_relay", stdout=output)
    assert refusal.value.returncode == 1
    assert f"{COST}: call={settled.pk} row={settled.attempts.get().pk}: have" in output.getvalue()


def test_the_nightly_task_fails_if_something_differs(settled: RelayTransaction) -> None:
    task = str(settings.CELERY_BEAT_SCHEDULE["relay-reconcile"]["task"])
    assert current_app.amqp.router.route({}, task)["queue"].name == "default"
    assert task == reconcile_with_chain.name
    assert reconcile_with_chain.apply().state == "SUCCESS"
    RelayTransaction.objects.filter(pk=settled.pk).update(real_cost=settled.real_cost + 1)
    assert reconcile_with_chain.apply().state == "FAILURE"
    assert [run.counts["findings"] for run in ReconciliationRun.objects.order_by("pk")] == [0, 2]


@pytest.mark.django_db(transaction=True)
def test_a_run_during_another_one_is_skipped(services: object) -> None:
    with try_lease("reconciliation.chain") as acquired:
        assert acquired
        assert at_once([lambda: reconciliation.reconcile(now=timezone.now())]) == [None]
        with pytest.raises(CommandError, match="in progress"):
            at_once([lambda: call_command("reconcile_relay", stdout=StringIO())])
    assert not ReconciliationRun.objects.exists()


class TestNodes:
    """The rows agree with each other, and differ from what the chain has."""

    MINED = "an attempt is mined here if the nodes have its receipt"

    def of_nodes(self) -> dict[str, tuple[int | None, int, int]]:
        differences, _ = reconciliation.compare_with_nodes(since=timezone.now() - timedelta(days=1))
        return {one.rule: (one.relay_transaction_id, one.expected, one.actual) for one in differences}

    @pytest.fixture(autouse=True)
    def _short_finality(self, settings: Settings) -> None:
        """Of a long chain, anvil keeps no state that a deep reorganisation could go back to."""
        settings.FINALITY_BLOCKS = 5

    @pytest.fixture
    def final(self, accept: Accept, settle: Settle, chain: Chain) -> RelayTransaction:
        """A call that is final, beside one that is not: the second is the tracker's business."""
        row = accept()
        settle()
        chain.mine(settings.FINALITY_BLOCKS)
        accept()
        settle()
        row.refresh_from_db()
        assert FinalBlock.objects.get().number >= (row.attempts.get().block_number or 0)
        return row

    def test_the_nodes_agree_with_the_stored_rows(self, final: RelayTransaction) -> None:
        since = timezone.now() - timedelta(days=1)
        assert reconciliation.compare_with_nodes(since=since) == ([], 1)
        assert reconciliation.compare_with_nodes(since=timezone.now() + timedelta(minutes=1)) == ([], 0)

    @pytest.mark.parametrize(
        ("column", "rule"),
        [
            ("gas_used", "the gas used is what the nodes report"),
            ("effective_gas_price_wei", "the gas price is what the nodes report"),
        ],
    )
    def test_another_cost_than_the_nodes_receipt_makes_is_found(
        self, final: RelayTransaction, column: str, rule: str
    ) -> None:
        """All rows are changed alike, so they agree with each other."""
        attempt = final.attempts.get()
        stored, cost = getattr(attempt, column), final.real_cost
        Attempt.objects.filter(pk=attempt.pk).update(**{column: stored * 2})
        RelayTransaction.objects.filter(pk=final.pk).update(real_cost=2 * cost)
        assert self.of_nodes() == {
            rule: (final.pk, stored, 2 * stored),
            "the cost follows from the nodes' receipt": (final.pk, cost, 2 * cost),
        }

    def test_another_verdict_than_the_nodes_is_found(self, final: RelayTransaction) -> None:
        Attempt.objects.filter(relay_transaction=final).update(succeeded=False)
        assert self.of_nodes() == {"an attempt succeeded if the nodes report success": (final.pk, 1, 0)}

    def test_another_block_is_found(self, final: RelayTransaction) -> None:
        attempt = final.attempts.get()
        Attempt.objects.filter(pk=attempt.pk).update(block_hash="0x" + "ab" * 32)
        rule = "a mined attempt is in the block that the nodes report"
        assert self.of_nodes() == {rule: (final.pk, attempt.block_number, attempt.block_number)}

    def test_a_call_that_the_chain_does_not_have_is_found(
        self, final: RelayTransaction, chain: Chain
    ) -> None:
        number = final.attempts.get().block_number
        assert number is not None
        chain.reorganise(get_chain_client().head().number - number + 1)
        differences = self.of_nodes()
        assert differences.pop(self.MINED) == (final.pk, 0, 1)
        # The account has its gas money and its account nonce back.
        assert set(differences) == {
            "the chain has used the account nonces of all mined attempts",
            "a relayer with nothing in flight has the balance that the nodes report, in wei",
        }

    def test_a_cancelled_call_that_the_chain_executed_is_found(self, final: RelayTransaction) -> None:
        Attempt.objects.filter(relay_transaction=final).update(
            status="sent", block_number=None, block_hash="", succeeded=None, gas_used=None
        )
        RelayTransaction.objects.filter(pk=final.pk).update(status="Cancelled", real_cost=0)
        assert self.of_nodes() == {self.MINED: (final.pk, 1, 0)}

    def test_a_relayer_that_differs_is_found(self, relayers: list[Relayer], chain: Chain) -> None:
        assert self.of_nodes() == {}
        one, other = relayers[:2]
        chain.fund(one.balance_wei + 7, one.address)
        Relayer.objects.filter(pk=other.pk).update(next_account_nonce=F("next_account_nonce") - 1)
        assert self.of_nodes() == {
            "a relayer with nothing in flight has the balance that the nodes report, in wei": (
                None,
                one.balance_wei + 7,
                one.balance_wei,
            ),
            "the chain has used no account nonce that was not taken here": (
                None,
                other.next_account_nonce,
                other.next_account_nonce - 1,
            ),
        }

    def test_calls_are_read_in_batches(
        self, accept: Accept, settle: Settle, chain: Chain, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(reconciliation, "BATCH_SIZE", 2)
        rows = [accept(channel=secrets.randbits(120)) for _ in range(5)]
        settle()
        chain.mine(settings.FINALITY_BLOCKS)
        track()
        Attempt.objects.filter(relay_transaction=rows[4]).update(succeeded=False)
        differences, compared = reconciliation.compare_with_nodes(since=timezone.now() - timedelta(days=1))
        assert ([one.relay_transaction_id for one in differences], compared) == ([rows[4].pk], 5)

    def test_without_a_node_the_run_stays_unfinished(self, final: RelayTransaction) -> None:
        with node_away(), pytest.raises(NodeUnavailable):
            reconciliation.reconcile(now=timezone.now())
        assert ReconciliationRun.objects.get().finished_at is None
