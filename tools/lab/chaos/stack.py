"""The stack for faults: the processes of production, a proxy in front of each server, and a supervisor."""

import asyncio
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import psutil

from devstack.console import step
from devstack.ports import free_port
from devstack.preparation import Plan, Prepared, prepare
from devstack.processes import Beat, DefaultWorker, RelayWorker, Web
from devstack.services.postgres import APPLICATION_ROLE
from devstack.services.server import Server, stop_all, wait_until
from devstack.services.stack import Services, start_services
from devstack.signing import KeyPlace, Signing, signing_at
from devstack.stack_file import described, described_networks
from devstack.world.profiles import ProfilePlan
from lab.chaos.alerts import METRICS_TOKEN
from lab.chaos.http_proxy import HttpProxy, NodeProxy
from lab.chaos.postgres_proxy import PostgresProxy
from lab.chaos.proxies import Connect, Loop, Proxy, tcp

BLOCK_SECONDS = 1
WEB_PROCESSES = 2
_PROFILES, _CREDITS, _RELAYERS = 16, 10**9, 6
# Tokens are valid for a whole run, and no limit stops wallets after many failed calls.
_SETTINGS = {
    "AUTH_ACCESS_SECONDS": "86400",
    "METRICS_TOKEN": METRICS_TOKEN,
    "RELAY_CANCELLED_CALLS_PER_HOUR": "1000000",
    # One user may lose a fiftieth.
    "RELAY_LOSS_PER_HOUR_WEI": str(50 * 10**20),
}
START_SECONDS = 600
_POLL_SECONDS = 0.1
_POSTGRES_SOCKET = ".s.PGSQL.5432"


@dataclass(frozen=True)
class Proxies:
    """The proxies between the service and its servers."""

    postgres: PostgresProxy
    redis: Proxy
    nodes: tuple[NodeProxy, ...]
    stripe: HttpProxy


class Keeper(threading.Thread):
    """Restarts servers that have ended, as a container runtime would."""

    def __init__(self, servers: Mapping[str, Server]) -> None:
        super().__init__(name="keeper", daemon=True)
        self._servers = servers
        self._stopping = threading.Event()
        # Names of the servers that must not be restarted now.
        self.resting: set[str] = set()

    def run(self) -> None:
        """Check repeatedly."""
        while not self._stopping.wait(_POLL_SECONDS):
            for name, server in self._servers.items():
                if server.has_ended and name not in self.resting:
                    server.start()

    def finish(self) -> None:
        """Stop restarting servers."""
        self._stopping.set()
        self.join()


@dataclass(frozen=True)
class Stack:
    """Everything that runs, by name."""

    services: Services
    proxies: Proxies
    prepared: Prepared
    web: Web
    processes: Mapping[str, Server]
    keeper: Keeper
    networks: Mapping[str, Any] = field(default_factory=dict)
    # None without a signer.
    journal: Path | None = None

    @property
    def profiles(self) -> list[dict[str, Any]]:
        """The profiles with credits, in the format of load generators."""
        return described(self.prepared.profiles)

    def server(self, name: str) -> Server:
        """Return a server or a process of the service."""
        return next(
            server for server in (*self.services.servers, *self.processes.values()) if server.name == name
        )

    def wait_for(self, name: str) -> None:
        """Wait until a server that has ended was restarted and responds."""
        server = self.server(name)
        wait_until(lambda: not server.has_ended, f"{name} was not restarted", seconds=START_SECONDS)
        server.wait(START_SECONDS)

    @contextmanager
    def stopped(self, name: str) -> Iterator[Server]:
        """Keep a server or a process of the service stopped during the block, and start it again."""
        server = self.server(name)
        self.keeper.resting.add(name)
        server.stop()
        try:
            yield server
        finally:
            server.start()
            self.keeper.resting.discard(name)
        server.wait(START_SECONDS)

    def members(self, component: str) -> list[psutil.Process]:
        """Return the process of a component and its children."""
        with suppress(psutil.NoSuchProcess):
            first = psutil.Process(self.processes[component].pid)
            return [first, *first.children(recursive=True)]
        return []

    def owner_of(self, port: int, component: str) -> psutil.Process | None:
        """Return the process of a component that has a connection from this port."""
        for process in self.members(component):
            with suppress(psutil.Error):
                if any(link.laddr.port == port for link in process.net_connections("tcp4")):
                    return process
        return None

    def wait_for_all(self) -> None:
        """Wait until killed processes were restarted, and everything responds."""
        time.sleep(2 * _POLL_SECONDS)
        for name in self.processes:
            self.wait_for(name)
        self.wait()

    def wait(self) -> None:
        """Wait until every server, process and web worker responds."""
        for server in (*self.services.servers, *self.processes.values()):
            server.wait(START_SECONDS)
        wait_until(
            lambda: sum(map(_listens, self.members("web"))) >= WEB_PROCESSES,
            f"web lacks a process; see {self.web.log_path}",
            seconds=START_SECONDS,
        )


