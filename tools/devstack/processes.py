"""The processes of the service itself: web, worker and beat."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from devstack.environment import environment_of
from devstack.files import PROJECT
from devstack.services.server import Server, status_of


class GatewayProcess(Server):
    """One process of the service; `directory` and `python` are another checkout's where one is tried."""

    python = sys.executable

    def __init__(self, log_directory: Path, environment: Mapping[str, str]) -> None:
        super().__init__(PROJECT, log_directory, environment)


class Web(GatewayProcess):
    """The web server, as the image runs it; STACK_WEB_INTERFACE=wsgi runs the entry point for other servers."""

    name: ClassVar[str] = "web"
    interface: str = os.environ.get("STACK_WEB_INTERFACE", "rsgi")

    def __init__(
        self,
        log_directory: Path,
        environment: Mapping[str, str],
        *,
        port: int,
        processes: int = 1,
        host: str = "127.0.0.1",
    ) -> None:
        super().__init__(log_directory, environment)
        self._host, self._port, self._processes = host, port, processes

    def command(self) -> list[str]:
        """Return the foreground server; `WEB_THREADS` is the number of threads per process."""
        address = ["--host", self._host, "--port", str(self._port)]
        size = ["--workers", str(self._processes), "--http", "1", "--no-ws", "--backpressure", "65536"]
        # Without this limit, the server waits while its workers are busy.
        ending = ["--workers-kill-timeout", "5", "--respawn-failed-workers"]
        logs = ["--log-config", "gateway/server-logging.json"]
        options = ["--interface", self.interface, *address, *size, *ending, *logs]
        if self.interface == "wsgi":
            options += ["--blocking-threads", (self.environment or {}).get("WEB_THREADS", "32")]
        application = {"rsgi": "gateway.web.rsgi", "wsgi": "gateway.wsgi"}[self.interface]
        if (self.directory / "gateway" / "rsgi.py").exists():  # a checkout from before version 1.0
            application = "gateway.rsgi"
        return [self.python, "-m", "granian", *options, f"{application}:application"]

    def answers(self) -> bool:
        """Return whether it takes requests; it is ready only once the relay worker works too."""
        return status_of(f"{self.url}/healthz") == 200

    @property
    def url(self) -> str:
        """Its base URL."""
        return f"http://{self._host}:{self._port}"


class Worker(GatewayProcess):
    """The Celery worker of every queue; the relay loops need a pool that does not fork."""

    name: ClassVar[str] = "worker"
    queues: ClassVar[str] = "relay,default"
    pool: ClassVar[str] = "threads"
    concurrency: ClassVar[int] = 2

    def command(self) -> list[str]:
        """Return the foreground worker."""
        quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
        size = ["--queues", self.queues, "--pool", self.pool, "--concurrency", str(self.concurrency)]
        name = ["--hostname", f"{self.name}@%h"]
        return [
            self.python,
            "-m",
            "celery",
            "-A",
            "gateway",
            "worker",
            *size,
            "--loglevel",
            "INFO",
            *name,
            *quiet,
        ]

    def answers(self) -> bool:
        """Return whether it has reported that it takes tasks."""
        return " ready" in self.said()


class RelayWorker(Worker):
    """The worker of relay calls alone, as `compose.yaml` runs it."""

    name: ClassVar[str] = "worker-relay"
    queues: ClassVar[str] = "relay"
    pool: ClassVar[str] = "solo"
    concurrency: ClassVar[int] = 1


class DefaultWorker(Worker):
    """The worker of everything else, as `compose.yaml` runs it."""

    name: ClassVar[str] = "worker-default"
    queues: ClassVar[str] = "default"
    pool: ClassVar[str] = "prefork"
    concurrency: ClassVar[int] = 4


class Beat(GatewayProcess):
    """Celery beat, which gets only the secrets that it uses, as in production."""

    name: ClassVar[str] = "beat"

    def __init__(self, log_directory: Path, environment: Mapping[str, str]) -> None:
        super().__init__(log_directory, environment_of("beat", environment))

    def command(self) -> list[str]:
        """Return the foreground process; its schedule is kept beside its log."""
        schedule = ["--schedule", str(self.log_path.with_suffix(".schedule")), "--pidfile", ""]
        return [self.python, "-m", "celery", "-A", "gateway", "beat", *schedule, "--loglevel", "INFO"]

    def answers(self) -> bool:
        """Return whether it has reported its start."""
        return "beat: Starting" in self.said()


class Eraser(GatewayProcess):
    """The job that erases deleted accounts, with the environment of the owner of the tables."""

    name: ClassVar[str] = "eraser"
    every_seconds: ClassVar[int] = 10

    def __init__(self, log_directory: Path, environment: Mapping[str, str]) -> None:
        super().__init__(log_directory, environment_of("eraser", environment))

    def command(self) -> list[str]:
        """Return the foreground job."""
        return [self.python, "manage.py", "erase_deleted_accounts", "--every", str(self.every_seconds)]

    def answers(self) -> bool:
        """Always True: the start does not wait for it."""
        return True
