"""Under transaction pooling: notifications, time limits, and the findings of `check --deploy`."""

import threading
import time
from socketserver import StreamRequestHandler, ThreadingTCPServer

import pytest
from django.core.checks import run_checks
from django.db import connection
from psycopg.conninfo import conninfo_to_dict
from pytest_django import Settings

from devstack.services.postgres import APPLICATION_ROLE
from devstack.services.stack import Services
from gateway.common import checks, db
from relay.services.sending.notifications import Listener
from tests.credits.rows import query
from tests.database import as_owner
from tests.threads import at_once

pytestmark = pytest.mark.django_db


@pytest.fixture
def pooled(settings: Settings, services: Services) -> Settings:
    settings.DATABASE_POOLING = "transaction"
    name = str(connection.settings_dict["NAME"])
    settings.DATABASE_DIRECT = conninfo_to_dict(services.postgres.url(name, role=APPLICATION_ROLE))
    return settings


def warnings() -> set[str | None]:
    return {finding.id for finding in run_checks(tags=["gateway"], include_deployment_checks=True)}


@pytest.mark.django_db(transaction=True)
def test_behind_a_pooler_notifications_bypass_it_and_reach_replaced_sessions(
    pooled: Settings,
) -> None:
    listener = Listener("a_channel")
    assert not listener.wait(seconds=0)
    for _ in range(2):
        at_once([lambda: query("SELECT pg_notify('a_channel', '')")])
        assert listener.wait(seconds=60)
        listener._direct.close()
        assert not listener.wait(seconds=0)


def test_without_a_bypass_of_the_pooler_waiters_poll_and_use_no_session(pooled: Settings) -> None:
    pooled.DATABASE_DIRECT = {}
    began = time.monotonic()
    assert not Listener("a_channel").wait(seconds=0.05)
    assert time.monotonic() - began >= 0.05
    assert query("SELECT * FROM pg_listening_channels()") == []


def test_every_session_of_the_role_begins_with_the_limits(pooled: Settings) -> None:
    ((own,),) = query("SELECT rolconfig FROM pg_roles WHERE rolname = current_user")
    limits = dict(setting.split("=") for setting in own)
    assert limits == pooled.DATABASE_ROLE_LIMITS
    assert "gateway.W004" not in warnings()
    as_owner(f"ALTER ROLE {APPLICATION_ROLE} RESET ALL")
    as_owner(f"ALTER ROLE {APPLICATION_ROLE} SET statement_timeout = 0")
    assert "gateway.W004" in warnings()


@pytest.mark.parametrize(
    ("required", "level", "standbys", "expected"),
    [
        (False, "on", "", set()),
        (False, "local", "", set()),
        (False, "off", "", {"gateway.W002"}),
        (True, "on", "", {"gateway.W003"}),
        (True, "on", "ANY 1 (b, c)", set()),
        (True, "remote_apply", "ANY 1 (b, c)", set()),
        (True, "local", "ANY 1 (b, c)", {"gateway.W002"}),
    ],
)
def test_a_promise_that_one_machine_could_lose_is_a_warning(
    required: bool,
    level: str,
    standbys: str,
    expected: set[str],
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    as_owner(f"ALTER ROLE {APPLICATION_ROLE} SET synchronous_commit = '{level}'")
    settings.DATABASE_SYNCHRONOUS_STANDBY = required
    read = checks.read_settings
    # No role can have this one of its own.
    monkeypatch.setattr(checks, "read_settings", lambda: {**read(), "synchronous_standby_names": standbys})
    assert warnings() - {"gateway.W004"} == expected


class _PgBouncer(StreamRequestHandler):
    """Refuses the startup parameter that it does not know, as PgBouncer does in every pool mode."""

    def handle(self) -> None:
        self.rfile.read(int.from_bytes(self.rfile.read(4)) - 4)
        fields = b"SFATAL\0VFATAL\0C08P01\0Munsupported startup parameter: options\0\0"
        self.wfile.write(b"E" + (len(fields) + 4).to_bytes(4) + fields)


def test_a_pooler_that_refuses_the_limits_is_named_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    with ThreadingTCPServer(("127.0.0.1", 0), _PgBouncer) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        for name, value in [("HOST", "127.0.0.1"), ("PORT", server.server_address[1])]:
            monkeypatch.setitem(connection.settings_dict, name, value)
        for name in ("sslmode", "gssencmode"):
            monkeypatch.setitem(connection.settings_dict["OPTIONS"], name, "disable")
        reason = db.connection_error("default")
        server.shutdown()
    assert "unsupported startup parameter: options" in reason
    assert reason.endswith(" Set DATABASE_POOLING=transaction.")
