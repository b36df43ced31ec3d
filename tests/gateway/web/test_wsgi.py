"""The WSGI entry point responds to the probes, and starts the process's threads in each process that responds."""

import os
import subprocess
import sys
from datetime import timedelta

import psycopg
import pytest
from django.db import connection
from django.test import Client
from django.utils.timezone import now

from devstack.files import PROJECT
from devstack.services.stack import Services
from gateway.chain.client import get_chain_client
from gateway.chain.config import get_chain
from gateway.chain.types import NodeHealth
from gateway.web import process
from relay.models import WorkerLoop

# Loads the application, forks as a server with several workers does, and prints what runs in the child.
_FORKING = """
import io, os, threading
os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
from gateway.wsgi import application
environ = {
    "REQUEST_METHOD": "GET", "PATH_INFO": "/healthz", "SERVER_NAME": "10.0.0.7", "SERVER_PORT": "80",
    "wsgi.input": io.BytesIO(), "wsgi.url_scheme": "http",
}
def threads():
    return sorted(t.name for t in threading.enumerate() if t.name in {"node-checks", "durations", "clock"})
def ask():
    heads = []
    body = b"".join(application(environ, lambda status, headers: heads.append(status)))
    return heads[0], body.decode(), threads()
print(threads(), flush=True)
if os.fork() == 0:
    print(ask(), ask(), sep="\\n", flush=True)
    os._exit(0)
os.wait()
print(threads())
"""


@pytest.fixture
def without_database(monkeypatch: pytest.MonkeyPatch) -> None:
    """A primary that refuses connections."""

    def refuse() -> str:
        raise psycopg.OperationalError("refused")

    monkeypatch.setattr(process, "ask_database", refuse)


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
@pytest.mark.django_db
def test_probes_respond_to_any_host_and_scheme(path: str) -> None:
    response = Client().get(path, headers={"Host": "10.0.0.7"})

    assert (response.status_code, response["Content-Type"]) == (200, "application/json")
    assert response.json() == {"status": "ok"}


def test_a_process_without_a_database_is_live_and_not_ready(without_database: None) -> None:
    ready = Client().get("/readyz")

    assert (ready.status_code, ready.json()) == (503, {"status": "unavailable", "missing": "database"})
    assert Client().get("/healthz").status_code == 200


def is_missing(what: str) -> bool:
    ready = Client().get("/readyz")
    return (ready.status_code, ready.json()) == (503, {"status": "unavailable", "missing": what})


@pytest.mark.django_db(transaction=True)
def test_a_process_is_ready_only_while_calls_can_be_accepted_and_are_settled(
    monkeypatch: pytest.MonkeyPatch, services: Services
) -> None:
    assert Client().get("/readyz").status_code == 200

    name = str(connection.settings_dict["NAME"])
    with psycopg.connect(services.postgres.url(name), autocommit=True) as owner:
        owner.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
        assert is_missing("database-writes")
        owner.execute(f'ALTER DATABASE "{name}" RESET default_transaction_read_only')
    assert Client().get("/readyz").status_code == 200

    loop = WorkerLoop.objects.create(chain_id=get_chain().id, name="tracking", succeeded_at=now())
    assert Client().get("/readyz").status_code == 200
    WorkerLoop.objects.filter(pk=loop.pk).update(succeeded_at=now() - timedelta(seconds=61))
    assert is_missing("relay-worker")
    WorkerLoop.objects.filter(pk=loop.pk).update(succeeded_at=now())
    assert Client().get("/readyz").status_code == 200

    nodes = [NodeHealth("one", "its newest block is too old", None)]
    monkeypatch.setattr(get_chain_client(), "nodes", lambda: nodes)
    assert is_missing("nodes")


def test_threads_start_once_in_the_serving_process_and_not_in_the_loading_one() -> None:
    run = subprocess.run(
        [sys.executable, "-c", _FORKING], cwd=PROJECT, env=dict(os.environ), capture_output=True, text=True
    )

    answered = str(("200 OK", '{"status": "ok"}', ["clock", "durations", "node-checks"]))
    assert run.stdout.splitlines() == ["[]", answered, answered, "[]"], run.stderr
