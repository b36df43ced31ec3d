"""A session that the server has ended or made read-only fails one request at most, and is never used again."""

import contextlib
import copy
import os
import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from select import select
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction
from django.test import Client
from django.urls import path
from psycopg_pool import ConnectionPool
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from devstack.services.postgres import APPLICATION_ROLE
from devstack.services.stack import Services
from gateway import settings as settings_of_a_process
from gateway.common import db, metrics
from gateway.common.models import Lease
from gateway.common.postgresql.base import DatabaseWrapper
from tests.database import as_owner
from tests.lost_connections import drop_packets
from tests.threads import at_once, locked_elsewhere

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.urls(__name__)]


class Writing(APIView):
    """Writes a row in a transaction."""

    authentication_classes = ()
    permission_classes = (AllowAny,)

    def post(self, request: Request) -> Response:
        with transaction.atomic(durable=True):
            Lease.objects.create(name=secrets.token_hex(), owner="a test", expires_at="2026-01-01T00:00Z")
        return Response({})


urlpatterns = [path("api/write", Writing.as_view())]


def post() -> Any:
    return Client(raise_request_exception=False).post("/api/write")


def backend() -> int:
    return int(_ask(connection, "SELECT pg_backend_pid()"))


def _ask(wrapper: Any, question: str, *params: Any) -> Any:
    with wrapper.cursor() as cursor:
        cursor.execute(question, params)
        (result,) = cursor.fetchone()
    return result


READ_ONLY = "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY"


def test_a_session_that_became_read_only_returns_503_once_and_is_replaced() -> None:
    first = backend()
    connection.cursor().execute(READ_ONLY)
    metrics.DATABASE_ERRORS.take()

    refused = post()
    assert refused.status_code == 503
    assert refused.json()["code"] == "service-unavailable"
    assert refused.headers["Retry-After"] == "2"
    assert Lease.objects.count() == 0

    assert metrics.DATABASE_ERRORS.take() == {"database_errors total read-only": 1}

    assert post().status_code == 200
    assert backend() != first


@pytest.mark.parametrize(
    "change",
    ["ALTER TABLE changing ALTER COLUMN one TYPE bigint", "ALTER TABLE changing ADD COLUMN two integer"],
)
def test_a_table_that_changes_under_a_prepared_statement_replaces_the_session(change: str) -> None:
    as_owner(f"CREATE TABLE changing (one integer); GRANT SELECT ON changing TO {APPLICATION_ROLE}")
    try:
        first = backend()
        for _ in range(10):
            assert db.all_rows("SELECT * FROM changing", {}) == []
        as_owner(change)

        with pytest.raises(OperationalError, match="cached plan"):
            db.all_rows("SELECT * FROM changing", {})

        assert db.all_rows("SELECT * FROM changing", {}) == []
        assert backend() != first
    finally:
        connection.close()
        as_owner("DROP TABLE changing")


def test_a_prepared_statement_that_is_gone_replaces_the_session() -> None:
    first = backend()
    for _ in range(10):
        assert db.all_rows("SELECT 1", {}) == [(1,)]
    # Past the driver, which would notice.
    connection.connection.pgconn.exec_(b"DEALLOCATE ALL")

    with pytest.raises(OperationalError, match="does not exist"):
        db.all_rows("SELECT 1", {})

    assert db.all_rows("SELECT 1", {}) == [(1,)]
    assert backend() != first


@pytest.mark.parametrize("in_transaction", [True, False])
def test_it_is_replaced_within_one_request_too(*, in_transaction: bool) -> None:
    first = backend()
    connection.cursor().execute(READ_ONLY)
    with pytest.raises(OperationalError, match="read-only"):
        _write(in_transaction=in_transaction)
    _write(in_transaction=in_transaction)
    assert backend() != first
    assert Lease.objects.count() == 1


def _write(*, in_transaction: bool) -> None:
    with contextlib.ExitStack() as blocks:
        for _ in range(2 if in_transaction else 0):
            blocks.enter_context(transaction.atomic())
        Lease.objects.create(name="one", owner="a test", expires_at="2026-01-01T00:00Z")


def test_a_transaction_that_was_idle_for_too_long_is_an_outage() -> None:
    with pytest.raises(OperationalError):
        _be_idle_for_too_long()
    assert post().status_code == 200


