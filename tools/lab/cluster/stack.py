"""The whole cluster: started in order, supervised, and removed."""

import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from devstack.ad_networks.demo import VerifierKeys, serve_verifier_keys
from devstack.console import step
from devstack.preparation import Plan, Prepared, prepare
from devstack.processes import Beat, DefaultWorker, RelayWorker, Web
from devstack.rpc import Rpc
from devstack.services.anvil import Anvil
from devstack.services.pgbouncer import pgbouncer_program
from devstack.services.postgres import APPLICATION_ROLE, BINARIES
from devstack.services.server import Server, wait_until
from devstack.services.stripe_double import StripeDouble
from devstack.services.template import copy_template
from devstack.signing import KeyPlace, SignerEndpoint, signing_at
from devstack.stack_file import described
from devstack.world.profiles import ProfilePlan
from devstack.world.world import load_world
from lab.cluster import network, orphans, programs, settings
from lab.cluster.certificates import Authority
from lab.cluster.network import OUTSIDE, Host, network_of
from lab.cluster.outside import ClusterOutside, owner_url
from lab.cluster.servers import (
    Balancer,
    Etcd,
    Patroni,
    Pooler,
    ReplicatedRedis,
    Sentinel,
    is_reachable,
    on,
)

BLOCK_SECONDS = 2
_PROFILES, _CREDITS, _RELAYERS = 16, 10**9, 16
_START_SECONDS = 240
_BASE_URL = f"http://{network.FRONT.address}:{settings.WEB_PORT}"
# Tokens are valid for a whole run, and no limit stops wallets after many failed calls.
_SETTINGS = {
    "PUBLIC_URL": _BASE_URL,
    "AUTH_DOMAIN": f"{network.FRONT.address}:{settings.WEB_PORT}",
    "ALLOWED_HOSTS": ",".join(host.address for host in (network.FRONT, *network.WEBS)),
    "TRUSTED_PROXY_COUNT": "1",
    "DATABASE_REPLICA_URL": f"postgresql://{APPLICATION_ROLE}@127.0.0.1:{settings.POOL_PORT}/{settings.READING_DATABASE}",
    "AUTH_ACCESS_SECONDS": "86400",
    "RELAY_CANCELLED_CALLS_PER_HOUR": "1000000",
    # One user may lose a fiftieth.
    "RELAY_LOSS_PER_HOUR_WEI": str(50 * 10**20),
    # One process per component and few threads, because all share one machine.
    "WEB_THREADS": "8",
}


class SmallDefaultWorker(DefaultWorker):
    """The worker of all other queues, as one process."""

    pool = "threads"
    concurrency = 2


@dataclass(frozen=True)
class Cluster:
    """The running servers by host and kind, such as `web1-web` and `db2-patroni`."""

    outside: ClusterOutside
    servers: Mapping[str, Server]
    prepared: Prepared
    # of the signer
    journal: Path
    metrics_token: str
    synchronous: bool = True
    base_url: str = _BASE_URL

    @property
    def profiles(self) -> list[dict[str, Any]]:
        """The profiles with credits, in the format of load generators."""
        return described(self.prepared.profiles)

    def patroni(self, host: Host) -> Patroni:
        """Return the Patroni of a host."""
        server = self.servers[f"{host.name}-patroni"]
        assert isinstance(server, Patroni)  # noqa: S101 - for the type checker
        return server

    def redis(self, host: Host) -> ReplicatedRedis:
        """Return a host's Redis."""
        server = self.servers[f"{host.name}-redis"]
        assert isinstance(server, ReplicatedRedis)  # noqa: S101 - for the type checker
        return server


@contextmanager
def running_cluster(directory: Path, *, synchronous: bool = True) -> Iterator[Cluster]:
    """
    Run the cluster with temporary hosts and data under `directory`.

    Without `synchronous`, commits wait for no standby.
    """
    directory = directory.resolve()
    shutil.rmtree(directory, ignore_errors=True)
    password = secrets.token_hex(16)
    started: dict[str, Server] = {}
    try:
        with network_of(network.ALL), orphans.noted(), serve_verifier_keys(OUTSIDE) as verifier_keys:
            try:
                with step("programs of the cluster"):
                    programs.etcd(), programs.haproxy(), programs.patroni(), pgbouncer_program()
                outside = _start_outside(directory, verifier_keys, password, started, synchronous=synchronous)
                cluster = _start_service(outside, directory, started)
                yield replace(cluster, synchronous=synchronous)
            finally:
                # The data is temporary, so servers are killed. PostgreSQL outlives Patroni and is killed with its host.
                for server in started.values():
                    server.stop(patience=0)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _start_outside(
    directory: Path,
    verifier_keys: VerifierKeys,
    password: str,
    started: dict[str, Server],
    *,
    synchronous: bool,
) -> ClusterOutside:
    logs = directory / "log"
    anvil = Anvil(directory / "anvil", logs, block_time=BLOCK_SECONDS, host=OUTSIDE)
    stripe = StripeDouble(directory / "stripe", logs, host=OUTSIDE)
    with step("PostgreSQL under Patroni, etcd, Redis with Sentinels, the chain, the Stripe double"):
        _start({_name(server): server for server in (anvil, stripe)}, started)
        _start_databases(directory, password, started, synchronous=synchronous)
    outside = ClusterOutside(
        anvil, stripe, verifier_keys, load_world(Rpc(anvil.url), directory / "world.json"), password
    )
    outside.empty_database()
    return outside


