"""The WSGI entry point responds to the probes, and starts the process's threads in each process that responds."""

import os
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from django.db import OperationalError, connection
from django.test import Client
from django.utils.timezone import now
from pytest_django import Settings

from devstack.files import PROJECT
from devstack.services.stack import Services
from gateway.chain.client import get_chain_client
from gateway.chain.remote_signing import remote_signer
from gateway.chain.types import NodeHealth
from gateway.common import metrics
from gateway.web import process
from relay.models import Relayer, WorkerLoop
from tests.factories import make
from tests.signer.parts import FakeTargets, new_keys, new_service, serving

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

    def refuse(statement: str, params: object) -> None:
        raise OperationalError("refused")

    monkeypatch.setattr(process, "only_row", refuse)
    monkeypatch.setattr(metrics, "database_seen", metrics.Seen())


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_probes_respond_to_any_host_and_scheme(path: str, working: None) -> None:
    response = Client().get(path, headers={"Host": "10.0.0.7"})

    assert (response.status_code, response["Content-Type"]) == (200, "application/json")
    assert response.json()["status"] == "ok"


def test_a_process_without_a_database_is_live_and_not_ready(without_database: None) -> None:
    ready = Client().get("/readyz")

    assert (ready.status_code, ready.json()["missing"]) == (503, "database")
    assert Client().get("/healthz").status_code == 200


@pytest.mark.django_db
def test_a_process_is_ready_while_postgresql_is_slow(without_database: None) -> None:
    metrics.database_seen.at = time.monotonic()
    assert Client().get("/readyz").status_code == 200


def missing() -> dict[str, str]:
    """Return why each missing part is missing."""
    ready = Client().get("/readyz")
    body = ready.json()
    found = {part: fault for part, fault in body["parts"].items() if fault != "ok"}
    assert (ready.status_code, body.get("missing")) == ((503, next(iter(found))) if found else (200, None))
    return found


@pytest.fixture
def working(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relayer with funds, and a relay worker whose loops succeed."""
    make(Relayer, balance_wei=10**18, is_active=True)
    for name in ("broadcasting", "tracking"):
        make(WorkerLoop, name=name, ended_at=now(), succeeded_at=now())
    nodes_are(monkeypatch, "", "")


def nodes_are(monkeypatch: pytest.MonkeyPatch, *faults: str) -> None:
    nodes = [NodeHealth(str(place), fault, None) for place, fault in enumerate(faults)]
    monkeypatch.setattr(get_chain_client(), "nodes", lambda: nodes)


def test_a_process_is_ready_while_calls_can_be_accepted_and_settled(working: None) -> None:
    assert missing() == {}


def test_a_process_with_open_sessions_is_ready_while_no_new_one_can_be_opened(working: None) -> None:
    """As while names are resolved slowly, which calls do not notice."""

    def refuse(*_: object, **__: object) -> None:
        raise psycopg.OperationalError("could not translate host name")

    connection.ensure_connection()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metrics, "database_seen", metrics.Seen())
        patch.setattr(psycopg, "connect", refuse)
        patch.setattr(connection, "get_new_connection", refuse)
        assert missing() == {}


def test_a_primary_without_writes_is_named_and_single_read_only_sessions_are_replaced(
    working: None, services: Services
) -> None:
    name = str(connection.settings_dict["NAME"])
    with connection.cursor() as cursor:
        cursor.execute("SET default_transaction_read_only = on")
    assert missing() == {}
    with psycopg.connect(services.postgres.url(name), autocommit=True) as owner:
        owner.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
        connection.close()
        assert missing() == {"database-writes": "PostgreSQL takes no writes"}
        owner.execute(f'ALTER DATABASE "{name}" RESET default_transaction_read_only')
    assert missing() == {}


def test_a_lost_quorum_is_named_instead_of_the_relay_worker(
    working: None, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    settings.CHAIN_QUORUM = 2
    tracking = WorkerLoop.objects.filter(name="tracking")
    nodes_are(monkeypatch, "", "no response")
    # Calls are settled, so the quorum is there for the worker.
    assert missing() == {}
    tracking.update(succeeded_at=now() - timedelta(seconds=61))
    assert list(missing()) == ["quorum"]
    nodes_are(monkeypatch, "", "")
    assert missing() == {"relay-worker": "fails: tracking"}
    nodes_are(monkeypatch, "", "no response")
    tracking.update(ended_at=now() - timedelta(seconds=61))
    assert missing() == {"relay-worker": "has stopped"}
    tracking.delete()
    assert missing() == {"relay-worker": "has stopped"}


def test_a_process_without_any_node_is_not_ready(working: None, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes_are(monkeypatch, "its newest block is too old", "no response")
    assert list(missing()) == ["nodes"]


def test_nodes_that_together_refuse_most_requests_are_named(
    working: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*shares: float) -> None:
        nodes = [NodeHealth(str(place), "", 3.0, share) for place, share in enumerate(shares)]
        monkeypatch.setattr(get_chain_client(), "nodes", lambda: nodes)

    refuse(0.65)
    assert missing() == {"nodes": "most requests to nodes fail"}
    # The second one gets what the first one refuses.
    refuse(0.65, 0.65)
    assert missing() == {}
    refuse(1.0, 0.0)
    assert missing() == {}
    refuse(0.8, 0.8)
    assert list(missing()) == ["nodes"]


def test_empty_relayers_are_named_and_full_ones_are_no_fault(working: None) -> None:
    Relayer.objects.update(next_account_nonce=1_000, mined_account_nonce=0)
    assert missing() == {}
    Relayer.objects.update(balance_wei=10**14 - 1)
    assert missing() == {"relayers": "all are empty"}
    Relayer.objects.update(balance_wei=10**18, is_active=False)
    assert missing() == {"relayers": "none is active"}


def test_a_signer_that_is_away_is_named(working: None, settings: Settings, tmp_path: Path) -> None:
    settings.RELAY_SIGNER, settings.SIGNER_URL = "remote", f"unix://{tmp_path}/signer.sock"
    settings.SIGNER_TLS_FOLDER = ""
    remote_signer.cache_clear()
    try:
        assert missing() == {"signer": "does not respond"}
        service = new_service(tmp_path, new_keys(), FakeTargets())
        with serving(tmp_path, service):
            assert missing() == {}
    finally:
        remote_signer.cache_clear()


def test_a_process_that_turns_most_calls_away_is_not_ready(
    working: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = process.RecentCalls()
    monkeypatch.setattr(process, "recent_calls", calls)
    for _ in range(9):
        calls.add(is_served=False)
    assert missing() == {}
    calls.add(is_served=False)
    assert list(missing()) == ["calls"]
    for _ in range(10):
        calls.add(is_served=True)
    assert missing() == {}


def test_threads_start_once_in_the_serving_process_and_not_in_the_loading_one() -> None:
    run = subprocess.run(
        [sys.executable, "-c", _FORKING], cwd=PROJECT, env=dict(os.environ), capture_output=True, text=True
    )

    answered = str(("200 OK", '{"status": "ok"}', ["clock", "durations", "node-checks"]))
    assert run.stdout.splitlines() == ["[]", answered, answered, "[]"], run.stderr
