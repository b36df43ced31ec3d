"""A message is sent after the commit, and a lost one fails nobody."""

from collections.abc import Iterator

import pytest
from celery import Celery
from django.db import transaction
from kombu import Connection

from gateway.celery import app as celery_app
from gateway.common.enqueue import enqueue_on_commit

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


@pytest.fixture
def broker_away() -> Iterator[None]:
    """A Celery application whose broker does not answer is the current one."""
    Celery("away", broker="redis://127.0.0.1:1/0", set_as_current=True)
    yield
    celery_app.set_current()


def test_a_broker_that_is_away_does_not_fail_the_caller(broker_away: None) -> None:
    committed = []
    with transaction.atomic():
        enqueue_on_commit("relay.broadcast", relayer_id=1)
        transaction.on_commit(lambda: committed.append(True))

    assert committed == [True]
