"""The WSGI entry point answers the probes, and starts the process's threads in each process that answers."""

import os
import subprocess
import sys

import psycopg
import pytest
from django.test import Client

from devstack.files import PROJECT
from gateway.web import process

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
    return sorted(t.name for t in threading.enumerate() if t.name in {"node-checks", "durations"})
def ask():
    heads = []
    body = b"".join(application(environ, lambda status, headers: heads.append(status)))
    return heads[0], body.decode(), threads()
print(threads())
if os.fork() == 0:
    print(ask(), ask(), sep="\\n", flush=True)
    os._exit(0)
os.wait()
print(threads())
"""


@pytest.fixture
def without_database(monkeypatch: pytest.MonkeyPatch) -> None:
    """A primary that refuses connections."""

    def refuse() -> None:
        raise psycopg.OperationalError("refused")

    monkeypatch.setattr(process, "ask_database", refuse)


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
@pytest.mark.django_db
def test_probes_are_answered_whatever_host_and_scheme_they_name(path: str) -> None:
    answer = Client().get(path, headers={"Host": "10.0.0.7"})

    assert (answer.status_code, answer["Content-Type"]) == (200, "application/json")
    assert answer.json() == {"status": "ok"}


def test_a_process_without_a_database_is_live_and_not_ready(without_database: None) -> None:
    ready = Client().get("/readyz")

    assert (ready.status_code, ready.json()) == (503, {"status": "unavailable", "missing": "database"})
    assert Client().get("/healthz").status_code == 200


def test_threads_start_once_in_the_process_that_answers_and_not_in_the_one_that_loads() -> None:
    run = subprocess.run(
        [sys.executable, "-c", _FORKING], cwd=PROJECT, env=dict(os.environ), capture_output=True, text=True
    )

    answered = str(("200 OK", '{"status": "ok"}', ["durations", "node-checks"]))
    assert run.stdout.splitlines() == ["[]", answered, answered, "[]"], run.stderr