def _start_databases(
    directory: Path, password: str, started: dict[str, Server], *, synchronous: bool
) -> None:
    hosts = network.DATABASES
    logs, first = directory / "log", hosts[0]
    template = directory / "template"
    copy_template(template)
    balancer = on(
        network.FRONT, Balancer(network.FRONT, hosts, directory / network.FRONT.name, logs, webs=network.WEBS)
    )
    servers = [
        on(host, server)
        for host in hosts
        for folder in [directory / host.name]
        for server in (
            Etcd(host, hosts, folder, logs),
            ReplicatedRedis(host, first, folder, logs),
            Sentinel(host, first, folder, logs),
        )
    ]
    _start({_name(server): server for server in (*servers, balancer)}, started)
    patronis = []
    for host in hosts:
        folder = directory / host.name
        configuration = settings.patroni(
            host,
            hosts,
            folder=folder / "postgres",
            binaries=BINARIES,
            template=template,
            password=password,
            synchronous=synchronous,
        )
        patronis.append(on(host, Patroni(host, configuration, folder, logs)))
    _start({_name(server): server for server in patronis}, started)
    wait_until(
        lambda: is_reachable(owner_url(password, "postgres")),
        "PostgreSQL has no primary",
        seconds=_START_SECONDS,
    )
    wait_until(
        lambda: any(server.is_synchronous if synchronous else server.is_standby for server in patronis),
        "PostgreSQL has no standby",
        seconds=_START_SECONDS,
    )


def _start_service(outside: ClusterOutside, directory: Path, started: dict[str, Server]) -> Cluster:
    logs = directory / "log"
    mine = _SETTINGS | {"METRICS_TOKEN": secrets.token_hex(32)}
    plan = Plan(
        [ProfilePlan() for _ in range(_PROFILES)], credits=_CREDITS, relayers=_RELAYERS, settings=mine
    )
    prepared = prepare(outside, directory, plan, port=settings.WEB_PORT, block_time=BLOCK_SECONDS)
    endpoint = _signer_endpoint(directory / "certificates")
    signing = signing_at(KeyPlace.KEYSTORE, outside, prepared.secrets, directory, prepared.settings, endpoint)
    prepared = replace(prepared, settings=signing.settings)
    (signer,) = signing.processes
    with step("signer, tables, profiles with credits"):
        _start({_name(signer): signer}, started)
        prepared.seed()
    environment = prepared.environment
    servers: list[Server] = []
    for host in (*network.WEBS, *network.WORKERS):
        folder = directory / host.name
        servers.append(on(host, Balancer(host, network.DATABASES, folder, logs)))
        servers.append(on(host, Pooler(folder, logs, password=outside.password)))
    servers += [
        on(host, Web(logs, environment, port=settings.WEB_PORT, processes=1, host=host.address))
        for host in network.WEBS
    ]
    for host in network.WORKERS:
        servers.append(on(host, RelayWorker(logs, environment)))
        servers.append(on(host, Beat(logs, environment)))
    servers.append(on(network.WORKERS[0], SmallDefaultWorker(logs, environment)))
    with step("web, workers and clocks"):
        _start({_name(server): server for server in servers}, started)
    assert signing.journal is not None  # noqa: S101 - for the type checker
    return Cluster(outside, started, prepared, signing.journal, plan.settings["METRICS_TOKEN"])


def _signer_endpoint(folder: Path) -> SignerEndpoint:
    place = f"{OUTSIDE}:{settings.SIGNER_PORT}"
    authority = Authority(folder)
    signers, services = authority.vouch_for("signer", OUTSIDE), authority.vouch_for("service", OUTSIDE)
    return SignerEndpoint(f"tls://{place}", f"https://{place}", signers, services)


def _name(server: Server) -> str:
    return server.log_path.stem


def _start(servers: Mapping[str, Server], started: dict[str, Server]) -> None:
    """Start servers concurrently and wait for all; each is in `started` immediately."""
    for name, server in servers.items():
        started[name] = server
        server.start()
    for server in servers.values():
        if not isinstance(server, Patroni):
            server.wait(_START_SECONDS)
