"""What the chain has confirmed becomes credits, once."""

import secrets
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.utils import timezone
from eth_abi.abi import encode
from eth_utils.crypto import keccak
from pytest_django import Settings

from credits.models import CreditEntry, EntrySource, HoldStatus
from credits.queries import balance_of
from credits.services import entries
from credits.services.reconciliation import find_differences
from devstack.services.stack import Services
from devstack.world.deployer import Call
from devstack.world.test_contracts import Flaky
from gateway.chain.client import get_chain_client
from gateway.chain.errors import NodeUnavailable
from gateway.chain.lsp25 import RelayCall
from gateway.chain.types import Receipt
from relay.models import Attempt, RelayTransaction
from relay.services.settling import settlement
from relay.services.settling.settlement import Confirmed
from rewards.models import Badge, BadgeTrack
from tests.credits.causes import causeless
from tests.relay.callers import execute, report_of
from tests.relay.chain import Chain, FaultyClient
from tests.relay.conftest import Accept
from tests.relay.signing import execute_payload, set_data_payload
from tests.relay.workers import broadcast_all, track
from tests.rewards.rows import experience_of
from tests.threads import at_once
from users.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture
def flaky(services: Services, chain: Chain) -> Flaky:
    """A target that succeeds until it is flipped."""
    return services.world.deploy_flaky()


