"""The tracker brings rows up to date with the chain in few requests, and repeats what it could not finish."""

import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from django.conf import settings
from django.db import connections
from django.utils import timezone

from credits.models import CreditEntry, HoldStatus
from credits.queries import balance_of
from credits.services import holds
from credits.services.reconciliation import find_differences
from gateway.chain.errors import NodeUnavailable
from gateway.chain.fees import Fees
from gateway.chain.types import ChainView
from relay.models import Attempt, Relayer, RelayTransaction
from relay.services.fleet import relayers as relay_relayers
from relay.services.sending import replacement
from signer.transactions import PolicyViolation
from tests.relay.chain import GWEI, Chain, FaultyClient, node_away
from tests.relay.conftest import LYX, Accept
from tests.relay.rows import everything
from tests.relay.services.test_relayer_sync import keys
from tests.relay.workers import broadcast_all, later, track
from users.models import User

pytestmark = pytest.mark.django_db


def test_the_first_block_of_an_attempt_is_stored(accept: Accept, chain: Chain) -> None:
    row = accept()
    broadcast_all()
    assert track() == 0
    assert row.attempts.get().block_number is None

    chain.mine()
    track()

    receipt, attempt = chain.receipt(row.transaction_hash), row.attempts.get()
    assert receipt is not None
    assert (attempt.status, attempt.succeeded, attempt.block_hash) == ("mined", True, receipt["blockHash"])
    assert attempt.block_number == int(receipt["blockNumber"], 16)
    assert attempt.gas_used == int(receipt["gasUsed"], 16)
    assert attempt.effective_gas_price_wei == int(receipt["effectiveGasPrice"], 16)


def test_relayers_are_kept_in_sync_with_the_chain(accept: Accept, chain: Chain) -> None:
    relayer = accept().relayer
    relayer.refresh_from_db()
    assert relayer.in_flight == 1
    broadcast_all()
    chain.mine()
    chain.fund(7 * LYX, relayer.address)
    now = timezone.now()
    track(now=now)
    relayer.refresh_from_db()
    assert (relayer.in_flight, relayer.mined_account_nonce) == (0, chain.account_nonce(relayer.address))
    assert (relayer.balance_wei, relayer.synced_at) == (7 * LYX, now)


def test_without_a_node_nothing_changes_and_the_next_run_settles(accept: Accept, chain: Chain) -> None:
    accept()
    broadcast_all()
    chain.mine(settings.CONFIRMATIONS)
    before = everything()
    with pytest.raises(NodeUnavailable), node_away():
        track()
    assert everything() == before
    assert track() == 1


def test_requests_to_the_node_do_not_grow_with_the_work(
    accept: Accept, chain: Chain, node: FaultyClient
) -> None:
    for _ in range(6):
        accept(channel=secrets.randbits(120))
    broadcast_all()
    chain.mine(settings.CONFIRMATIONS)
    before = node.requests
    assert track() == 6
    # Head and receipts, then accounts.
    assert node.requests - before == 2


def test_an_account_nonce_that_another_transaction_used_is_lost(
    user: User, accept: Accept, relayers: list[Relayer], chain: Chain, settle: Callable[[], int]
) -> None:
    before, one = balance_of(user), relayers[0]
    Relayer.objects.exclude(pk=one.pk).update(is_active=False)
    lost, next_one = accept(channel=secrets.randbits(120)), accept(channel=secrets.randbits(120))
    chain.use_key_elsewhere(keys()[0], account_nonce=one.next_account_nonce)
    chain.mine()
    broadcast_all()
    # Used up, and not confirmed yet.
    assert track() == 0
    lost.refresh_from_db()
    assert (lost.status, lost.hold.status) == ("Submitted", HoldStatus.HELD)

    chain.mine(settings.CONFIRMATIONS)
    # Confirmed, but not final, and no block of ours could be watched: only the one with a receipt is settled.
    assert track() == 1
    lost.refresh_from_db()
    assert lost.status == "Submitted"

    chain.mine(settings.FINALITY_BLOCKS)
    assert track() == 1

    lost.refresh_from_db()
    next_one.refresh_from_db()
    assert (lost.status, lost.failure_code) == ("Cancelled", "account-nonce-lost")
    lost.hold.refresh_from_db()
    assert lost.hold.status == HoldStatus.RELEASED
    assert next_one.status == "Success"
    assert balance_of(user).balance == before.balance - next_one.real_cost
    assert find_differences() == []


def test_a_relayer_whose_account_nonce_was_used_elsewhere_under_a_call_is_quarantined_once(
    accept: Accept, relayers: list[Relayer], chain: Chain, caplog: pytest.LogCaptureFixture
) -> None:
    one, *others = relayers
    Relayer.objects.exclude(pk=one.pk).update(is_active=False)
    lost = accept()
    chain.use_key_elsewhere(keys()[0], account_nonce=one.next_account_nonce)
    chain.mine(settings.CONFIRMATIONS + 5)
    track()
    one.refresh_from_db()
    assert (one.is_active, one.quarantined_at) == (True, None)

    chain.mine(20)
    track()
    one.refresh_from_db()
    assert (one.is_active, one.state) == (False, "quarantined")
    track()
    (logged,) = [record.getMessage() for record in caplog.records if "quarantined" in record.getMessage()]
    nonce = lost.attempts.get().account_nonce
    assert one.address in logged
    assert f"account nonce {nonce} was used by a transaction that is not ours" in logged

    # Staff have found the reason; the call is not settled yet.
    assert relay_relayers.set_active(relayer_id=one.pk, is_active=True)
    chain.mine()
    track()
    one.refresh_from_db()
    lost.refresh_from_db()
    assert (one.state, lost.is_in_progress) == ("active", True)
    chain.mine(settings.FINALITY_BLOCKS)
    assert track() == 1
    assert not Relayer.objects.filter(pk__in=[other.pk for other in others], quarantined_at__isnull=False)


