"""Stored bytes are sent in order and as often as needed, and the sweep sends what lost tasks left unsent."""

import secrets
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.conf import settings
from django.utils import timezone

from gateway.chain.client import get_chain_client
from gateway.chain.errors import NodeUnavailable
from gateway.chain.types import SendKind
from relay.models import Attempt, Relayer, RelayTransaction
from relay.services.sending import broadcasting
from relay.services.sending.broadcasting import sweep
from signer.transactions import PolicyViolation
from tests.relay.chain import Chain, FaultyClient, node_away
from tests.relay.conftest import Accept
from tests.relay.workers import broadcast_all, later, track

pytestmark = pytest.mark.django_db


def test_accepting_sends_nothing_and_broadcasting_sends_the_stored_bytes(
    accept: Accept, node: FaultyClient, chain: Chain
) -> None:
    row = accept()
    attempt = row.attempts.get()
    assert not chain.knows(row.transaction_hash)
    assert (row.status, attempt.status, attempt.first_sent_at) == ("Pending", "signed", None)

    now = timezone.now()
    assert broadcast_all(now=now) == 1

    row.refresh_from_db()
    attempt.refresh_from_db()
    assert node.sent == [bytes(attempt.raw)]
    assert chain.knows(row.transaction_hash)
    assert (row.status, attempt.status) == ("Submitted", "sent")
    assert attempt.first_sent_at == attempt.sent_at == now
    assert broadcast_all() == 0
    assert len(node.sent) == 1


def test_a_relayers_bytes_leave_in_the_order_of_its_account_nonces(
    accept: Accept, node: FaultyClient, relayers: list[Relayer]
) -> None:
    Relayer.objects.exclude(pk=relayers[0].pk).update(is_active=False)
    channels = [secrets.randbits(120) for _ in range(3)]
    for ahead, channel in ((0, 0), (0, 1), (1, 0), (2, 0), (0, 2), (1, 1)):
        accept(channel=channels[channel], ahead=ahead)

    assert broadcast_all() == 6

    ordered = Attempt.objects.order_by("account_nonce")
    assert node.sent == [bytes(attempt.raw) for attempt in ordered]


def test_a_replacement_leaves_before_later_account_nonces_that_were_signed_first(
    accept: Accept, node: FaultyClient, relayers: list[Relayer]
) -> None:
    Relayer.objects.exclude(pk=relayers[0].pk).update(is_active=False)
    first, second = (accept(channel=secrets.randbits(120)) for _ in range(2))
    node.answer_next(SendKind.UNDERPRICED, SendKind.UNREACHABLE)
    assert broadcast_all() == 0

    assert broadcast_all() == 2

    assert node.sent == [bytes(row.attempts.latest("sequence").raw) for row in (first, second)]
    assert first.attempts.count() == 2


def test_calls_of_one_channel_leave_in_separate_batches_and_others_together(
    accept: Accept, node: FaultyClient, relayers: list[Relayer]
) -> None:
    Relayer.objects.exclude(pk=relayers[0].pk).update(is_active=False)
    for _ in range(4):
        accept(channel=secrets.randbits(120))
    broadcast_all()
    assert node.batches == [4]

    channel = secrets.randbits(120)
    for ahead in range(3):
        accept(channel=channel, ahead=ahead)
    broadcast_all()
    assert node.batches == [4, 1, 1, 1]


def test_transactions_sent_before_a_worker_crash_are_resent(
    accept: Accept, chain: Chain, settle: Callable[[], int]
) -> None:
    row = accept()
    raw = bytes(row.attempts.get().raw)
    # The worker died after sending, before the row was marked.
    get_chain_client().send_raw_transactions([raw])

    assert broadcast_all() == 1
    assert row.attempts.get().status == "sent"
    assert settle() == 1
    assert RelayTransaction.objects.get().status == "Success"


