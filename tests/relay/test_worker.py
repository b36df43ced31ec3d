"""The loops of the relay worker: they do their work, and neither an outage nor an error ends them."""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from celery.concurrency import prefork, solo, thread
from django.conf import settings as project
from django.core.exceptions import ImproperlyConfigured
from django.db import OperationalError, connection, transaction
from django.utils import timezone
from pytest_django import Settings

from devstack.world.profiles import Profile
from gateway.celery import app
from gateway.chain.config import on_chain
from gateway.chain.errors import NodeUnavailable
from gateway.common.models import Lease
from relay import worker
from relay.models import RelayTransaction, WorkerLoop
from relay.services.sending import loops
from relay.services.sending.loops import LoopLease
from relay.services.settling import tracking
from relay.worker import Broadcasting, Loop, RelayLoops, Tracking, Watchdog
from tests.credits.rows import query
from tests.fakes.chain import FakeChain
from tests.journeys.waiting import until
from tests.relay.callers import execute
from tests.relay.chain import Chain, FaultyClient
from tests.relay.conftest import Accept
from tests.relay.two_chains import ForeignChain
from tests.relay.workers import broadcast_all, later, track
from tests.threads import at_once
from users.models import User

pytestmark = pytest.mark.django_db(transaction=True)


class Scripted(Loop):
    """A loop whose turns end as a test prescribes."""

    title = "scripted"

    def __init__(self, *endings: Exception | None) -> None:
        super().__init__(owner="one@host")
        self._endings = list(endings)
        self.turns = 0

    def work(self) -> int:
        self.turns += 1
        query("SELECT 1")
        ending = self._endings.pop(0) if self._endings else None
        if ending is not None:
            raise ending
        return 0

    def wait(self) -> None:
        if not self._endings:
            self.stopping.set()


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a loop try again at once."""
    monkeypatch.setattr(worker, "FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(worker, "STANDBY_SECONDS", 0.05)


@contextmanager
def running(*loops: Loop) -> Iterator[None]:
    """Run the loops for the length of the block."""
    for loop in loops:
        if not loop.is_alive():
            loop.start()
    try:
        yield
    finally:
        for loop in loops:
            loop.stopping.set()
        for loop in loops:
            loop.join(120)
            assert not loop.is_alive()


def status_of(row: RelayTransaction) -> str:
    """Return the newest status."""
    row.refresh_from_db()
    return row.status


def test_a_call_is_sent_by_notification_and_settled_by_the_next_blocks(
    accept: Accept, chain: Chain, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Far from any tick of its own, so the notification alone can have woken it.
    monkeypatch.setattr(worker, "CLOCK_SECONDS", 60)
    settings.RELAY_TRACK_SECONDS = 0.05
    broadcasting = Broadcasting(owner="one@host")
    with running(broadcasting, Tracking(owner="one@host")):
        until("it listens", lambda: broadcasting._signed._session)
        row = accept()
        until("it is sent", lambda: status_of(row) == "Submitted")
        chain.mine(project.CONFIRMATIONS)
        until("it is settled", lambda: status_of(row) == "Success")
        query("SELECT pg_notify('relay_signed', '')")
    assert {loop.name for loop in WorkerLoop.objects.all()} == {"broadcasting", "tracking"}


def test_without_notifications_polling_finds_pending_transactions(
    accept: Accept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "CLOCK_SECONDS", 0.05)
    monkeypatch.setattr(worker, "SIGNED_CHANNEL", "nobody_notifies_this")
    with running(Broadcasting(owner="one@host")):
        row = accept()
        until("it is sent", lambda: status_of(row) == "Submitted")


def test_the_tracker_reads_receipts_once_per_block(accept: Accept, chain: Chain, node: FaultyClient) -> None:
    accept()
    broadcast_all()
    tracker = tracking.Tracker()
    for blocks, settled in ((1, 0), (project.CONFIRMATIONS - 1, 1)):
        chain.mine(blocks)
        before = node.requests
        assert [tracker.track_new_block(now=timezone.now()) for _ in range(3)] == [settled, 0, 0]
        # The newest block each time; once its receipts, and its accounts.
        assert node.requests - before == 3 + 2


def test_a_block_that_could_not_be_read_is_tracked_again(
    accept: Accept, chain: Chain, node: FaultyClient
) -> None:
    accept()
    broadcast_all()
    chain.mine(project.CONFIRMATIONS)
    tracker = tracking.Tracker()

    def fail() -> None:
        raise NodeUnavailable("away", retry_after=1)

    node.meanwhile("read_chain", fail)
    with pytest.raises(NodeUnavailable):
        tracker.track_new_block(now=timezone.now())
    assert tracker.track_new_block(now=timezone.now()) == 1


def test_an_outage_is_logged_when_it_begins_and_when_it_ends(caplog: pytest.LogCaptureFixture) -> None:
    away, lost = NodeUnavailable("away", retry_after=1), OperationalError("server closed the connection")
    loop = Scripted(away, lost, away, None, lost, None)
    with running(loop):
        loop.join(120)
    assert loop.turns == 6
    lines = [(record.levelno, record.exc_info is None) for record in caplog.records]
    assert lines == [(logging.WARNING, True)] * 4


def test_any_other_error_is_logged_in_full_and_the_loop_continues(caplog: pytest.LogCaptureFixture) -> None:
    loop = Scripted(ValueError("a bug"), ValueError("a bug"), None)
    with running(loop):
        loop.join(120)
    assert loop.turns == 3
    assert [record.levelno for record in caplog.records] == [logging.ERROR] * 2
    assert all(record.exc_info for record in caplog.records)


def test_pauses_grow_while_nothing_succeeds_and_stay_short(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Scripted(*[OperationalError("away")] * 8)
    pauses: list[float] = []
    monkeypatch.setattr(worker, "FIRST_PAUSE_SECONDS", 0.5)
    monkeypatch.setattr(loop.stopping, "wait", pauses.append)
    with running(loop):
        loop.join(120)
    assert pauses == [0.5, 1, 2, 4, 5, 5, 5, 5]


def test_a_loop_continues_in_a_new_session_after_postgresql_closed_the_old_one() -> None:
    loop = Broadcasting(owner="one@host")
    with running(loop):
        until("it listens", lambda: loop._signed._session)
        first = loop._signed._session
        query("SELECT pg_terminate_backend(%s, 60000)", first.info.backend_pid)
        until("it listens again", lambda: loop._signed._session is not first)


def test_a_loop_without_a_database_continues_once_it_is_back(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    loop = Tracking(owner="one@host")
    with monkeypatch.context() as patch:
        patch.setitem(connection.settings_dict, "HOST", "/nowhere")
        loop.start()
        until("it has found none", lambda: loop._failures > 1)
    with running(loop):
        until("it has its lease", Lease.objects.exists)
    assert [record.levelno for record in caplog.records if record.name == "relay.worker"][:1] == [
        logging.WARNING
    ]
    assert loop._failures == 0


@pytest.mark.parametrize(("blocks", "looks"), [(60, 10), (12, 3)])
def test_tracking_keeps_polling_while_a_block_is_settled(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, blocks: int, looks: int
) -> None:
    settings.CHAIN_BLOCK_SECONDS, settings.RELAY_TRACK_SECONDS, busy_seconds = blocks, 10, 0.05
    loop = Tracking(owner="one@host")
    waits: list[float] = []

    def settle_a_block(**_: Any) -> int:
        time.sleep(busy_seconds)
        return 1

    monkeypatch.setattr(loop._tracker, "track_new_block", settle_a_block)
    monkeypatch.setattr(loop.stopping, "wait", waits.append)
    loop.work()
    loop.wait()
    assert [wait <= looks - busy_seconds for wait in waits] == [True]


def test_a_standby_worker_takes_over_when_the_first_ends() -> None:
    first, second = (Tracking(owner=f"{number}@host") for number in "12")
    with running(second):
        with running(first):
            until("one has it", Lease.objects.first)
            holder = Lease.objects.get().owner
            assert holder in {"1@host", "2@host"}
        until("the other has it", lambda: Lease.objects.filter(owner="2@host").exists())


def test_a_worker_that_stalled_while_sending_writes_no_result(
    accept: Accept, node: FaultyClient, caplog: pytest.LogCaptureFixture
) -> None:
    row, first = accept(), Broadcasting(owner="1@host")
    lease_results: list[object] = []

    def stand_still() -> None:
        """The bytes are on their way; meanwhile the lease expires, and another worker gets it."""
        query("UPDATE gateway_common_lease SET expires_at = statement_timestamp()")
        lease_results.extend(at_once([LoopLease(loop="broadcasting", owner="2@host").hold]))

    node.meanwhile("send_raw_transactions", stand_still)
    first._run_once()
    assert (lease_results, status_of(row)) == ([True], "Pending")
    assert "broadcasting was taken over by another worker" in caplog.text
    first._run_once()
    assert (first.has_lease, status_of(row)) == (False, "Pending")


@pytest.fixture
def alive(settings: Settings, tmp_path: Path) -> Path:
    """The file of the health check."""
    settings.ALIVE_FILE = str(tmp_path / "alive")
    return tmp_path / "alive"


def test_a_worker_with_running_loops_touches_the_file_and_one_with_a_stuck_loop_exits(alive: Path) -> None:
    both, ends = [Scripted(), Scripted()], list[int]()
    watchdog = Watchdog(both, end=ends.append)
    watchdog.check()
    assert (alive.exists(), ends) == (True, [])
    alive.unlink()
    both[1].last_run_at = time.monotonic() - worker._STUCK_SECONDS
    watchdog.check()
    assert (alive.exists(), ends) == (False, [1])


class Idle(Broadcasting):
    """Turns, reports no failure, and sends nothing."""

    def work(self) -> int:
        return 0


@pytest.fixture
def overdue(accept: Accept) -> RelayTransaction:
    """A call that should have been sent five minutes ago."""
    row = accept()
    row.attempts.update(created_at=later(-300))
    return row


def test_a_worker_that_stalls_with_sending_due_is_unhealthy_and_exits(
    overdue: RelayTransaction, alive: Path, caplog: pytest.LogCaptureFixture
) -> None:
    loop, ends = Idle(owner="one@host"), list[int]()
    watchdog = Watchdog([loop], end=ends.append)
    watchdog.check()
    # Another worker may do it: this one has no lease.
    assert (alive.exists(), ends) == (True, [])
    alive.unlink()
    with running(loop):
        until("it has the lease", lambda: loop.has_lease)
        watchdog.check()
        # It was due before this process began.
        assert (alive.exists(), ends) == (False, [])
        watchdog._began_at -= 1_000
        watchdog.check()
        assert (alive.exists(), ends) == (False, [1])
    assert [record.levelname for record in caplog.records if record.name == "relay.worker"] == [
        "ERROR",
        "CRITICAL",
    ]


def test_a_worker_that_sends_is_healthy_while_one_call_is_overdue(
    overdue: RelayTransaction, accept: Accept, alive: Path
) -> None:
    query("UPDATE relay_attempt SET node_message = 'txpool is full' WHERE id = %s", overdue.attempts.get().pk)
    assert loops.stalls() == []
    query("UPDATE relay_attempt SET node_message = ''")
    assert [stall.loop for stall in loops.stalls()] == ["broadcasting"]
    lease = LoopLease(loop="broadcasting", owner="one@host")
    assert lease.hold()
    lease.note(succeeded=True, moved=1)
    lease._renew_at = 0.0
    assert lease.hold()
    assert loops.stalls() == []


def test_a_mined_unsettled_call_is_due_once_it_is_confirmed(
    overdue: RelayTransaction, chain: Chain, settings: Settings
) -> None:
    broadcast_all()
    assert loops.stalls() == []
    chain.mine()
    track()
    assert loops.stalls() == []
    overdue.attempts.update(
        mined_at=later(-3 * settings.CHAIN_BLOCK_SECONDS - settings.RELAY_STALL_SECONDS - 9)
    )
    [stall] = loops.stalls()
    assert (stall.loop, round(stall.seconds, -1)) == ("tracking", settings.RELAY_STALL_SECONDS + 10)
    chain.mine(project.CONFIRMATIONS)
    assert track() == 1
    assert loops.stalls() == []


def test_while_the_nodes_are_away_nothing_is_due(
    overdue: RelayTransaction, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeChain()
    monkeypatch.setattr(loops, "get_chain_client", lambda: fake)
    assert [stall.loop for stall in loops.stalls()] == ["broadcasting"]
    with fake.away():
        assert loops.stalls() == []


def test_while_the_database_takes_no_writes_nothing_is_due(overdue: RelayTransaction) -> None:
    assert [stall.loop for stall in loops.stalls()] == ["broadcasting"]
    with transaction.atomic():
        query("SET LOCAL transaction_read_only = on")
        assert loops.stalls() == []


def fake_worker(*queues: str, pool: Any = solo) -> Any:
    """Return what a step knows of its worker."""
    amqp = SimpleNamespace(queues=SimpleNamespace(consume_from=dict.fromkeys(queues)))
    return SimpleNamespace(
        app=SimpleNamespace(amqp=amqp), pool_cls=pool.TaskPool, hostname="one@host", steps=[]
    )


def test_only_a_worker_of_the_relay_queue_runs_the_loops() -> None:
    assert "relay.worker:RelayLoops" in app.steps["worker"]
    for queues, included in ((["relay"], True), (["default", "relay"], True), (["default"], False)):
        one = fake_worker(*queues)
        assert RelayLoops(one).include(one) is included


def test_a_worker_that_forks_refuses_to_run_them() -> None:
    for pool in (solo, thread):
        one = fake_worker("relay", pool=pool)
        assert RelayLoops(one).include(one)
    forking = fake_worker("relay", pool=prefork)
    with pytest.raises(ImproperlyConfigured, match="--pool solo"):
        RelayLoops(forking).include(forking)


def test_a_worker_refuses_to_run_without_a_chain_that_has_open_calls(
    foreign: ForeignChain, user: User, profile: Profile, settings: Settings
) -> None:
    with on_chain(foreign.id):
        execute(user=user, call=foreign.sign(profile), now=timezone.now())
    one, with_chain = fake_worker("relay"), settings.CHAINS
    settings.CHAINS = {}
    with pytest.raises(ImproperlyConfigured) as refusal:
        RelayLoops(one).include(one)
    assert str(refusal.value) == (
        f"Chain {foreign.id} is not in CHAINS and has calls in progress: 1. "
        f"Add the chain again with CHAIN_{foreign.id}_TAKES_CALLS=False until they have ended."
    )
    # Other workers, and this one while the database is unavailable, start.
    other = fake_worker("default")
    assert not RelayLoops(other).include(other)
    with patch.object(worker, "removed_chains_with_open_calls", side_effect=OperationalError):
        assert RelayLoops(one).include(one)

    settings.CHAINS = with_chain
    with on_chain(foreign.id):
        broadcast_all()
        foreign.mine(2)
        assert track() == 1
    settings.CHAINS = {}
    assert RelayLoops(one).include(one)


def test_the_loops_end_with_the_worker_and_leave_no_lease(relayers: object) -> None:
    one = fake_worker("relay")
    step = RelayLoops(one)
    before = set(threading.enumerate())
    step.start(one)
    until("both have turned", lambda: WorkerLoop.objects.count() == 2)
    step.stop(one)
    # The node's threads stay for the process.
    assert {thread.name[:5] for thread in set(threading.enumerate()) - before} <= {"node_"}
    assert query("SELECT count(*) FROM gateway_common_lease WHERE expires_at > now()") == [(0,)]
    connection.close()
