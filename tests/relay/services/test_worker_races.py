"""Two workers with the same attempt in hand: the slower one must not undo what the faster one did."""

from collections.abc import Callable
from functools import partial

import pytest
from django.utils import timezone

from relay.models import RelayTransaction
from tests.relay.chain import GWEI, Chain, MeddlingClient
from tests.relay.signing import window
from tests.relay.workers import broadcast_all, later

pytestmark = pytest.mark.django_db
Accept = Callable[..., RelayTransaction]


def test_an_expired_call_is_not_sent_by_the_slower_worker(accept: Accept, node: MeddlingClient) -> None:
    row = accept(validity=window(0, int(timezone.now().timestamp()) + 100))
    faster = partial(broadcast_all, now=later(101))
    node.meanwhile("head", faster)

    broadcast_all(now=later(101))

    assert bytes(row.attempts.get(kind="call").raw) not in node.sent
    assert row.attempts.filter(kind="cancellation").count() == 1


def test_a_call_that_was_replaced_meanwhile_is_not_cancelled(
    accept: Accept, node: MeddlingClient, chain: Chain, settle: Callable[[], int]
) -> None:
    row = accept()
    chain.set_base_fee(row.attempts.get().max_fee_per_gas_wei + GWEI)
    node.meanwhile("send_raw_transactions", broadcast_all)

    broadcast_all()

    row.refresh_from_db()
    assert row.terminal_status == ""
    assert [attempt.kind for attempt in row.attempts.all()] == ["call", "call"]
    assert settle() == 1
    row.refresh_from_db()
    assert row.status == "Success"
