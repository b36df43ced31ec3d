"""The sweep makes up for every message that was lost."""

import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.conf import settings
from django.db import connections
from django.utils import timezone

from gateway.chain.errors import NodeUnavailable
from relay.models import Relayer, RelayTransaction
from relay.services.sweeping import sweep
from tests.relay.chain import Chain, MeddlingClient, node_away
from tests.relay.workers import broadcast_all, later

pytestmark = pytest.mark.django_db
Accept = Callable[..., RelayTransaction]


def test_what_no_worker_was_told_of_is_sent_after_a_moment(
    accept: Accept, relayers: list[Relayer], node: MeddlingClient
) -> None:
    for _ in range(len(relayers)):
        accept(channel=secrets.randbits(120))
    # A worker that was told needs a moment.
    assert sweep(now=timezone.now()) == 0
    assert sweep(now=later(3)) == len(relayers)
    assert sweep(now=later(3)) == 0
    assert len(node.sent) == len(relayers)


def test_what_the_nodes_dropped_is_sent_again(accept: Accept, chain: Chain) -> None:
    row = accept()
    broadcast_all()
    chain.drop_pool()
    assert sweep(now=later(settings.RELAY_RESEND_SECONDS - 5)) == 0
    assert sweep(now=later(settings.RELAY_RESEND_SECONDS + 5)) == 1
    assert chain.knows(row.transaction_hash)


def test_without_a_node_the_next_sweep_does_it(accept: Accept) -> None:
    accept()
    with pytest.raises(NodeUnavailable), node_away():
        sweep(now=later(3))
    assert sweep(now=later(3)) == 1


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
