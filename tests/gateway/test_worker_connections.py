"""A process of a worker keeps its connection to the database, and outlives one that was closed behind its back."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from celery import shared_task
from django.db import OperationalError, connection, connections

from devstack.services.stack import Services
from gateway.celery import app, check_connections, keep_one_connection

pytestmark = pytest.mark.django_db(transaction=True)


@shared_task(name="tests.nothing")
def nothing() -> None:
    """Stand for a task that a worker runs."""


@pytest.fixture
def worker(services: Services, monkeypatch: pytest.MonkeyPatch) -> Iterator[ThreadPoolExecutor]:
    """A thread that is set up as a process of a worker is: a connection of its own, past a pooler, made after that."""
    for wrapper in connections.all():
        for name in ("CONN_MAX_AGE", "CONN_HEALTH_CHECKS"):
            monkeypatch.setitem(wrapper.settings_dict, name, wrapper.settings_dict[name])
        options = {**wrapper.settings_dict["OPTIONS"], "pool": {}}
        monkeypatch.setitem(wrapper.settings_dict, "OPTIONS", options)
        monkeypatch.setitem(wrapper.settings_dict, "HOST", str(services.postgres.socket_directory))
    with ThreadPoolExecutor(1) as threads:
        threads.submit(keep_one_connection).result()
        yield threads
        threads.submit(connections.close_all).result()


def backend(worker: ThreadPoolExecutor) -> int:
    """Return the number of the server's process that serves the worker's connection."""
    return worker.submit(_ask, "SELECT pg_backend_pid()").result()


def _ask(question: str, *params: Any) -> int:
    with connection.cursor() as cursor:
        cursor.execute(question, params)
        (result,) = cursor.fetchone()
    return int(result)


def begin_a_task(worker: ThreadPoolExecutor) -> None:
    worker.submit(check_connections, sender=nothing).result()


def test_task_after_task_uses_one_connection_without_a_pool(worker: ThreadPoolExecutor) -> None:
    seen = set()
    for _ in range(3):
        begin_a_task(worker)
        seen.add(backend(worker))
    assert len(seen) == 1
    assert "pool" not in connection.settings_dict["OPTIONS"]


def test_a_task_finds_a_connection_that_was_closed_before_it_and_opens_another(
    worker: ThreadPoolExecutor,
) -> None:
    begin_a_task(worker)
    first = backend(worker)
    assert _ask("SELECT pg_terminate_backend(%s, 60000)::int", first)
    with pytest.raises(OperationalError):
        backend(worker)
    begin_a_task(worker)
    second = backend(worker)
    assert second != first

    # Closed while idle, it is found by the check before the task.
    begin_a_task(worker)
    assert _ask("SELECT pg_terminate_backend(%s, 60000)::int", second)
    begin_a_task(worker)
    assert backend(worker) not in {first, second}


def test_celery_itself_leaves_the_connection_for_many_tasks() -> None:
    assert app.conf.get("CELERY_DB_REUSE_MAX") == 1_000
