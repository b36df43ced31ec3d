"""A Docker engine: the one that is running, or one of this command's own where its programs are installed."""

import http.client
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devstack.console import step

_START_SECONDS = 60


class NoEngine(RuntimeError):
    """No engine runs and none can be started, or Compose is missing; the text names the cause."""


@dataclass(frozen=True)
class Usage:
    """Processor seconds since the container's start, and memory in bytes without caches of files."""

    cpu_seconds: float
    memory_bytes: int


@dataclass(frozen=True)
class Engine:
    """An engine at a unix socket."""

    socket: str

    @property
    def environment(self) -> dict[str, str]:
        """The environment of commands that use it."""
        # Without the plugin that bakes, Compose builds with what the engine has.
        return {**os.environ, "DOCKER_HOST": f"unix://{self.socket}", "COMPOSE_BAKE": "false"}

    def docker(self, *arguments: str, given: str | None = None) -> str:
        """Run a command of the client; return what it prints."""
        done = subprocess.run(
            ["docker", *arguments],
            env=self.environment,
            input=given,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"docker {' '.join(arguments[:3])}: {done.stderr.strip()[-500:]}")
        return done.stdout.strip()

    def inspect(self, container: str) -> dict[str, Any]:
        """Return what the engine knows about a container."""
        found: list[dict[str, Any]] = json.loads(self.docker("inspect", container))
        return found[0]

    def usage(self, container: str) -> Usage:
        """Return what a container has used, with its health checks."""
        connection = _Connection(self.socket)
        connection.request("GET", f"/containers/{container}/stats?stream=false&one-shot=true")
        stats = json.loads(connection.getresponse().read())
        connection.close()
        memory = stats["memory_stats"]
        cached = memory.get("stats", {})
        idle = cached.get("total_inactive_file", cached.get("inactive_file", 0))
        return Usage(stats["cpu_stats"]["cpu_usage"]["total_usage"] / 1e9, memory.get("usage", 0) - idle)


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("engine", timeout=60)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


@contextmanager
def engine_at_hand(directory: Path) -> Iterator[Engine]:
    """
    Give the engine of DOCKER_HOST or the usual socket; else start one whose images stay in `directory`.

    Raises:
        NoEngine: there is none, or Compose is missing.
    """
    if shutil.which("docker") is None:
        raise NoEngine("the client `docker` is not installed")
    named = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").removeprefix("unix://")
    if _answers(named):
        yield _with_compose(Engine(named))
        return
    if shutil.which("dockerd") is None or os.geteuid() != 0:
        raise NoEngine("no engine runs, and only root with `dockerd` can start one")
    directory.mkdir(parents=True, exist_ok=True)
    path = str(directory / "docker.sock")
    folders = [f"--{name}={directory / name}" for name in ("data-root", "exec-root", "pidfile")]
    with (directory / "engine.log").open("wb") as log:
        server = subprocess.Popen(["dockerd", *folders, "-H", f"unix://{path}"], stdout=log, stderr=log)
    try:
        with step("starting a Docker engine"):
            _wait_for(path, server, log=directory / "engine.log")
        yield _with_compose(Engine(path))
    finally:
        server.terminate()
        server.wait()


def _wait_for(path: str, server: subprocess.Popen[bytes], *, log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not _answers(path):
        if server.poll() is not None or time.monotonic() > deadline:
            raise NoEngine(f"the engine does not start: {log.read_text()[-500:]}")
        time.sleep(0.5)


def _answers(path: str) -> bool:
    environment = {**os.environ, "DOCKER_HOST": f"unix://{path}"}
    asked = subprocess.run(
        ["docker", "version", "--format", "{{.Server.Version}}"],
        env=environment,
        capture_output=True,
        check=False,
    )
    return asked.returncode == 0


def _with_compose(engine: Engine) -> Engine:
    try:
        engine.docker("compose", "version")
    except RuntimeError as error:
        raise NoEngine("Compose, the plugin of Docker's client, is not installed") from error
    return engine