def test_transactions_sent_before_a_worker_crash_and_mined_count_as_sent(
    accept: Accept, chain: Chain
) -> None:
    row = accept()
    get_chain_client().send_raw_transactions([bytes(row.attempts.get().raw)])
    chain.mine(settings.CONFIRMATIONS)

    # The node responds that the nonce is too low; whose transaction used it is for the tracker to find out.
    assert broadcast_all() == 1
    assert row.attempts.get().status == "sent"
    assert track() == 1
    assert RelayTransaction.objects.get().status == "Success"


def test_while_the_node_is_away_the_bytes_stay(accept: Accept, settle: Callable[[], int]) -> None:
    row = accept()
    raw = bytes(row.attempts.get().raw)
    with node_away(), pytest.raises(NodeUnavailable):
        broadcast_all()
    row.refresh_from_db()
    assert (row.status, row.attempts.get().status, bytes(row.attempts.get().raw)) == (
        "Pending",
        "signed",
        raw,
    )
    assert settle() == 1


def test_a_node_outage_while_sending_leaves_the_rest_for_later(
    accept: Accept, node: FaultyClient, relayers: list[Relayer]
) -> None:
    Relayer.objects.exclude(pk=relayers[0].pk).update(is_active=False)
    first, second = (accept(channel=secrets.randbits(120)) for _ in range(2))
    node.answer_next(SendKind.ACCEPTED, SendKind.UNREACHABLE)

    assert broadcast_all() == 1

    assert first.attempts.get().status == "sent"
    assert (second.attempts.get().status, second.attempts.get().node_message) == (
        "signed",
        "as prepared",
    )
    assert broadcast_all() == 1
    assert node.sent == [bytes(second.attempts.get().raw)]


def test_two_workers_do_no_harm_to_each_other(
    accept: Accept, node: FaultyClient, settle: Callable[[], int]
) -> None:
    row = accept()
    node.meanwhile("send_raw_transactions", broadcast_all)
    assert broadcast_all() == 1
    assert node.sent == [bytes(row.attempts.get().raw)] * 2
    assert settle() == 1
    assert RelayTransaction.objects.get().status == "Success"


def test_transactions_sent_long_ago_are_resent(accept: Accept, chain: Chain, node: FaultyClient) -> None:
    row = accept()
    broadcast_all()
    chain.drop_pool()
    assert broadcasting.resend(now=timezone.now()) == 0

    again = later(settings.RELAY_RESEND_SECONDS + 1)
    assert broadcasting.resend(now=again) == 1

    attempt = row.attempts.get()
    assert chain.knows(row.transaction_hash)
    assert node.sent == [bytes(attempt.raw)] * 2
    assert attempt.sent_at == again
    assert attempt.first_sent_at is not None
    assert attempt.first_sent_at < again


def test_mined_and_settled_transactions_are_not_resent(
    accept: Accept, chain: Chain, node: FaultyClient
) -> None:
    accept()
    broadcast_all()
    chain.mine()
    track()
    assert broadcasting.resend(now=later(10**6)) == 0
    chain.mine(settings.CONFIRMATIONS)
    assert track() == 1
    assert broadcasting.resend(now=later(10**6)) == broadcast_all() == 0
    assert len(node.sent) == 1


def test_transactions_refused_for_now_are_resent_with_exponential_backoff(
    accept: Accept, node: FaultyClient
) -> None:
    channel = secrets.randbits(120)
    rows = [accept(channel=channel, ahead=ahead) for ahead in range(2)]
    start = timezone.now()
    sent_after = []
    for half in range(60):
        seconds, seen = half / 2, len(node.batches)
        node.answer_next(*[SendKind.LATER] * (1 - node.prepared))
        broadcasting.broadcast(now=start + timedelta(seconds=seconds))
        if len(node.batches) > seen:
            sent_after.append(seconds)

    assert sent_after == [0, 1, 3, 7, 15, 23]
    assert node.batches == [1] * 6
    assert all(row.attempts.get().status == "signed" for row in rows)
    # One refusal is left.
    assert broadcasting.broadcast(now=start + timedelta(seconds=31)) == 0
    assert broadcasting.broadcast(now=start + timedelta(seconds=39)) == 2


