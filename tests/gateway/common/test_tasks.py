"""A message is sent after the commit, and a lost one fails no request."""

import pytest
from django.db import transaction
from kombu import Connection

from gateway.common.errors import WorkersUnreachable
from gateway.common.tasks import enqueue_now, enqueue_on_commit

pytestmark = pytest.mark.django_db(transaction=True)


def waiting() -> int:
    """Count the messages in the relay queue."""
    with Connection("memory://") as connection:
        return connection.SimpleQueue("relay").qsize()


def test_a_message_leaves_only_when_the_transaction_commits() -> None:
    before = waiting()
    with transaction.atomic():
        enqueue_on_commit("relay.broadcast", relayer_id=1)
        assert waiting() == before
    assert waiting() == before + 1


def test_a_transaction_that_rolls_back_sends_nothing() -> None:
    before = waiting()
    with transaction.atomic():
        enqueue_on_commit("relay.broadcast", relayer_id=1)
        transaction.set_rollback(True)
    assert waiting() == before


def test_a_broker_that_is_away_does_not_fail_the_caller(broker_away: None) -> None:
    committed = []
    with transaction.atomic():
        enqueue_on_commit("relay.broadcast", relayer_id=1)
        transaction.on_commit(lambda: committed.append(True))

    assert committed == [True]


def test_a_caller_that_needs_a_worker_gets_an_error_without_one(broker_away: None) -> None:
    with pytest.raises(WorkersUnreachable, match="No worker received the task"):
        enqueue_now("relay.broadcast", relayer_id=1)


def test_an_immediate_task_does_not_wait_for_the_commit() -> None:
    before = waiting()
    with transaction.atomic():
        enqueue_now("relay.broadcast", relayer_id=1)
        assert waiting() == before + 1
        transaction.set_rollback(True)
