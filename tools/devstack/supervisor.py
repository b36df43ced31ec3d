"""Supervises running processes: if one ends by itself, all are stopped; errors in their logs are printed."""

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
    Run `job` beside the servers; return its result, or keep running if that is None.

    Raises `ServerFailed` if a server ends by itself, and `SystemExit` on a signal; the caller stops the servers. Errors
    in the logs of `logs_of` are printed.
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
    """A function in a daemon thread."""

    def __init__(self, job: Callable[[], int | None]) -> None:
        super().__init__(daemon=True)
        self._job = job
        self.result: int | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        """Keep the function's result or error for the supervising thread."""
        try:
            self.result = self._job()
        except BaseException as error:  # noqa: BLE001 - raised again by `supervise`
            self.error = error


class LogWatch:
    """Reads the new lines of each log."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._positions = dict.fromkeys(paths, 0)

    def report(self) -> None:
        """Print the errors since the last report."""
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
