"""The parts of the service itself, as processes: web, worker and beat."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import urllib3

from devstack.paths import PROJECT
from devstack.services.server import Server


class Part(Server):
    """One process of the service; it runs in the project's folder."""

    def __init__(self, log_directory: Path, environment: Mapping[str, str]) -> None:
        super().__init__(PROJECT, log_directory, environment)


class Web(Part):
    """The web server, as the container image runs it."""

    name: ClassVar[str] = "web"

    def __init__(self, log_directory: Path, environment: Mapping[str, str], *, port: int) -> None:
        super().__init__(log_directory, environment)
        self._port = port

    def command(self) -> list[str]:
        """Return the foreground server with two processes of four threads."""
        place = ["--host", "127.0.0.1", "--port", str(self._port)]
        size = ["--workers", "2", "--blocking-threads", "4", "--http", "1", "--no-ws"]
        return [
            sys.executable,
            "-m",
            "granian",
            "--interface",
            "wsgi",
            *place,
            *size,
            "gateway.wsgi:application",
        ]

    def answers(self) -> bool:
        """Say whether it takes requests and reaches its records."""
        try:
            return urllib3.request("GET", f"{self.url}/readyz", timeout=2, retries=False).status == 200
        except urllib3.exceptions.HTTPError:
            return False

    @property
    def url(self) -> str:
        """Its base URL."""
        return f"http://127.0.0.1:{self._port}"


class Worker(Part):
    """The Celery worker of every queue."""

    name: ClassVar[str] = "worker"
    queues: ClassVar[str] = "relay,default"

    def command(self) -> list[str]:
        """Return the foreground worker with two processes."""
        quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
        size = ["--queues", self.queues, "--concurrency", "2", "--loglevel", "INFO"]
        return [sys.executable, "-m", "celery", "-A", "gateway", "worker", *size, *quiet]

    def answers(self) -> bool:
        """Say whether it has reported that it takes tasks."""
        return " ready" in self.log_path.read_text(errors="replace")


class Beat(Part):
    """The Celery clock, which gets no relayer key, as in production."""

    name: ClassVar[str] = "beat"

    def __init__(self, log_directory: Path, environment: Mapping[str, str]) -> None:
        without_keys = {name: text for name, text in environment.items() if name != "RELAY_RELAYER_KEYS"}
        super().__init__(log_directory, {**without_keys, "RELAY_SIGNER": "none"})

    def command(self) -> list[str]:
        """Return the foreground clock; where it stood is kept beside its log."""
        place = ["--schedule", str(self.log_path.with_name("beat-schedule")), "--pidfile", ""]
        place += ["--loglevel", "INFO"]
        return [sys.executable, "-m", "celery", "-A", "gateway", "beat", *place]

    def answers(self) -> bool:
        """Say whether it has reported its start."""
        return "beat: Starting" in self.log_path.read_text(errors="replace")
