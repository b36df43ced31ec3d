"""The sweep makes up for every message that was lost."""

import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.conf import settings
from django.db import connections
from django.utils import timezone

from gateway.chain.errors import NodeUnavailable
from gateway.chain.signing import PolicyViolation
from gateway.chain.types import SendKind
from relay.models import Attempt, Relayer, RelayTransaction
from relay.services import broadcasting
from relay.services.broadcasting import sweep
from tests.relay.chain import Chain, MeddlingClient, node_away
from tests.relay.workers import broadcast_all, later

pytestmark = pytest.mark.django_db
Accept = Callable[..., RelayTransaction]


def test_what_no_worker_was_told_of_is_sent_after_a_moment(
    accept: Accept, relayers: list[Relayer], node: MeddlingClient
) -> None:
    start = timezone.now()
    for _ in range(len(relayers)):
        accept(channel=secrets.randbits(120))
    # A worker that was told needs a moment.
    assert sweep(now=start + timedelta(seconds=2)) == 0
    assert sweep(now=later(3)) == len(relayers)
    assert sweep(now=later(3)) == 0
    assert len(node.sent) == len(relayers)


def test_what_the_nodes_dropped_is_sent_again(accept: Accept, chain: Chain) -> None:
    row, start = accept(), timezone.now()
    broadcast_all(now=start)
    chain.drop_pool()
    assert sweep(now=start + timedelta(seconds=settings.RELAY_RESEND_SECONDS)) == 0
    assert sweep(now=start + timedelta(seconds=settings.RELAY_RESEND_SECONDS + 1)) == 1
    assert chain.knows(row.transaction_hash)


def test_without_a_node_the_next_sweep_does_it(accept: Accept) -> None:
    accept()
    with pytest.raises(NodeUnavailable), node_away():
        sweep(now=later(3))
    assert sweep(now=later(3)) == 1


def test_a_call_that_cannot_be_worked_on_stops_no_other(
    accept: Accept, relayers: list[Relayer], node: MeddlingClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    Relayer.objects.exclude(pk=relayers[0].pk).update(is_active=False)
    first, second = (accept(channel=secrets.randbits(120)) for _ in range(2))
    Relayer.objects.update(is_active=True)
    elsewhere = accept(channel=secrets.randbits(120))
    refusals: list[int] = []

    def fail(*, attempt: Attempt, **_: object) -> None:
        refusals.append(attempt.relay_transaction_id)
        raise PolicyViolation("the key is gone")

    monkeypatch.setattr(broadcasting, "handle_send_error", fail)
    node.answer_next(SendKind.REFUSED, SendKind.REFUSED)
    assert sweep(now=later(3)) == 1
    assert refusals == [first.pk, second.pk]
    assert elsewhere.attempts.get().status == "sent"

    def fail_altogether(*, relayer_id: int, **_: object) -> int:
        if relayer_id == first.relayer_id:
            raise PolicyViolation("the key is gone")
        return 7

    accept(channel=secrets.randbits(120))
    Relayer.objects.filter(pk=first.relayer_id).update(is_active=False)
    accept(channel=secrets.randbits(120))
    monkeypatch.setattr(broadcasting, "broadcast", fail_altogether)
    assert sweep(now=later(3)) == 7 * len(
        set(Attempt.objects.unsent().values_list("relayer_id", flat=True)) - {first.relayer_id}
    )


@pytest.mark.django_db(transaction=True)
def test_of_two_sweeps_one_works(accept: Accept, node: MeddlingClient) -> None:
    accept()
    outcomes: list[int] = []

    def second() -> None:
        outcomes.append(sweep(now=later(3)))
        connections.close_all()

    def start_second() -> None:
        with ThreadPoolExecutor(1) as threads:
            threads.submit(second).result()

    node.meanwhile("head", start_second)
    assert sweep(now=later(3)) == 1
    assert (outcomes, len(node.sent)) == ([0], 1)