def cost_on_chain(chain: Chain, transaction_hash: str) -> int:
    """Return the transaction's burned fees on the chain, in credits."""
    receipt = chain.receipt(transaction_hash)
    assert receipt is not None
    wei = int(receipt["gasUsed"], 16) * int(receipt["effectiveGasPrice"], 16)
    return -(-wei // django_settings.CREDIT_WEI)


@pytest.mark.parametrize("confirmations", [1, 4])
def test_nothing_is_settled_before_the_confirmations(
    user: User, accept: Accept, chain: Chain, settings: Settings, confirmations: int
) -> None:
    settings.CONFIRMATIONS = confirmations
    row = accept()
    broadcast_all()
    for _ in range(confirmations - 1):
        chain.mine()
        assert track() == 0
        row.refresh_from_db()
        assert (row.status, balance_of(user).held) == ("Submitted", row.hold.amount)
    chain.mine()
    assert track() == 1
    row.refresh_from_db()
    assert (row.status, balance_of(user).held) == ("Success", 0)
    assert track() == 0


def test_a_revert_after_a_successful_simulation_costs_only_its_burned_gas(
    user: User, accept: Accept, chain: Chain, flaky: Flaky, settle: Callable[[], int]
) -> None:
    before = balance_of(user)
    row = accept(payload=execute_payload(flaky.address))
    flaky.flip()

    assert settle() == 1

    row.refresh_from_db()
    row.hold.refresh_from_db()
    cost = cost_on_chain(chain, row.transaction_hash)
    assert (row.status, row.failure_code, row.real_cost) == ("Failed", "target-reverted", cost)
    assert row.hold.status == HoldStatus.CAPTURED
    assert 0 < cost < row.hold.amount
    assert balance_of(user) == (before.balance - cost, 0, before.balance - cost)
    assert find_differences() == []


def test_a_repeat_after_a_failure_is_a_new_generation(
    user: User,
    accept: Accept,
    new_call: Callable[..., RelayCall],
    chain: Chain,
    flaky: Flaky,
    settle: Callable[[], int],
) -> None:
    call = new_call(payload=execute_payload(flaky.address))
    failed = accept(call)
    flaky.flip()
    settle()
    flaky.flip()

    again = accept(call)
    assert (again.digest, again.generation) == (failed.digest, 1)
    assert again.hold_id != failed.hold_id
    assert (
        execute(user=user, call=call, now=timezone.now()) == again.transaction_hash != failed.transaction_hash
    )
    assert settle() == 1

    costs = [cost_on_chain(chain, row.transaction_hash) for row in (failed, again)]
    assert flaky.successes == 1
    assert list(RelayTransaction.objects.order_by("pk").values_list("status", flat=True)) == [
        "Failed",
        "Success",
    ]
    charged = CreditEntry.objects.filter(source="RELAY_TRANSACTION").order_by("pk")
    assert [-entry.amount for entry in charged] == costs
    for row, status in ((failed, "Failed"), (again, "Success")):
        report = report_of(user=user, transaction_hash=row.transaction_hash)
        assert report.status == status


def test_a_call_executed_first_by_another_sender_costs_burned_gas(
    user: User, accept: Accept, new_call: Callable[..., RelayCall], chain: Chain, settle: Callable[[], int]
) -> None:
    before, call = balance_of(user), new_call()
    row = accept(call)
    chain.execute_externally(call)
    assert settle() == 1

    row.refresh_from_db()
    cost = cost_on_chain(chain, row.transaction_hash)
    assert (row.status, row.failure_code, row.real_cost) == (
        "ExecutedExternally",
        "executed-externally",
        cost,
    )
    assert balance_of(user).balance == before.balance - cost
    # It occupies its nonce: the call was executed.
    assert execute(user=user, call=call, now=timezone.now()) == row.transaction_hash


def test_a_call_that_a_third_party_wraps_in_a_batch_is_recognised(
    services: Services,
    accept: Accept,
    new_call: Callable[..., RelayCall],
    settle: Callable[[], int],
) -> None:
    call = new_call(channel=secrets.randbits(120))
    row = accept(call)
    batch = keccak(text="executeRelayCallBatch(bytes[],uint256[],uint256[],uint256[],bytes[])")[:4] + encode(
        ["bytes[]", "uint256[]", "uint256[]", "uint256[]", "bytes[]"],
        [[call.signature], [call.relay_nonce], [call.validity], [0], [call.payload]],
    )
    services.world.deployer.send([Call(call.key_manager, batch, gas=1_000_000)])
    assert settle() == 1
    row.refresh_from_db()
    assert (row.status, row.failure_code) == ("ExecutedExternally", "executed-externally")


def test_another_call_that_used_the_nonce_elsewhere_fails_ours(
    accept: Accept,
    new_call: Callable[..., RelayCall],
    chain: Chain,
    settle: Callable[[], int],
) -> None:
    rival = new_call(payload=set_data_payload())
    row = accept()
    chain.execute_externally(rival)
    assert settle() == 1
    row.refresh_from_db()
    assert (row.status, row.failure_code) == ("Failed", "relay-nonce-used")
    assert row.real_cost == cost_on_chain(chain, row.transaction_hash) > 0
    assert row.hold.status == HoldStatus.CAPTURED


def test_a_revert_that_cannot_be_explained_yet_waits(
    user: User, accept: Accept, node: FaultyClient, flaky: Flaky, settle: Callable[[], int]
) -> None:
    row = accept(payload=execute_payload(flaky.address))
    other = accept(channel=secrets.randbits(120))
    flaky.flip()

    def go_away() -> None:
        raise NodeUnavailable("away", retry_after=1)

    node.meanwhile("read_relay_nonce", go_away)
    # The others are settled meanwhile.
    assert settle() == 1
    row.refresh_from_db()
    other.refresh_from_db()
    assert (row.status, row.terminal_status, other.status) == ("Submitted", "Failed", "Success")
    assert balance_of(user).held == row.hold.amount

    assert track() == 1
    row.refresh_from_db()
    assert (row.status, row.terminal_status) == ("Failed", "")


def test_an_unresponsive_key_manager_delays_no_other_settlement(
    user: User,
    accept: Accept,
    node: FaultyClient,
    flaky: Flaky,
    settle: Callable[[], int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = accept(payload=execute_payload(flaky.address))
    flaky.flip()
    monkeypatch.setattr(node, "read_relay_nonce", lambda **_: None)
    assert settle() == 1
    row.refresh_from_db()
    assert (row.status, row.failure_code) == ("Failed", "target-reverted")
    assert balance_of(user).held == 0


def test_an_unexplained_revert_is_settled_as_failed_after_a_while(
    user: User,
    accept: Accept,
    chain: Chain,
    node: FaultyClient,
    flaky: Flaky,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = accept(payload=execute_payload(flaky.address))
    flaky.flip()
    # A call of a third party moved the nonce, and the key manager's logs are more than the node returns.
    monkeypatch.setattr(node, "read_relay_nonce", lambda **_: row.relay_nonce + 1)

    def too_many(**_: Any) -> list[Any]:
        raise NodeUnavailable("query returned more than 10000 results")

    monkeypatch.setattr(node, "read_external_executions", too_many)
    broadcast_all()
    chain.mine(django_settings.CONFIRMATIONS)
    start, patience = timezone.now(), 50 * django_settings.CHAIN_BLOCK_SECONDS
    for seconds in (0, 1, patience - 1):
        assert track(now=start + timedelta(seconds=seconds)) == 0
        assert balance_of(user).held > 0
    assert track(now=start + timedelta(seconds=patience + 1)) == 1
    row.refresh_from_db()
    cost = cost_on_chain(chain, row.transaction_hash)
    assert (row.status, row.failure_code, row.real_cost) == ("Failed", "reverted", cost)
    assert (balance_of(user).held, balance_of(user).balance) == (0, 10_000 - cost)
    assert find_differences() == []


def test_a_call_that_would_now_succeed_is_reported_as_such(
    accept: Accept, flaky: Flaky, chain: Chain
) -> None:
    row = accept(payload=execute_payload(flaky.address))
    flaky.flip()
    broadcast_all()
    chain.mine()
    flaky.flip()
    chain.mine(django_settings.CONFIRMATIONS)
    assert track() == 1
    row.refresh_from_db()
    assert (row.status, row.failure_code) == ("Failed", "reverted")


@pytest.mark.django_db(transaction=True)
def test_concurrent_settlement_charges_once(user: User, accept: Accept, chain: Chain) -> None:
    row = accept()
    broadcast_all()
    chain.mine(django_settings.CONFIRMATIONS)
    attempt = Attempt.objects.select_related("relay_transaction__relayer").get()
    receipt = receipt_of(attempt)

    outcomes = at_once(
        [partial(settlement.settle, confirmed=[confirmed_by(attempt, receipt)], now=timezone.now())] * 8
        + [
            partial(
                settlement.settle_lost,
                relay_transaction_ids=[row.pk],
                now=timezone.now(),
            )
        ]
        * 4
    )

    assert sorted(map(str, outcomes)) == ["0"] * 11 + ["1"]
    assert CreditEntry.objects.filter(source="RELAY_TRANSACTION").count() <= 1
    assert balance_of(user).held == 0
    assert find_differences() == []


def confirmed_by(attempt: Attempt, receipt: Receipt) -> Confirmed:
    """Return what the tracker hands over to be settled."""
    price_wei = attempt.relay_transaction.credit_wei
    return Confirmed(attempt.pk, attempt.relay_transaction_id, attempt.kind, price_wei, receipt)


def receipt_of(attempt: Attempt) -> Receipt:
    """Ask the chain for the attempt's receipt."""
    view = get_chain_client().read_chain(
        transaction_hashes=[attempt.transaction_hash], accounts=[], confirmations=1
    )
    return view.receipts[attempt.transaction_hash]


def test_a_settled_call_earns_experience_and_a_part_of_its_cost_back(
    user: User, accept: Accept, chain: Chain, settle: Callable[[], int]
) -> None:
    Badge.objects.filter(track=BadgeTrack.PERMANENT).update(credits_back_percent=Decimal("0.1"))
    before = balance_of(user).balance
    row = accept()
    assert settle() == 1
    cost = cost_on_chain(chain, row.transaction_hash)
    back = CreditEntry.objects.get(account__user=user, source=EntrySource.CREDITS_BACK)
    assert back.amount == cost // 10
    assert balance_of(user).balance == before - cost + cost // 10
    assert experience_of(user)[0] == cost
    report = report_of(user=user, transaction_hash=row.transaction_hash)
    assert report.credits_used == cost


def test_a_cancelled_call_earns_nothing(user: User, accept: Accept, settle: Callable[[], int]) -> None:
    Badge.objects.filter(track=BadgeTrack.PERMANENT).update(credits_back_percent=Decimal("0.1"))
    row = accept()
    settlement.settle_lost(relay_transaction_ids=[row.pk], now=timezone.now())
    assert not CreditEntry.objects.filter(source=EntrySource.CREDITS_BACK).exists()
    assert experience_of(user)[0] == 0


def test_calls_that_cannot_be_settled_together_are_settled_one_by_one(
    user: User, accept: Accept, chain: Chain, caplog: pytest.LogCaptureFixture
) -> None:
    Badge.objects.filter(track=BadgeTrack.PERMANENT).update(credits_back_percent=Decimal("0.5"))
    rows = [accept(channel=secrets.randbits(120)) for _ in range(4)]
    # The key under which the third one's share would come back is taken: a statement for all of them fails.
    taken = f"back:hold:{rows[2].hold_id}"
    entries.grant(user=user, credits=1, source=EntrySource.CREDITS_BACK, key=taken)
    broadcast_all()
    chain.mine(django_settings.CONFIRMATIONS)

    assert track() == 3

    assert "4 calls together" in caplog.text
    statuses = RelayTransaction.objects.order_by("pk").values_list("status", flat=True)
    assert list(statuses) == ["Success", "Success", "Submitted", "Success"]
    charges = CreditEntry.objects.filter(source=EntrySource.RELAY_TRANSACTION)
    assert charges.count() == CreditEntry.objects.filter(source=EntrySource.CREDITS_BACK).count() - 1 == 3
    assert rows[2].hold.status == HoldStatus.HELD
    assert balance_of(user).held == rows[2].hold.amount
    assert find_differences() == []
    assert [finding["ids"]["key"] for finding in causeless(EntrySource.CREDITS_BACK)] == [taken]


@pytest.mark.django_db(transaction=True)
def test_calls_settled_by_concurrent_workers_are_charged_once_each(
    user: User, accept: Accept, chain: Chain
) -> None:
    for _ in range(6):
        accept(channel=secrets.randbits(120))
    broadcast_all()
    chain.mine(django_settings.CONFIRMATIONS)
    attempts = Attempt.objects.select_related("relay_transaction__relayer")
    confirmed = [confirmed_by(attempt, receipt_of(attempt)) for attempt in attempts]
    orders = [secrets.SystemRandom().sample(confirmed, len(confirmed)) for _ in range(6)]

    outcomes = at_once([partial(settlement.settle, confirmed=order, now=timezone.now()) for order in orders])

    assert sorted(map(str, outcomes)) == ["0"] * 5 + ["6"]
    assert CreditEntry.objects.filter(source=EntrySource.RELAY_TRANSACTION).count() == 6
    assert balance_of(user).held == 0
    assert find_differences() == []
