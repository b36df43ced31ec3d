"""A worker takes messages again after Redis stalled while one was acknowledged."""

import logging
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kombu import Connection
from kombu.simple import SimpleQueue

from devstack.services.redis import Redis


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[Redis]:
    """A broker of this test alone."""
    with Redis(tmp_path / "redis", tmp_path).running() as server:
        yield server


def test_a_message_that_could_not_be_acknowledged_does_not_block_the_next(
    redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    taken: list[Any] = []
    with Connection(redis.url, transport_options={"socket_timeout": 2, "max_retries": 0}) as broker:
        queue = broker.SimpleQueue("one")
        for number in range(2):
            queue.put(number)
        queue.consumer.qos(prefetch_count=1)
        channel: Any = queue.channel
        taken.append(queue.get(timeout=60))
        assert not channel.qos.can_consume()

        os.kill(redis.pid, signal.SIGSTOP)
        taken[0].ack_log_error(logging.getLogger("tests"), broker.connection_errors)
        os.kill(redis.pid, signal.SIGCONT)

        assert [record.levelno for record in caplog.records] == [logging.CRITICAL]
        assert channel.qos.can_consume()
        taken.append(queue.get(timeout=60))
        taken[1].ack()
    assert [message.payload for message in taken] == [0, 1]


def test_a_message_that_cannot_be_given_back_or_acknowledged_does_not_end_the_worker(redis: Redis) -> None:
    broker = Connection(redis.url, transport_options={"socket_timeout": 2, "max_retries": 0})
    queue = broker.SimpleQueue("one")
    queue.put("once")
    message = queue.get(timeout=60)
    # As a worker does, it waits by two channels when the connection is lost, and releases it twice.
    other = SimpleQueue(broker.channel(), "two")
    with pytest.raises(other.Empty):
        other.get(timeout=0.1)
    redis.stop()
    broker.collect()
    broker.close()
    message.ack_log_error(logging.getLogger("tests"), broker.connection_errors)
    message.reject_log_error(logging.getLogger("tests"), broker.connection_errors)
