"""Staff cancel what was signed and never broadcast; what was broadcast is the chain's."""

import secrets
from collections.abc import Callable

import pytest
from django.utils import timezone

from gateway.chain.errors import NodeUnavailable
from relay.errors import AlreadyBroadcast
from relay.models import Attempt, RelayTransaction
from relay.services import cancellation
from tests.relay.chain import Chain, MeddlingClient, node_away
from tests.relay.rows import everything
from tests.relay.workers import broadcast_all

pytestmark = pytest.mark.django_db
Accept = Callable[..., RelayTransaction]


def refuse(row: RelayTransaction) -> None:
    """It is refused by what the rows say, before any node is asked."""
    before = everything()
    with node_away(), pytest.raises(AlreadyBroadcast):
        cancellation.cancel_unsent(relay_transaction_id=row.pk, now=timezone.now())
    assert everything() == before


def test_what_was_broadcast_settled_or_cancelled_before_is_refused(
    accept: Accept, settle: Callable[[], int], chain: Chain
) -> None:
    sent = accept()
    broadcast_all()
    refuse(sent)
    settle()
    refuse(sent)
    cancelled = accept()
    cancellation.cancel_unsent(relay_transaction_id=cancelled.pk, now=timezone.now())
    refuse(cancelled)


def test_what_is_sent_between_the_look_and_the_lock_is_left_to_the_chain(
    accept: Accept, node: MeddlingClient
) -> None:
    row = accept()
    node.meanwhile("head", broadcast_all)
    with pytest.raises(AlreadyBroadcast):
        cancellation.cancel_unsent(relay_transaction_id=row.pk, now=timezone.now())
    row.refresh_from_db()
    attempt = row.attempts.get()
    assert (row.terminal_status, attempt.kind, attempt.status) == ("", "call", "sent")
    assert node.sent == [bytes(attempt.raw)]


def test_followers_fall_with_the_cancelled_call(accept: Accept, settle: Callable[[], int]) -> None:
    channel = secrets.randbits(120)
    first, follower = (accept(channel=channel, ahead=ahead) for ahead in (0, 1))
    cancellation.cancel_unsent(relay_transaction_id=first.pk, now=timezone.now())
    broadcast_all()
    assert settle() == 2
    ends = RelayTransaction.objects.order_by("pk").values_list("pk", "status", "failure_code")
    assert list(ends) == [
        (first.pk, "Cancelled", "cancelled-by-staff"),
        (follower.pk, "Cancelled", "predecessor-failed"),
    ]
    assert not Attempt.objects.filter(kind="call", status="mined").exists()


def test_without_a_node_nothing_is_decided(accept: Accept) -> None:
    row = accept()
    before = everything()
    with node_away(), pytest.raises(NodeUnavailable):
        cancellation.cancel_unsent(relay_transaction_id=row.pk, now=timezone.now())
    assert everything() == before
