"""
The service that is measured: many profiles, many relayers, one-second blocks; and its processor time by process.
"""

import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import psycopg

from devstack.gateway_api import GatewayApi
from devstack.preparation import Plan, prepare
from devstack.processes import Beat, DefaultWorker, RelayWorker, Web
from devstack.services.server import Server, free_port
from devstack.services.stack import Services, start_services
from devstack.wallet import Wallet
from devstack.world.profiles import Profile, ProfilePlan

_RELAYERS, _IN_FLIGHT = 16, 64


@dataclass(frozen=True)
class BenchService:
    """A running service with signed-in wallets, and a meter of its processes."""

    base_url: str
    wallets: list[Wallet]
    meter: "Meter"
    database_url: str

    def settled(self) -> int:
        """Count the relay transactions that have ended."""
        return self._count("SELECT count(*) FROM relay_relaytransaction WHERE settled_at IS NOT NULL")

    def successes(self) -> int:
        """Count those that ended well."""
        return self._count("SELECT count(*) FROM relay_relaytransaction WHERE status = 'Success'")

    def _count(self, question: str) -> int:
        with psycopg.connect(self.database_url) as connection:
            row = connection.execute(question).fetchone()
        return int(row[0]) if row else 0


@contextmanager
def running_service(*, profiles: int) -> Iterator[BenchService]:
    """Run a whole service in a folder of its own; leave nothing of it behind."""
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as folder,
        start_services(Path(folder), block_time=1) as services,
        ExitStack() as parts,
    ):
        yield _start(services, Path(folder), profiles, parts)


def _start(services: Services, folder: Path, profiles: int, running: ExitStack) -> BenchService:
    settings = {"RELAY_MAX_IN_FLIGHT": str(_IN_FLIGHT), "LOG_LEVEL": "WARNING"}
    plan = Plan([ProfilePlan() for _ in range(profiles)], relayers=_RELAYERS, settings=settings)
    prepared = prepare(services, folder, plan, port=free_port(), block_time=1)
    prepared.seed()
    environment = prepared.environment
    web = Web(folder, environment, port=prepared.port)
    parts = (
        web,
        RelayWorker(folder, environment),
        DefaultWorker(folder, environment),
        Beat(folder, environment),
    )
    for part in parts:
        part.start()
        running.callback(part.stop)
    # At this log level the others do not log when they are ready.
    web.wait()
    meter = Meter(
        service={part.name: part for part in parts},
        beside={"PostgreSQL": services.postgres, "Redis": services.redis, "node": services.anvil},
    )
    return BenchService(
        web.url,
        [_signed_in(profile, web.url, services) for profile in prepared.profiles],
        meter,
        services.database_url,
    )


def _signed_in(profile: Profile, url: str, services: Services) -> Wallet:
    key = profile.controller.private_key
    wallet = Wallet(profile.profile_address, profile.key_manager_address, key, GatewayApi(url), services.rpc)
    wallet.sign_in()
    return wallet


@dataclass(frozen=True)
class Meter:
    """Knows the processes of the service, and those beside it: its servers, and the load generator."""

    service: Mapping[str, Server]
    beside: Mapping[str, Server]

    def read(self) -> "Reading":
        """Return the processor seconds that each kind of process has used so far."""
        return Reading(
            service={kind: _seconds(server.pid) for kind, server in self.service.items()},
            beside={kind: _seconds(server.pid) for kind, server in self.beside.items()}
            | {"load generator": time.process_time()},
            machine=_busy_seconds(),
            at=time.monotonic(),
        )


@dataclass(frozen=True)
class Reading:
    """Processor seconds by kind; `machine` is the total of all cores, `at` the time of the reading."""

    service: Mapping[str, float]
    beside: Mapping[str, float]
    machine: float
    at: float

    def since(self, earlier: "Reading") -> "Reading":
        """Return what was used since an earlier reading; `at` becomes the seconds in between."""
        return Reading(
            service={kind: now - earlier.service[kind] for kind, now in self.service.items()},
            beside={kind: now - earlier.beside[kind] for kind, now in self.beside.items()},
            machine=self.machine - earlier.machine,
            at=self.at - earlier.at,
        )

    @property
    def of_others(self) -> float:
        """The share of the machine that other processes took; the less, the more reliable the run."""
        ours = sum(self.service.values()) + sum(self.beside.values())
        return max(0.0, self.machine - ours) / (self.at * (os.cpu_count() or 1))


def _seconds(pid: int) -> float:
    """Sum over the process, its descendants, and those of them that have ended."""
    process = psutil.Process(pid)
    while True:
        try:
            return sum(_spent(member) for member in [process, *process.children(recursive=True)])
        except psutil.NoSuchProcess:
            # A descendant ended meanwhile; its time is its parent's now, which was read before.
            if not process.is_running():
                raise


def _spent(process: psutil.Process) -> float:
    spent = process.cpu_times()
    return float(spent.user + spent.system + spent.children_user + spent.children_system)


def _busy_seconds() -> float:
    spent = psutil.cpu_times()
    return float(sum(spent) - spent.idle - getattr(spent, "iowait", 0.0) - getattr(spent, "guest", 0.0))