@transaction.atomic
def _be_idle_for_too_long() -> None:
    connection.cursor().execute("SET LOCAL idle_in_transaction_session_timeout = 1")
    _wait_for_the_end_of(backend())
    connection.cursor().execute("SELECT 1")


def _wait_for_the_end_of(number: int) -> None:
    other = _wrapper({})
    try:
        while _ask(other, "SELECT count(*) FROM pg_stat_activity WHERE pid = %s", number):
            pass
    finally:
        other.close()


@pytest.fixture
def pool(services: Services, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., DatabaseWrapper]]:
    """Yield what makes a connection of one pool, as each thread of a web process does."""
    options = {**connection.settings_dict["OPTIONS"], "pool": {"min_size": 1, "max_size": 4, "timeout": 60}}
    monkeypatch.setattr(DatabaseWrapper, "_lost_at", {})
    made: list[DatabaseWrapper] = []

    def make(**place: Any) -> DatabaseWrapper:
        wrapper = _wrapper({"OPTIONS": options, "HOST": str(services.postgres.socket_directory)} | place)
        wrapper.inc_thread_sharing()
        made.append(wrapper)
        return wrapper

    yield make
    for wrapper in made:
        wrapper.close()
    made[0].close_pool()


def _wrapper(settings_dict: dict[str, Any]) -> DatabaseWrapper:
    return DatabaseWrapper(copy.deepcopy(connection.settings_dict) | settings_dict, alias=connection.alias)


def test_sessions_that_were_terminated_in_the_pool_fail_no_request(
    pool: Callable[[], DatabaseWrapper],
) -> None:
    callers = [pool() for _ in range(4)]
    numbers = {_ask(caller, "SELECT pg_backend_pid()") for caller in callers}
    assert len(numbers) == 4
    for caller in callers:
        caller.close()
    for number in numbers:
        assert _ask(connection, "SELECT pg_terminate_backend(%s, 60000)", number)

    metrics.DATABASE_ERRORS.take()
    after = {_ask(caller, "SELECT pg_backend_pid()") for caller in callers}
    assert len(after) == 4
    assert not after & numbers
    assert metrics.DATABASE_ERRORS.take() == {"database_errors total session-lost": 4}


@pytest.fixture
def tcp_port(services: Services) -> Iterator[int]:
    """Yield a loopback port that forwards to PostgreSQL's unix socket."""
    file = f"{services.postgres.socket_directory}/.s.PGSQL.5432"

    class Forward(StreamRequestHandler):
        def handle(self) -> None:
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as server:
                server.connect(file)
                other_of = {self.connection: server, server: self.connection}
                data = b"begin"
                while data:
                    (ready, *_), _, _ = select(other_of, [], [])
                    data = ready.recv(65_536)
                    other_of[ready].sendall(data)

    with ThreadingTCPServer(("127.0.0.1", 0), Forward) as server:
        server.daemon_threads, server.block_on_close = True, False
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


_LOST = "a session of the database default was lost; all idle ones are replaced"


def _go_idle(caller: DatabaseWrapper, *, is_lost: bool) -> None:
    """Return the caller's session to the pool as if it had been idle for a minute."""
    session: Any = caller.connection
    if is_lost:
        _lose(session)
    caller.close()
    session.verified_at -= 60


def _lose(session: Any) -> None:
    with socket.socket(fileno=os.dup(session.fileno())) as handle:
        drop_packets(handle)


def _backend_of(caller: DatabaseWrapper) -> int:
    return int(_ask(caller, "SELECT pg_backend_pid()"))


def test_idle_sessions_whose_packets_disappear_fail_no_request_and_the_first_ends_them_all(
    pool: Callable[..., DatabaseWrapper], tcp_port: int, caplog: pytest.LogCaptureFixture
) -> None:
    callers = [pool(HOST="127.0.0.1", PORT=tcp_port) for _ in range(4)]
    numbers = {_backend_of(caller) for caller in callers}
    for caller in callers:
        # Only the first can be seen to be lost; the others are replaced without a round trip.
        _go_idle(caller, is_lost=caller is callers[0])

    metrics.DATABASE_ERRORS.take()
    assert numbers.isdisjoint(_backend_of(caller) for caller in callers)
    assert caplog.messages.count(_LOST) == 1
    assert metrics.DATABASE_ERRORS.take() == {"database_errors total session-lost": 4}


