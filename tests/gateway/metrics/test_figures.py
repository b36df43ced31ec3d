"""Every figure is the rows' own."""

import random
import secrets
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from credits.models import CreditHold, EntrySource, ReconciliationRun, UnbackedCeiling, UnbackedDay
from credits.services import entries, holds
from earnings.models import AdNetwork, Postback
from gateway.chain.client import set_chain_client
from gateway.chain.types import NodeHealth
from gateway.staff.pauses import switch
from payments.models import BillingOperation, StripeEvent
from relay.models import (
    Attempt,
    FinalBlock,
    GapFiller,
    RelayTransaction,
    ReversedSettlement,
    TopUp,
    Treasury,
    WorkerLoop,
)
from tests.credits.holding import place_hold
from tests.earnings.ad_networks import set_up
from tests.factories import RelayerFactory, UserFactory, make, random_address
from tests.fakes.chain import FakeChain
from tests.gateway.metrics.conftest import Scrape
from tests.portal.history_rows import relayed

pytestmark = pytest.mark.django_db
Status = RelayTransaction.Status


def ago(seconds: float) -> datetime:
    return timezone.now() - timedelta(seconds=seconds)


def calls(count: int, **values: Any) -> list[RelayTransaction]:
    """Make calls, settled unless `values` override it."""
    before = set(RelayTransaction.objects.values_list("pk", flat=True))
    relayed(UserFactory.create(), count)
    made = RelayTransaction.objects.exclude(pk__in=before)
    made_ids = list(made.values_list("pk", flat=True))
    RelayTransaction.objects.filter(pk__in=made_ids).update(**values)
    return list(RelayTransaction.objects.filter(pk__in=made_ids).order_by("pk"))


def waiting(*, age: float, status: str = Status.PENDING) -> RelayTransaction:
    [row] = calls(1, status=status, settled_at=None, created_at=ago(age))
    return row


def attempt(call: RelayTransaction, *, age: float, sequence: int = 0, **values: Any) -> None:
    """Sign bytes for a call, `age` seconds ago."""
    receipt = {"block_number": 1, "block_hash": "0x1", "succeeded": True, "gas_used": 1}
    mined = receipt if values.get("status") == Attempt.Status.MINED else {}
    make(
        Attempt,
        relay_transaction=call,
        account_nonce=call.pk,
        sequence=sequence,
        gas_limit=21_000,
        created_at=ago(age),
        **{**mined, **values},
    )


def about(seconds: float) -> Any:
    """Return what an age may be, when that much time has passed and the test ran on."""
    return pytest.approx(seconds + 30, abs=30)


def test_without_any_row_every_figure_is_nothing(scrape: Scrape) -> None:
    others = (
        *("periodic", "redis", "queue", "chain_node", "relay_loss_limit"),
        *("database_writable", "clock_", "signer_up"),
    )
    # What other tests of this process took and counted stays in Redis.
    counted = ("_seconds_bucket", "_seconds_sum", "_seconds_count", "_total")
    ours = {
        key: value
        for key, value in scrape().items()
        if not key[0].startswith(others) and not key[0].endswith(counted)
    }
    nonzero = {key for key, value in ours.items() if value}
    assert nonzero == {("reconciliation_scheduled", kind) for kind in ("ledger", "causes", "roots", "chain")}
    assert {key[0] for key in ours} >= {"relay_paused", "credits_outstanding", "stripe_events_waiting"}
    assert not any(key[0].startswith(("relayer_", "reconciliation_f")) for key in ours)


def test_each_loop_of_the_relay_worker_reports_its_last_end_and_success(scrape: Scrape) -> None:
    ended, succeeded = ago(random.randint(1, 9)), ago(random.randint(10, 99))
    for name, last in (("tracking", succeeded), ("broadcasting", None)):
        WorkerLoop.objects.create(name=name, ended_at=ended, succeeded_at=last)
    samples = scrape()
    for name in ("tracking", "broadcasting"):
        assert samples["relay_loop_ended_timestamp_seconds", name] == pytest.approx(ended.timestamp())
    assert samples["relay_loop_succeeded_timestamp_seconds", "tracking"] == pytest.approx(
        succeeded.timestamp()
    )
    assert ("relay_loop_succeeded_timestamp_seconds", "broadcasting") not in samples


