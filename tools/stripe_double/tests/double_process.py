"""The double as a process of these tests: `python -m stripe_double` on a free port of the loopback interface."""

import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import urllib3

from stripe_double.account import publishable_key
from stripe_double.client import ControlClient

_PROJECT = Path(__file__).parents[1]
_START_SECONDS, _STOP_SECONDS = 120, 60


class DoubleProcess:
    """One Stripe account with random keys; it outlives the process in its folder."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"http://127.0.0.1:{self._port}"
        self.secret_key = f"sk_test_{secrets.token_hex(24)}"
        self.publishable_key = publishable_key(self.secret_key)
        self.controls = ControlClient(self.url, self.secret_key)

    @contextmanager
    def running(self) -> Iterator[Self]:
        """Run the process for the length of the block."""
        options = ["--port", str(self._port), "--data", str(self._directory), "--secret-key", self.secret_key]
        command = [sys.executable, "-m", "stripe_double", *options]
        with subprocess.Popen(command, cwd=_PROJECT, stdout=subprocess.DEVNULL) as self._process:
            try:
                self._wait()
                yield self
            finally:
                self._process.terminate()
                self._process.wait(_STOP_SECONDS)

    def kill(self) -> None:
        """Kill the process, as a power failure would."""
        if self._process is not None:
            self._process.kill()

    def _wait(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while not _is_healthy(self.url):
            if time.monotonic() > deadline or (self._process and self._process.poll() is not None):
                raise RuntimeError("The double did not start; its traceback is above.")
            time.sleep(0.02)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _is_healthy(url: str) -> bool:
    try:
        return urllib3.request("GET", f"{url}/healthz", retries=False, timeout=5).status == 200
    except urllib3.exceptions.HTTPError:
        return False