def test_many_callers_who_find_lost_sessions_at_once_all_get_a_new_one(
    pool: Callable[..., DatabaseWrapper], tcp_port: int, caplog: pytest.LogCaptureFixture
) -> None:
    callers = [pool(HOST="127.0.0.1", PORT=tcp_port) for _ in range(4)]
    numbers = {_backend_of(caller) for caller in callers}
    for caller in callers:
        _go_idle(caller, is_lost=True)

    def ask_once() -> int:
        caller = pool(HOST="127.0.0.1", PORT=tcp_port)
        number = _backend_of(caller)
        caller.close()
        return number

    assert numbers.isdisjoint(at_once([ask_once] * 12))
    assert caplog.messages.count(_LOST) == 1


def test_an_idle_session_that_responds_is_kept_and_has_its_usual_timeout_again(
    pool: Callable[..., DatabaseWrapper], tcp_port: int
) -> None:
    callers = [pool(HOST="127.0.0.1", PORT=tcp_port) for _ in range(4)]
    numbers = {_backend_of(caller) for caller in callers}
    for caller in callers:
        _go_idle(caller, is_lost=False)
    assert {_backend_of(caller) for caller in callers} == numbers
    for caller in callers:
        session: Any = caller.connection
        with socket.socket(fileno=os.dup(session.fileno())) as handle:
            assert handle.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 10_000
            assert handle.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 60


def test_a_worker_replaces_its_session_whose_packets_disappear(tcp_port: int) -> None:
    worker = _wrapper(
        {"HOST": "127.0.0.1", "PORT": tcp_port, "CONN_MAX_AGE": None, "CONN_HEALTH_CHECKS": True}
    )
    try:
        first = _backend_of(worker)
        worker.close_if_unusable_or_obsolete()
        assert _backend_of(worker) == first
        _lose(worker.connection)
        worker.close_if_unusable_or_obsolete()
        assert _backend_of(worker) != first
    finally:
        worker.close()


def test_a_read_only_session_does_not_return_to_the_pool(pool: Callable[[], DatabaseWrapper]) -> None:
    caller = pool()
    first = _ask(caller, "SELECT pg_backend_pid()")
    caller.cursor().execute(READ_ONLY)
    with pytest.raises(OperationalError):
        caller.cursor().execute("DELETE FROM gateway_common_lease")
    assert _ask(caller, "SELECT pg_backend_pid()") != first
    caller.cursor().execute("DELETE FROM gateway_common_lease")


def test_a_pool_reconnects_to_the_database_while_a_request_waits() -> None:
    """By itself the driver's pool doubles its delay up to five minutes."""
    options: Any = settings_of_a_process._OPTIONS["pool"]
    with ConnectionPool(open=False, **options) as pool:
        assert pool.reconnect_timeout <= pool.timeout


def test_a_statement_without_space_on_the_disk_is_an_outage_and_is_counted() -> None:
    metrics.DATABASE_ERRORS.take()
    with pytest.raises(OperationalError):
        connection.cursor().execute("DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = 'disk_full'; END $$")
    assert metrics.DATABASE_ERRORS.take() == {"database_errors total disk-full": 1}


def test_a_lock_that_is_waited_for_in_vain_is_counted() -> None:
    Lease.objects.create(name="one", owner="a test", expires_at="2026-01-01T00:00Z")
    metrics.DATABASE_ERRORS.take()
    with locked_elsewhere(lambda: list(Lease.objects.select_for_update())), pytest.raises(OperationalError):
        Lease.objects.all().delete()
    assert Lease.objects.count() == 1
    assert metrics.DATABASE_ERRORS.take() == {"database_errors total lock-timeout": 1}


def test_a_transaction_that_ended_before_its_commit_is_an_outage() -> None:
    with pytest.raises(OperationalError):
        _end_before_the_commit()
    assert post().status_code == 200


@transaction.atomic
def _end_before_the_commit() -> None:
    connection.cursor().execute("SET LOCAL idle_in_transaction_session_timeout = 1")
    _wait_for_the_end_of(backend())