def test_a_node_that_lags_does_not_make_an_account_nonce_lost(
    accept: Accept,
    relayers: list[Relayer],
    chain: Chain,
    node: FaultyClient,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Relayer.objects.exclude(pk=relayers[0].pk).update(is_active=False)
    lost = accept(channel=secrets.randbits(120))
    chain.use_key_elsewhere(keys()[0], account_nonce=relayers[0].next_account_nonce)
    chain.mine(settings.FINALITY_BLOCKS + 2)
    broadcast_all()
    read_chain = node.read_chain
    lag = [0, 0, 1]

    def lagging(**arguments: Any) -> ChainView:
        view = read_chain(**arguments)
        return replace(view, head=replace(view.head, number=view.head.number - lag.pop(0)))

    with monkeypatch.context() as patched:
        patched.setattr(node, "read_chain", lagging)
        assert track() == 0
    assert track() == 1
    lost.refresh_from_db()
    assert lost.failure_code == "account-nonce-lost"


def test_a_call_that_cannot_be_settled_or_replaced_stops_no_other(
    accept: Accept, chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good, other = (accept(channel=secrets.randbits(120)) for _ in range(3))
    broadcast_all()
    replaced = []

    def fail(*, attempt_id: int, **_: object) -> bool:
        replaced.append(Attempt.objects.get(pk=attempt_id).relay_transaction_id)
        raise PolicyViolation("no key")

    monkeypatch.setattr(replacement, "replace", fail)
    Attempt.objects.update(max_fee_per_gas_wei=1)
    track(now=later(settings.RELAY_REPLACE_SECONDS + 5))
    assert sorted(replaced) == [bad.pk, good.pk, other.pk]

    # A row was changed by hand: its charge can never be made. The three are confirmed in one block.
    assert holds.release(hold_id=bad.hold_id)
    chain.mine(settings.CONFIRMATIONS)
    assert track() == 2
    assert track() == 0
    statuses = RelayTransaction.objects.order_by("pk").values_list("status", flat=True)
    assert list(statuses) == ["Submitted", "Success", "Success"]
    assert CreditEntry.objects.filter(source="RELAY_TRANSACTION").count() == 2


def test_a_key_that_was_used_elsewhere_moves_the_next_account_nonce(
    accept: Accept, relayers: list[Relayer], chain: Chain, settle: Callable[[], int]
) -> None:
    one = relayers[0]
    Relayer.objects.exclude(pk=one.pk).update(is_active=False)
    for ahead in range(3):
        chain.use_key_elsewhere(keys()[0], account_nonce=one.next_account_nonce + ahead)
    chain.mine()
    track()
    assert relay_relayers.set_active(relayer_id=one.pk, is_active=True)
    row = accept()
    assert row.attempts.get().account_nonce == one.next_account_nonce + 3
    assert settle() == 1
    row.refresh_from_db()
    assert row.status == "Success"


@pytest.mark.parametrize("deeper", [0, 30], ids=["just confirmed", "deep enough to count as lost"])
def test_a_replacement_that_is_mined_during_the_run_is_not_lost(
    user: User, accept: Accept, chain: Chain, node: FaultyClient, deeper: int
) -> None:
    row = accept()
    broadcast_all()

    def another_worker_replaces_it() -> None:
        old = row.attempts.get()
        assert replacement.replace(
            attempt_id=old.pk, fees=Fees(9 * GWEI, 2 * GWEI, 9 * GWEI), now=timezone.now()
        )
        broadcast_all()
        chain.mine(settings.CONFIRMATIONS + deeper)

    node.meanwhile("read_chain", another_worker_replaces_it)
    track()
    track()

    row.refresh_from_db()
    assert (row.status, row.transaction_hash) == ("Success", row.attempts.get(sequence=1).transaction_hash)
    assert row.real_cost > 0
    assert balance_of(user).held == 0


@pytest.mark.django_db(transaction=True)
def test_of_two_concurrent_trackers_one_settles(accept: Accept, chain: Chain, node: FaultyClient) -> None:
    accept()
    broadcast_all()
    chain.mine(settings.CONFIRMATIONS)
    outcomes: list[int] = []

    def second() -> None:
        outcomes.append(track())
        connections.close_all()

    def start_second() -> None:
        with ThreadPoolExecutor(1) as threads:
            threads.submit(second).result()

    node.meanwhile("read_chain", start_second)
    assert track() == 0
    assert outcomes == [1]
    assert RelayTransaction.objects.get().status == "Success"
    assert CreditEntry.objects.filter(source="RELAY_TRANSACTION").count() == 1
    assert find_differences() == []
