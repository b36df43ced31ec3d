"""The worker of relay calls as a process of its own: whatever Redis does, calls are sent and settled."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection, transaction
from django.db.models.functions import Now

from devstack.environment import overriding
from devstack.processes import RelayWorker
from devstack.services.redis import Redis
from devstack.services.stack import Services
from gateway.common.models import Lease
from relay.models import RelayTransaction, WorkerLoop
from relay.worker import Broadcasting
from tests.gateway.test_broker_refusals import assert_survives_every_response
from tests.journeys.waiting import until
from tests.relay.chain import Chain
from tests.relay.conftest import Accept

pytestmark = pytest.mark.django_db(transaction=True)
# Of calls that are due; a worker that makes no progress for this time exits.
_STALL_SECONDS, _NEVER_SECONDS = 10, 600


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[Redis]:
    """A broker of this test alone, which does not run yet."""
    server = Redis(tmp_path / "redis", tmp_path)
    yield server
    server.stop()


@pytest.fixture
def stall_seconds() -> int:
    """When the worker ends because it moves nothing."""
    return _NEVER_SECONDS


@pytest.fixture
def relay_worker(
    services: Services, redis: Redis, tmp_path: Path, stall_seconds: int
) -> Iterator[RelayWorker]:
    """The worker on the test's database and chain. It runs, and has never met its broker."""
    place = connection.settings_dict
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "devstack.settings",
        "DATABASE_URL": f"postgresql://{place['USER']}@/{place['NAME']}?host={place['HOST']}",
        "REDIS_URL": redis.url,
        "CHAIN_RPC_URLS": services.rpc_url,
        **overriding(RELAY_TRACK_SECONDS=1, RELAY_STALL_SECONDS=stall_seconds),
        "ALIVE_FILE": str(tmp_path / "alive"),
    }
    worker = RelayWorker(tmp_path, environment)
    worker.start()
    yield worker
    worker.stop()


@pytest.fixture
def settles(accept: Accept, chain: Chain) -> Callable[[], None]:
    """Return a check: a call that is accepted now is sent and settled soon."""

    def check() -> None:
        row = accept()
        until("the node has it", lambda: chain.knows(row.transaction_hash))
        chain.mine(settings.CONFIRMATIONS)
        until("it is settled", lambda: _status(row) == "Success")

    return check


def _status(row: RelayTransaction) -> str:
    row.refresh_from_db()
    return row.status


def test_redis_may_be_absent_hang_crash_or_refuse(
    relay_worker: RelayWorker,
    redis: Redis,
    settles: Callable[[], None],
    accept: Accept,
    tmp_path: Path,
) -> None:
    until("the loops run", lambda: WorkerLoop.objects.count() == 2)
    settles()
    assert (tmp_path / "alive").exists()

    redis.start()
    until("the worker has its broker", relay_worker.answers)
    os.kill(redis.pid, signal.SIGSTOP)
    settles()
    os.kill(redis.pid, signal.SIGCONT)
    os.kill(redis.pid, signal.SIGKILL)
    settles()

    # It stalls for longer than its lease: another worker takes the loop over, and keeps it.
    os.kill(relay_worker.pid, signal.SIGSTOP)
    Lease.objects.update(expires_at=Now())
    row = accept()
    overtaker = Broadcasting(owner="another@host")
    overtaker.start()
    until("the other has sent it", lambda: _status(row) == "Submitted")
    os.kill(relay_worker.pid, signal.SIGCONT)
    until("it tracks again", lambda: Lease.objects.exclude(owner="another@host").exists())
    assert Lease.objects.get(name__endswith="broadcasting").owner == "another@host"
    overtaker.stopping.set()
    overtaker.join()
    assert "Traceback" not in relay_worker.log_path.read_text()

    redis.start()
    redis.wait()
    assert_survives_every_response(relay_worker, redis)
    logged = len(relay_worker.log_path.read_text())
    began = time.monotonic()
    relay_worker.stop(patience=120)
    assert time.monotonic() - began < 60
    assert "Traceback" not in relay_worker.log_path.read_text()[logged:]
    assert not Lease.objects.exists()


@pytest.mark.parametrize("stall_seconds", [_STALL_SECONDS])
def test_a_worker_that_stalls_with_work_due_exits(
    relay_worker: RelayWorker, accept: Accept, relayers: object, tmp_path: Path
) -> None:
    until("the loops run", lambda: WorkerLoop.objects.count() == 2)
    os.kill(relay_worker.pid, signal.SIGSTOP)
    row = accept()
    with transaction.atomic():
        # A worker that records the sending waits for this lock, and gives up.
        row.attempts.select_for_update().get()
        os.kill(relay_worker.pid, signal.SIGCONT)
        until("the process has ended", lambda: relay_worker.has_ended)
    assert "broadcasting has stalled with work due" in relay_worker.log_path.read_text()
    assert time.time() - (tmp_path / "alive").stat().st_mtime > 5
