"""Watching over running processes: when one ends by itself, all end; what is grave in their logs is shown."""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from devstack.console import echo_error
from devstack.services.server import Server, ServerFailed

_POLL_SECONDS = 0.2
_ERROR_MARKS = (
    b'"level": "error"',
    b'"level": "critical"',
    b": ERROR/",
    b": CRITICAL/",
    b"Traceback (most recent",
)
_WIDTH = 240


def supervise(
    servers: Sequence[Server], job: Callable[[], int | None], *, logs_of: Sequence[Server] = ()
) -> int:
    """
    Run `job` beside the servers; return the number that it returns, or go on for good where it returns None.

    A server that ends by itself ends this with `ServerFailed`, a signal with `SystemExit`; the caller
    stops the servers. Grave lines in the logs of `logs_of` are printed as they come.
    """
    running, logs = _Job(job), LogWatch(server.log_path for server in logs_of)
    running.start()
    while running.result is None:
        logs.report()
        for server in servers:
            if server.has_ended:
                raise ServerFailed(f"{server.name} ended by itself: {server.last_words()}")
        if running.error is not None:
            raise running.error
        time.sleep(_POLL_SECONDS)
    return running.result


class _Job(threading.Thread):
    """A function in a thread that nobody waits for when the stack stops."""

    def __init__(self, job: Callable[[], int | None]) -> None:
        super().__init__(daemon=True)
        self._job = job
        self.result: int | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        """Keep what the function returns or raises for the thread that watches."""
        try:
            self.result = self._job()
        except BaseException as error:  # noqa: BLE001 - raised again by `supervise`
            self.error = error


class LogWatch:
    """Reads each log from where it stopped the last time."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._positions = dict.fromkeys(paths, 0)

    def report(self) -> None:
        """Print the grave lines that were written since the last report."""
        for path in self._positions:
            for line in self._new_lines(path):
                if any(mark in line for mark in _ERROR_MARKS):
                    echo_error(f"  ! {path.stem}: {line.decode(errors='replace')[:_WIDTH]}")

    def _new_lines(self, path: Path) -> list[bytes]:
        if not path.exists():
            return []
        with path.open("rb") as log:
            log.seek(self._positions[path])
            lines, newline, _ = log.read().rpartition(b"\n")
        self._positions[path] += len(lines) + len(newline)
        return lines.splitlines()
