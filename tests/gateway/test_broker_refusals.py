"""Whatever Redis returns, and however Celery handles it, a worker continues and takes messages again."""

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis as driver
from celery import Celery, bootsteps
from celery.worker import WorkController, loops
from django.db import connection
from pytest_django import Settings

from devstack.environment import overriding
from devstack.processes import DefaultWorker, Worker
from devstack.services.redis import Redis
from devstack.services.stack import Services
from gateway.celery import Consumer
from gateway.common import clock, metrics, redis_urls
from gateway.metrics import periodic_tasks
from tests.journeys.waiting import until


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[Redis]:
    """A broker of this test alone."""
    with Redis(tmp_path / "redis", tmp_path).running() as server:
        yield server


@pytest.fixture
def environment(services: Services, redis: Redis, transactional_db: None) -> dict[str, str]:
    place = connection.settings_dict
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "devstack.settings",
        "DATABASE_URL": f"postgresql://{place['USER']}@/{place['NAME']}?host={place['HOST']}",
        "REDIS_URL": redis.url,
        "CHAIN_RPC_URLS": services.rpc_url,
        **overriding(RELAY_TRACK_SECONDS=1),
    }


def demote(client: Any) -> None:
    """Demote Redis to a replica of nothing: blocked readers get UNBLOCKED, and writers READONLY."""
    client.execute_command("REPLICAOF", "127.0.0.1", "1")


def demote_without_stale_reads(client: Any) -> None:
    """Demote it, so that it responds to every command with MASTERDOWN."""
    client.config_set("replica-serve-stale-data", "no")
    demote(client)


def promote(client: Any) -> None:
    client.execute_command("REPLICAOF", "NO", "ONE")


def fill(client: Any) -> None:
    """Use up its memory: it responds to writers with OOM."""
    client.config_set("maxmemory", "1")


def empty(client: Any) -> None:
    client.config_set("maxmemory", "0")


def spoil(client: Any) -> None:
    """Store values of another kind in place of the queues: readers get WRONGTYPE."""
    for queue in ("relay", "default"):
        client.delete(queue)
        client.set(queue, "no queue")


def mend(client: Any) -> None:
    client.delete("relay", "default")


def assert_survives_every_response(worker: Worker, redis: Redis) -> None:
    """After each kind of refusal the worker takes a message again."""
    faults = [(demote, promote), (demote_without_stale_reads, promote), (fill, empty), (spoil, mend)]
    with driver.Redis.from_url(redis.url) as client:
        for begin, end in faults:
            until("the worker waits for messages", lambda: not _sees_refusal(client))
            begin(client)
            until("the worker was refused", lambda: _sees_refusal(client))
            end(client)
            client.lpush(worker.queues, "not a task")
            until("it takes a message", lambda: not client.llen(worker.queues))
    assert not worker.has_ended


def test_a_worker_survives_every_error_of_redis_and_consumes_messages_again(
    environment: dict[str, str], redis: Redis, tmp_path: Path
) -> None:
    """`tests/relay/test_worker_process.py` has the other kind of worker."""
    with DefaultWorker(tmp_path, environment).running() as worker:
        assert_survives_every_response(worker, redis)


def _sees_refusal(client: Any) -> bool:
    """Return whether no reader waits at a queue any more, or none can be refused because it only reads."""
    return not any("brpop" in str(one["cmd"]) for one in client.client_list()) or client.config_get(
        "maxmemory"
    ) != {"maxmemory": "0"}


@pytest.mark.parametrize(("begin", "end"), [(demote, promote), (fill, empty)])
def test_the_gauge_is_0_while_redis_refuses_writes_and_a_demoted_one_is_left(
    begin: Callable[[Any], None], end: Callable[[Any], None], redis: Redis, settings: Settings
) -> None:
    settings.REDIS_URL = redis.url
    own = redis_urls.text_client(redis.url)
    with driver.Redis.from_url(redis.url) as client:
        assert is_up()
        before = own.client_id()
        begin(client)
        assert not is_up()
        end(client)
        assert is_up()
    assert (own.client_id() != before) == (begin is demote)


def is_up() -> bool:
    (gauge,) = [family for family in periodic_tasks() if family.name == "gateway_redis_up"]
    return bool(gauge.samples[0].value)


class _Steps(bootsteps.StartStopStep):
    """What else the worker runs."""

    requires = ("celery.worker.components:Pool",)
    stopped: threading.Event

    def stop(self, parent: Any) -> None:
        self.stopped.set()


def test_an_unexpected_error_ends_neither_the_worker_nor_its_other_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gateway.celery._RECONNECT_SECONDS", 0)
    runs: list[Callable[..., None]] = []
    again = threading.Event()

    class Failing(Consumer):
        def loop(self, *args: Any) -> None:
            runs.append(loops.synloop)
            if len(runs) < 3:
                raise RuntimeError("nobody expects this")
            again.set()
            loops.synloop(*args)

    _Steps.stopped = threading.Event()
    own = Celery("tests", broker="memory://", set_as_current=False)
    own.steps["worker"].add(_Steps)
    own.conf.worker_consumer = Failing
    worker = WorkController(app=own, pool_cls="solo", queues=["nothing"])
    thread = threading.Thread(target=worker.start)
    thread.start()
    assert again.wait(60)
    assert not _Steps.stopped.is_set()
    worker.stop()
    thread.join(60)
    # A worker that ends takes its threads along; this one has lived in the tests' process.
    clock.stop()
    metrics.reporter().stop()
    assert _Steps.stopped.is_set()
