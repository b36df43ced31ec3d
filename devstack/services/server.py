"""A server of the dev stack: one foreground process with its data folder, log, probe and address."""

import errno
import fcntl
import os
import secrets
import signal
import socket
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import ClassVar, Self

import urllib3

from devstack.process_lifetime import with_death_signal

_PORTS = range(10_000, 32_000)
# Ports that this process was given.
_given: set[int] = set()


class ServerFailed(RuntimeError):
    """A server ended, or did not answer in time; the message ends with its last log lines."""


class Server(ABC):
    """One server process, from its first start until it is stopped."""

    name: ClassVar[str]
    ending: ClassVar[signal.Signals] = signal.SIGTERM

    def __init__(
        self, directory: Path, log_directory: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        """`environment` replaces the one that the process would inherit."""
        self.directory = directory
        self.environment = environment
        self.log_path = log_directory / f"{self.name}.log"
        # Words in front of the command, such as those that enter another host's network.
        self.prefix: Sequence[str] = ()
        self._process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def command(self) -> list[str]:
        """Return the command that runs the server in the foreground."""

    def launch(self) -> list[str]:
        """Return `command` tied to the life of the process that starts it."""
        return with_death_signal(self.command(), self.ending)

    @abstractmethod
    def answers(self) -> bool:
        """Return whether the server takes requests; a refused connection is a no, not an error."""

    def prepare(self) -> None:
        """Create what the server needs before its first start."""
        self.directory.mkdir(parents=True, exist_ok=True)

    def start(self) -> None:
        """Start the process; `wait` tells when it is ready."""
        self.prepare()
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        # What was written before a restart tells why there was one.
        with self.log_path.open("wb" if self._process is None else "ab") as log:
            self._process = subprocess.Popen(
                [*self.prefix, *self.launch()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
                env=self.environment,
                start_new_session=True,  # a Ctrl-C at the terminal reaches the supervisor alone
            )

    def wait(self, patience: float = 600) -> None:
        """Return once the server answers; raise `ServerFailed` when it ends or stays silent."""
        deadline = time.monotonic() + patience
        while not self.answers():
            if self.has_ended or time.monotonic() > deadline:
                raise ServerFailed(f"{self.name} did not start: {self.last_words()}")
            time.sleep(0.02)

    @contextmanager
    def running(self) -> Iterator[Self]:
        """Run this one server for the length of the block."""
        try:
            self.start()
            self.wait()
            yield self
        finally:
            self.stop()

    @property
    def has_ended(self) -> bool:
        """Return whether the process that was started is gone."""
        return self._process is not None and self._process.poll() is not None

    @property
    def pid(self) -> int:
        """The process id of the started server."""
        if self._process is None:
            raise ServerFailed(f"{self.name} has not been started.")
        return self._process.pid

    def terminate(self) -> None:
        """Ask the process to end in its orderly way; `stop` waits for it."""
        if self._process is not None and not self.has_ended:
            self._process.send_signal(self.ending)

    def stop(self, patience: float = 60) -> None:
        """End the process in its orderly way, and after `patience` seconds by force; none of its children stays."""
        if self._process is None:
            return
        self.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(patience)
        self.kill()

    def kill(self) -> None:
        """End the process and its children as a power cut would."""
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def last_words(self) -> str:
        """Return where the log is, and its last lines."""
        lines = self.log_path.read_text(errors="replace").splitlines()[-5:]
        return "\n  ".join([f"see {self.log_path}", *lines])


def status_of(url: str) -> int:
    """Return the status that a GET is answered; 0 where nothing answers in time."""
    try:
        return urllib3.request("GET", url, timeout=2, retries=False).status
    except urllib3.exceptions.HTTPError:
        return 0


def wait_until(condition: Callable[[], bool], complaint: str, *, seconds: float = 120) -> None:
    """Return once the condition holds; raise `ServerFailed` where it does not in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise ServerFailed(complaint)
        time.sleep(0.1)


def stop_all(servers: Sequence[Server]) -> None:
    """End all of them at the same time."""
    for server in servers:
        server.terminate()
    for server in servers:
        server.stop()


def free_port(preferred: int = 0) -> int:
    """
    Return a port of the loopback interface that nobody listens on now, the preferred one if it is free.

    Chosen at random below those that the kernel hands to outgoing connections: one of them could
    take the port before its server has started, or while it is stopped. For the same reason no other
    process of ours is given the port before this one has ended, and this one is given it once.
    """
    others = [port for port in secrets.SystemRandom().sample(_PORTS, 100) if port not in _given]
    for port in filter(None, (preferred, *others)):
        with suppress(OSError):
            _bind(port)
            fcntl.lockf(_claims(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
            _given.add(port)
            return port
    raise ServerFailed("No port of the loopback interface is free.")


@cache
def _claims() -> int:
    """Open the file of which each byte stands for a port: who holds its lock may have a server listen there."""
    path = Path(tempfile.gettempdir()) / f"gateway-ports-{os.getuid()}"
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)


def require_free_port(port: int) -> int:
    """Return the port; raise `ServerFailed` where another program listens on it."""
    try:
        _bind(port)
    except OSError as error:
        is_taken = error.errno == errno.EADDRINUSE
        reason = "is taken by another program" if is_taken else f"cannot be used: {error.strerror}"
        raise ServerFailed(f"port {port} {reason}") from error
    return port


def _bind(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", port))