@contextmanager
def running_stack(
    directory: Path,
    *,
    nodes: int = 1,
    relay_workers: int = 1,
    keys: KeyPlace = KeyPlace.LOCAL,
    settings: Mapping[str, str] | None = None,
) -> Iterator[Stack]:
    """
    Run the stack with temporary data under `directory`.

    With several `nodes`, the service gets as many URLs of the one chain, each through its own proxy.
    `settings` override the stack's.
    """
    loop = Loop()
    with start_services(directory, block_time=BLOCK_SECONDS) as services:
        proxies = _proxies(loop, services, nodes)
        prepared = _prepared(services, proxies, directory, settings or {})
        signing = signing_at(keys, services, prepared.secrets, directory, prepared.settings)
        prepared = replace(prepared, settings=signing.settings)
        processes = _processes(prepared, signing, directory / "log", relay_workers)
        keeper = Keeper({server.name: server for server in (*services.servers, *processes.values())})
        try:
            with step("tables, profiles with credits, web, workers and clock"):
                for process in signing.processes:
                    process.start()
                    process.wait(START_SECONDS)
                prepared.seed()
                others = [process for process in processes.values() if process not in signing.processes]
                for process in others:
                    process.start()
                for process in others:
                    process.wait(START_SECONDS)
            keeper.start()
            web = processes["web"]
            assert isinstance(web, Web)  # noqa: S101 - for the type checker
            networks = described_networks(
                prepared.networks, base_url=web.url, admob_key=services.verifier_keys.private_key
            )
            yield Stack(services, proxies, prepared, web, processes, keeper, networks, signing.journal)
        finally:
            keeper.finish() if keeper.is_alive() else None
            stop_all(list(processes.values()))
    loop.stop()


def _proxies(loop: Loop, services: Services, nodes: int) -> Proxies:
    return Proxies(
        PostgresProxy(loop, _postgres(services)),
        Proxy(loop, tcp(lambda: _port(services.redis_url))),
        tuple(NodeProxy(loop, tcp(lambda: _port(services.rpc_url))) for _ in range(nodes)),
        HttpProxy(loop, tcp(lambda: _port(services.stripe.url))),
    )


def _postgres(services: Services) -> Connect:
    """Connect to the socket of its latest start."""
    return lambda: asyncio.open_unix_connection(str(services.postgres.socket_directory / _POSTGRES_SOCKET))


def _prepared(services: Services, proxies: Proxies, directory: Path, settings: Mapping[str, str]) -> Prepared:
    plan = Plan(
        [ProfilePlan() for _ in range(_PROFILES)],
        credits=_CREDITS,
        relayers=_RELAYERS,
        settings=_SETTINGS | dict(settings),
    )
    prepared = prepare(services, directory, plan, port=free_port(), block_time=BLOCK_SECONDS)
    # With `sslmode` other than `disable`, the first message would be an SSLRequest.
    database = f"postgresql://{APPLICATION_ROLE}@127.0.0.1:{proxies.postgres.port}/gateway?sslmode=disable&gssencmode=disable"
    behind = {
        "DATABASE_URL": database,
        "REDIS_URL": f"redis://127.0.0.1:{proxies.redis.port}/0",
        "CHAIN_RPC_URLS": ",".join(f"http://127.0.0.1:{node.port}" for node in proxies.nodes),
        "STRIPE_API_BASE": f"http://127.0.0.1:{proxies.stripe.port}",
    }
    return replace(prepared, settings=prepared.settings | behind)


def _processes(prepared: Prepared, signing: Signing, logs: Path, relay_workers: int) -> dict[str, Server]:
    environment = prepared.environment
    processes = [
        *signing.processes,
        Web(logs, environment, port=prepared.port, processes=WEB_PROCESSES),
        RelayWorker(logs, environment),
        *(_another_relay_worker(number, logs, environment) for number in range(2, relay_workers + 1)),
        DefaultWorker(logs, environment),
        Beat(logs, environment),
    ]
    return {process.name: process for process in processes}


def _another_relay_worker(number: int, logs: Path, environment: Mapping[str, str]) -> Server:
    class Another(RelayWorker):
        name: ClassVar[str] = f"{RelayWorker.name}-{number}"

    return Another(logs, environment)


def _listens(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return any(link.status == psutil.CONN_LISTEN for link in process.net_connections("tcp4"))
    return False


def _port(url: str) -> int:
    return int(url.rsplit(":", 1)[1].split("/")[0])