def test_a_refused_resend_is_backed_off_too(accept: Accept, node: FaultyClient) -> None:
    accept()
    broadcast_all()
    overdue = later(settings.RELAY_RESEND_SECONDS + 1)
    node.answer_next(SendKind.LATER)
    broadcasting.resend(now=overdue)
    assert len(node.batches) == 2

    assert broadcasting.resend(now=overdue + timedelta(seconds=0.9)) == 0
    assert len(node.batches) == 2
    assert broadcasting.resend(now=overdue + timedelta(seconds=1)) == 1


def test_after_an_attempt_without_response_other_relayers_continue(
    accept: Accept, node: FaultyClient, relayers: list[Relayer]
) -> None:
    rows: dict[int, list[RelayTransaction]] = {}
    for relayer in relayers[:2]:
        Relayer.objects.update(is_active=False)
        Relayer.objects.filter(pk=relayer.pk).update(is_active=True)
        channel = secrets.randbits(120)
        rows[relayer.pk] = [accept(channel=channel, ahead=ahead) for ahead in range(2)]
    first, second = sorted(rows)
    node.answer_next(SendKind.UNREACHABLE)

    assert broadcasting.broadcast(now=timezone.now()) == 2

    # The first calls of both left together; behind the one that stayed, the second of its relayer stayed too.
    assert node.batches == [2, 1]
    assert node.sent == [bytes(row.attempts.get().raw) for row in rows[second]]
    assert broadcasting.broadcast(now=timezone.now()) == 2
    assert node.sent[2:] == [bytes(row.attempts.get().raw) for row in rows[first]]


def test_the_sweep_sends_pending_transactions_of_any_relayer(
    accept: Accept, relayers: list[Relayer], node: FaultyClient
) -> None:
    for _ in range(len(relayers)):
        accept(channel=secrets.randbits(120))
    assert sweep(now=timezone.now()) == len(relayers)
    assert sweep(now=later(3)) == 0
    assert len(node.sent) == len(relayers)


def test_the_sweep_resends_transactions_dropped_by_the_nodes(accept: Accept, chain: Chain) -> None:
    row, start = accept(), timezone.now()
    broadcast_all(now=start)
    chain.drop_pool()
    assert sweep(now=start + timedelta(seconds=settings.RELAY_RESEND_SECONDS)) == 0
    assert sweep(now=start + timedelta(seconds=settings.RELAY_RESEND_SECONDS + 1)) == 1
    assert chain.knows(row.transaction_hash)


def test_a_call_that_raises_an_error_does_not_stop_the_sweep(
    accept: Accept, relayers: list[Relayer], node: FaultyClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    Relayer.objects.exclude(pk=relayers[0].pk).update(is_active=False)
    first, second = (accept(channel=secrets.randbits(120)) for _ in range(2))
    Relayer.objects.update(is_active=True)
    elsewhere = accept(channel=secrets.randbits(120))
    refusals: list[int] = []

    def fail(*, attempt: Attempt, **_: object) -> None:
        refusals.append(attempt.relay_transaction_id)
        raise PolicyViolation("no key")

    monkeypatch.setattr(broadcasting, "handle_send_error", fail)
    node.answer_next(SendKind.REFUSED, SendKind.REFUSED)
    assert sweep(now=later(3)) == 1
    assert refusals == [first.pk, second.pk]
    assert elsewhere.attempts.get().status == "sent"

    def fail_altogether(*, relayer_id: int, **_: object) -> int:
        if relayer_id == first.relayer_id:
            raise PolicyViolation("no key")
        return 7

    accept(channel=secrets.randbits(120))
    Relayer.objects.filter(pk=first.relayer_id).update(is_active=False)
    accept(channel=secrets.randbits(120))
    monkeypatch.setattr(broadcasting, "broadcast", fail_altogether)
    assert sweep(now=later(3)) == 7 * len(
        set(Attempt.objects.unsent().values_list("relayer_id", flat=True)) - {first.relayer_id}
    )
