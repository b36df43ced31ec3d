"""A message is sent after the commit, and a lost one fails no request."""

import secrets
from queue import Empty

import pytest
from django.db import transaction
from kombu import Connection

from gateway.common.errors import WorkersUnreachable
from gateway.common.tasks import enqueue_now, enqueue_on_commit

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def relayer_id() -> int:
    """A number that no message of another test names."""
    return secrets.randbits(40)


def take_messages(relayer_id: int) -> int:
    """Take all messages from the relay queue; return how many name this relayer."""
    found = 0
    with Connection("memory://") as connection:
        queue = connection.SimpleQueue("relay")
        while True:
            try:
                message = queue.get(block=False)
            except Empty:
                return found
            message.ack()
            found += message.payload[1] == {"relayer_id": relayer_id}


def test_a_message_leaves_only_when_the_transaction_commits(relayer_id: int) -> None:
    with transaction.atomic():
        enqueue_on_commit("relay.broadcast", relayer_id=relayer_id)
        assert take_messages(relayer_id) == 0
    assert take_messages(relayer_id) == 1


def test_a_transaction_that_rolls_back_sends_nothing(relayer_id: int) -> None:
    with transaction.atomic():
        enqueue_on_commit("relay.broadcast", relayer_id=relayer_id)
        transaction.set_rollback(True)
    assert take_messages(relayer_id) == 0


def test_a_broker_that_is_away_does_not_fail_the_caller(broker_away: None) -> None:
    committed = []
    with transaction.atomic():
        enqueue_on_commit("relay.broadcast", relayer_id=1)
        transaction.on_commit(lambda: committed.append(True))

    assert committed == [True]


def test_a_caller_that_needs_a_worker_gets_an_error_without_one(broker_away: None) -> None:
    with pytest.raises(WorkersUnreachable, match="No worker received the task"):
        enqueue_now("relay.broadcast", relayer_id=1)


def test_an_immediate_task_does_not_wait_for_the_commit(relayer_id: int) -> None:
    with transaction.atomic():
        enqueue_now("relay.broadcast", relayer_id=relayer_id)
        assert take_messages(relayer_id) == 1
        transaction.set_rollback(True)
