"""A server of the dev stack: one foreground process with its data folder, log, probe and address."""

import os
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ClassVar, Self

import urllib3

from devstack.process_lifetime import with_death_signal


class ServerFailed(RuntimeError):
    """A server has ended or did not respond in time; the message ends with its last log lines."""


class Server(ABC):
    """One server process."""

    name: ClassVar[str]
    ending: ClassVar[signal.Signals] = signal.SIGTERM

    def __init__(
        self, directory: Path, log_directory: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        """`environment` replaces the inherited one."""
        self.directory = directory
        self.environment = environment
        self.log_path = log_directory / f"{self.name}.log"
        # A prefix of the command, such as one that enters another network namespace.
        self.prefix: Sequence[str] = ()
        self._process: subprocess.Popen[bytes] | None = None
        # Where the log of the newest start begins.
        self._log_start = 0

    @abstractmethod
    def command(self) -> list[str]:
        """Return the command that runs the server in the foreground."""

    def launch(self) -> list[str]:
        """Return `command`, wrapped to end with the process that starts it."""
        return with_death_signal(self.command(), self.ending)

    @abstractmethod
    def answers(self) -> bool:
        """Return whether the server accepts requests; False for a refused connection."""

    def prepare(self) -> None:
        """Prepare the first start of the server."""
        self.directory.mkdir(parents=True, exist_ok=True)

    def start(self) -> None:
        """Start the process; `wait` waits until it is ready."""
        self.prepare()
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        # Append, because the log before a restart shows its reason.
        with self.log_path.open("wb" if self._process is None else "ab") as log:
            self._log_start = log.seek(0, os.SEEK_END)
            self._process = subprocess.Popen(
                [*self.prefix, *self.launch()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
                env=self.environment,
                start_new_session=True,  # Ctrl-C at the terminal reaches only the supervisor
            )

    def wait(self, patience: float = 600) -> None:
        """Wait until the server responds; raise `ServerFailed` if it ends or on timeout."""
        deadline = time.monotonic() + patience
        while not self.answers():
            if self.has_ended or time.monotonic() > deadline:
                raise ServerFailed(f"{self.name} did not start: {self.last_words()}")
            time.sleep(0.1)

    @contextmanager
    def running(self) -> Iterator[Self]:
        """Run this server during the block."""
        try:
            self.start()
            self.wait()
            yield self
        finally:
            self.stop()

    @property
    def has_ended(self) -> bool:
        """Return whether the started process has ended."""
        return self._process is not None and self._process.poll() is not None

    @property
    def pid(self) -> int:
        """The process id of the started server."""
        if self._process is None:
            raise ServerFailed(f"{self.name} has not been started.")
        return self._process.pid

    def terminate(self) -> None:
        """Send the process its stop signal; `stop` waits for it."""
        if self._process is not None and not self.has_ended:
            self._process.send_signal(self.ending)

    def stop(self, patience: float = 60) -> None:
        """Stop the process and its children; kill them after `patience` seconds."""
        if self._process is None:
            return
        self.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(patience)
        self.kill()

    def kill(self) -> None:
        """Kill the process and its children."""
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def said(self) -> str:
        """Return the log since the newest start."""
        with self.log_path.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode(errors="replace")

    def last_words(self) -> str:
        """Return the path of the log and its last lines."""
        lines = self.log_path.read_text(errors="replace").splitlines()[-5:]
        return "\n  ".join([f"see {self.log_path}", *lines])


def status_of(url: str) -> int:
    """Return the status of a GET; 0 without a response in time."""
    try:
        return urllib3.request("GET", url, timeout=2, retries=False).status
    except urllib3.exceptions.HTTPError:
        return 0


def wait_until(condition: Callable[[], bool], complaint: str, *, seconds: float = 120) -> None:
    """Wait for the condition; raise `ServerFailed` on timeout."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise ServerFailed(complaint)
        time.sleep(0.1)


def stop_all(servers: Sequence[Server]) -> None:
    """Stop all of them in parallel."""
    for server in servers:
        server.terminate()
    for server in servers:
        server.stop()