def test_each_node_reports_whether_it_is_used_and_the_age_of_its_newest_block(
    scrape: Scrape, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = FakeChain()
    monkeypatch.setattr(
        client,
        "nodes",
        lambda: [NodeHealth("one", "", 3.5), NodeHealth("two", "no response")],
    )
    set_chain_client(client)
    try:
        gauges = scrape()
    finally:
        set_chain_client(None)
    assert gauges["chain_node_in_rotation", "one"] == 1
    assert gauges["chain_node_in_rotation", "two"] == 0
    assert gauges["chain_node_head_age_seconds", "one"] == 3.5
    assert ("chain_node_head_age_seconds", "two") not in gauges
    assert gauges["chain_nodes_needed",] == 1


def test_calls_are_counted_by_status(scrape: Scrape) -> None:
    pending, submitted = random.randint(1, 4), random.randint(5, 9)
    calls(pending, status=Status.PENDING, settled_at=None)
    calls(submitted, status=Status.SUBMITTED, settled_at=None)
    ended = {status: random.randint(1, 5) for status in set(Status) - set(RelayTransaction.IN_PROGRESS)}
    for status, count in ended.items():
        calls(count, status=status)
    calls(2, settled_at=ago(3700))
    gauges = scrape()
    assert gauges["relay_calls_in_progress", "Pending"] == pending
    assert gauges["relay_calls_in_progress", "Submitted"] == submitted
    assert {status: gauges["relay_calls_ended_in_last_hour", status] for status in ended} == ended


def test_a_call_that_took_its_time_is_counted_when_it_ends(scrape: Scrape) -> None:
    calls(1, created_at=ago(24.5 * 3600), settled_at=ago(60))
    calls(1, created_at=ago(26 * 3600), settled_at=ago(60))
    assert scrape()["relay_calls_ended_in_last_hour", "Success"] == 1


def test_the_age_of_the_oldest_signed_unsent_transaction_is_a_gauge(scrape: Scrape) -> None:
    for age in (300, 900):
        attempt(waiting(age=age + 1000), age=age)
    attempt(waiting(age=9000), age=8000, status=Attempt.Status.SENT, first_sent_at=ago(1))
    [settled] = calls(1)
    attempt(settled, age=7000)
    gauges = scrape()
    assert gauges["relay_oldest_unsent_age_seconds",] == about(900)
    assert gauges["relay_oldest_call_age_seconds",] == about(9000)


def test_a_replaced_call_waits_since_it_was_first_sent(scrape: Scrape) -> None:
    call = waiting(age=4000, status=Status.SUBMITTED)
    attempt(call, age=3000, status=Attempt.Status.REPLACED, first_sent_at=ago(2900))
    attempt(call, age=200, sequence=1, status=Attempt.Status.SENT, first_sent_at=ago(100))
    mined = waiting(age=9000, status=Status.SUBMITTED)
    attempt(mined, age=8000, status=Attempt.Status.REPLACED, first_sent_at=ago(7900))
    attempt(
        mined,
        age=8000,
        sequence=1,
        status=Attempt.Status.MINED,
        first_sent_at=ago(7800),
        effective_gas_price_wei=1,
    )
    gauges = scrape()
    assert gauges["relay_oldest_unmined_age_seconds",] == about(2900)
    assert gauges["relay_oldest_unsent_age_seconds",] == 0


def test_a_relayer_reports_its_balance_and_transactions_in_flight(scrape: Scrape) -> None:
    read = timezone.now()
    balance, flight = random.randint(1, 10**18), random.randint(1, 16)
    one = RelayerFactory.create(
        next_account_nonce=100 + flight, mined_account_nonce=100, balance_wei=balance, synced_at=read
    )
    two = RelayerFactory.create(next_account_nonce=5, mined_account_nonce=7, is_active=False)
    gauges = scrape()
    assert gauges["relayer_balance_wei", one.address] == float(balance)
    assert gauges["relayer_read_timestamp_seconds", one.address] == pytest.approx(read.timestamp(), abs=1e-3)
    assert gauges["relayer_account_nonces_in_flight", one.address] == flight
    assert (gauges["relayer_active", one.address], gauges["relayer_active", two.address]) == (1, 0)
    assert gauges["relayer_account_nonces_in_flight", two.address] == 0
    # What was never read is not told as a moment.
    assert ("relayer_read_timestamp_seconds", two.address) not in gauges


def test_reorganised_transactions_and_the_final_block_are_reported(scrape: Scrape) -> None:
    gauges = scrape()
    names = ("relay_settlements_reversed_in_last_day", "relay_gaps_filled_in_last_day")
    assert [gauges[name,] for name in names] == [0, 0]
    assert gauges["relay_final_block",] == 0

    (call,) = calls(1, status=Status.SUCCESS)
    for number, age in enumerate((100_000, 80_000, 5)):
        make(
            ReversedSettlement,
            relay_transaction=call,
            number=number,
            settled_at=ago(age),
            reversed_at=ago(age),
        )
    for nonce, age in enumerate((100_000, 5)):
        make(GapFiller, relayer=call.relayer, account_nonce=nonce, created_at=ago(age))
    block = FinalBlock.objects.create(
        number=random.randint(1, 10**9), block_hash="0x" + secrets.token_hex(32)
    )
    gauges = scrape()
    assert [gauges[name,] for name in names] == [2, 1]
    assert (gauges["relay_final_block",], gauges["relay_final_block_replaced",]) == (block.number, 0)
    FinalBlock.objects.update(replaced_at=ago(1))
    assert scrape()["relay_final_block_replaced",] == 1


def test_a_pause_shows_until_it_ends(scrape: Scrape) -> None:
    actor = UserFactory.create(profile_address=None, is_staff=True)
    for name in ("relay", "check_ins"):
        for is_paused in (True, False, True):
            switch(name, is_paused=is_paused, reason="a test", actor=actor)
            assert scrape()[f"{name}_paused",] == is_paused


def test_a_network_that_is_off_shows(scrape: Scrape) -> None:
    slug = set_up("bitlabs").row.slug
    assert scrape()["ad_network_enabled", slug] == 1
    AdNetwork.objects.filter(slug=slug).update(is_enabled=False)
    assert scrape()["ad_network_enabled", slug] == 0


def test_the_ledger_is_summed(scrape: Scrape) -> None:
    rich, other, indebted = (UserFactory.create() for _ in range(3))
    owned, more, debt = random.randint(1_000, 9_999), random.randint(1, 999), random.randint(1, 999)
    for user, amount in ((rich, owned), (other, more)):
        entries.grant(user=user, credits=amount, source=EntrySource.SURVEYS, key=secrets.token_hex(8))
    entries.adjust(user=indebted, credits=-debt, key=secrets.token_hex(8), actor=None, reason="owes")
    held = [random.randint(1, 99) for _ in range(3)]
    for amount in held:
        place_hold(user=rich, credits=amount, key=secrets.token_hex(8))
    age = random.randint(1_000, 90_000)
    CreditHold.objects.filter(pk=random.choice(CreditHold.objects.all()).pk).update(created_at=ago(age))
    holds.release(hold_id=place_hold(user=rich, credits=7, key=secrets.token_hex(8)).hold.pk)
    gauges = scrape()
    assert gauges["credit_accounts",] == 3
    assert (gauges["credits_outstanding",], gauges["credits_owed",]) == (owned + more, debt)
    assert gauges["credits_held",] == gauges["credit_holds_open_credits",] == sum(held)
    assert gauges["credit_holds_open",] == 3
    assert gauges["credit_holds_oldest_age_seconds",] == about(age)


def test_earnings_that_wait_or_were_refused_show(scrape: Scrape) -> None:
    user, network = UserFactory.create(), set_up("bitlabs", hold_hours=5)
    for _ in range(3):
        network.send(network.reward(user))
    held = list(Postback.objects.order_by("pk"))
    gauges = scrape()
    assert gauges["postbacks_held",] == 3
    assert gauges["postbacks_held_credits",] == sum(row.credits for row in held) > 0
    assert gauges["postbacks_held_overdue_seconds",] == 0
    Postback.objects.filter(pk=held[0].pk).update(available_at=ago(700))
    Postback.objects.filter(pk=held[1].pk).update(is_conflicting=True, conflicted_at=ago(60))
    Postback.objects.filter(pk=held[2].pk).update(is_conflicting=True, conflicted_at=ago(90_000))
    gauges = scrape()
    assert gauges["postbacks_held_overdue_seconds",] == about(700)
    assert gauges["postbacks_conflicting_in_last_day",] == 1
    # What a network has told that is off waits until it is on again, and is not late.
    AdNetwork.objects.update(is_enabled=False)
    gauges = scrape()
    assert (gauges["postbacks_held",], gauges["postbacks_held_overdue_seconds",]) == (3, 0)


def test_refused_earnings_of_a_day_are_counted(scrape: Scrape) -> None:
    user, network = UserFactory.create(), set_up("bitlabs", per_event_cap=1)
    for _ in range(3):
        network.send(network.reward(user, amount=str(2 + secrets.randbelow(900))))
    assert set(Postback.objects.values_list("state", "available_at")) == {("HELD", None)}
    assert (scrape()["postbacks_beyond_cap",], scrape()["postbacks_refused_in_last_day",]) == (3, 0)
    Postback.objects.update(state="REFUSED")
    newest = Postback.objects.order_by("-pk")[0]
    Postback.objects.filter(pk=newest.pk).update(received_at=ago(90_000))
    assert scrape()["postbacks_refused_in_last_day",] == 2


def stripe_event(status: str, *, age: float) -> None:
    make(
        StripeEvent,
        status=status,
        received_at=ago(age),
        processed_at=ago(1) if status == StripeEvent.Status.PROCESSED else None,
    )


def test_unapplied_events_are_counted_with_the_age_of_the_oldest(scrape: Scrape) -> None:
    failed, received = random.randint(1, 4), random.randint(1, 4)
    for count, status in ((failed, "failed"), (received, "received"), (3, "processed")):
        for place in range(count):
            stripe_event(status, age=1000 + place)
    stripe_event("failed", age=5000)
    stripe_event("processed", age=9000)
    gauges = scrape()
    assert gauges["stripe_events_waiting", "failed"] == failed + 1
    assert gauges["stripe_events_waiting", "received"] == received
    assert gauges["stripe_events_oldest_age_seconds",] == about(5000)


def test_a_change_at_stripe_that_is_not_finished_shows(scrape: Scrape) -> None:
    for status, age in (("pending", 600), ("pending", 1200), ("done", 9000), ("refused", 9000)):
        make(BillingOperation, status=status, created_at=ago(age))
    gauges = scrape()
    assert gauges["billing_operations_pending",] == 2
    assert gauges["billing_operations_oldest_age_seconds",] == about(1200)


def run_of(kind: str, *, age: float, findings: int, finished: bool = True) -> None:
    begun = ago(age)
    ReconciliationRun.objects.create(
        kind=kind,
        started_at=begun,
        finished_at=begun + timedelta(seconds=1) if finished else None,
        counts={"accounts": 5, "findings": findings} if finished else {},
    )


@pytest.mark.parametrize("kind", ["ledger", "chain", "stripe"])
def test_the_last_finished_comparison_counts(scrape: Scrape, kind: str) -> None:
    findings = random.randint(1, 2_000)
    run_of(kind, age=90_000, findings=findings + 1)
    run_of(kind, age=4_000, findings=findings)
    run_of(kind, age=60, findings=0, finished=False)
    gauges = scrape()
    assert gauges["reconciliation_findings", kind] == findings
    assert gauges["reconciliation_finished_timestamp_seconds", kind] == pytest.approx(
        ago(3_999).timestamp(), abs=30
    )
    others = {"ledger", "chain", "stripe"} - {kind}
    assert not any(("reconciliation_findings", other) in gauges for other in others)


@pytest.mark.parametrize("key", ["", "sk_test_something"])
def test_stripe_is_compared_if_it_is_configured(scrape: Scrape, settings: Settings, key: str) -> None:
    settings.STRIPE_SECRET_KEY = key
    assert (("reconciliation_scheduled", "stripe") in scrape()) == bool(key)


@pytest.mark.django_db
def test_the_treasury_reports_balance_payments_and_the_oldest_pending_transfer(scrape: Scrape) -> None:
    now, held, paid = timezone.now(), secrets.randbelow(10**18), secrets.randbelow(10**17)
    treasury = random_address()
    Treasury.objects.create(address=treasury, balance_wei=held, synced_at=now)
    relayer = RelayerFactory.create()
    assert scrape()["treasury_top_up_age_seconds",] == 0
    for nonce, sequence, status, minutes in ((0, 0, "mined", 10), (1, 0, "replaced", 20), (1, 1, "sent", 5)):
        make(
            TopUp,
            relayer=relayer,
            treasury_address=treasury,
            account_nonce=nonce,
            sequence=sequence,
            amount_wei=paid,
            status=status,
            created_at=now - timedelta(minutes=minutes),
        )
    gauges = scrape()
    assert gauges["treasury_balance_wei", treasury] == float(held)
    assert gauges["treasury_paid_in_last_day_wei",] == float(2 * paid)
    assert 1200 <= gauges["treasury_top_up_age_seconds",] < 1260


def test_the_days_unbacked_credits_are_a_fraction_of_the_ceiling(scrape: Scrape) -> None:
    ceiling, debt, of_check_ins = random.randint(100, 999), random.randint(1, 50), random.randint(1, 50)
    UnbackedCeiling.objects.create(credits=ceiling)
    UnbackedDay.objects.create(day=timezone.now().date(), debt=debt, check_ins=of_check_ins)
    gauges = scrape()
    assert gauges["credits_unbacked_today", "debt"] == debt
    assert gauges["credits_unbacked_today", "check-in"] == of_check_ins
    assert gauges["credits_unbacked_used_ratio",] == pytest.approx((debt + of_check_ins) / ceiling)
