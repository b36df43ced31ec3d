"""The log of every process, the signer's and the service's: JSON lines on standard error that block no caller."""

import json
import logging
import multiprocessing.util
import os
import threading
import traceback
from collections import deque
from collections.abc import Callable
from typing import Any

import structlog

logger = logging.getLogger(__name__)
_STANDARD_ERROR = 2
# The size of the lines that wait for standard error; further ones are dropped.
_MAX_WAITING_BYTES = 4 * 1024 * 1024
# How long the end of a process waits for its last lines.
_FLUSH_SECONDS = 3.0


class Output:
    """
    Standard error behind a bounded buffer, which a thread empties. Thread-safe.

    If the log's reader stalls, the buffer fills up, and further lines are dropped and counted.
    """

    def __init__(self) -> None:
        # What else happens to each dropped line; it must not log.
        self.on_drop: Callable[[], None] = lambda: None
        self._reset()
        os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        """Begin without a thread, which a forked process does not have. The lines that wait are its parent's."""
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._lines: deque[bytes] = deque()
        self._bytes = self.dropped = self._told = 0

    def put(self, line: str) -> None:
        """Write the line soon, or drop it."""
        data = line.encode(errors="backslashreplace")
        with self._changed:
            if self._thread is None:
                self._start()
            if self._bytes + len(data) > _MAX_WAITING_BYTES:
                self._drop()
            else:
                self._bytes += len(data)
                self._lines.append(data)
                self._changed.notify_all()

    def flush(self) -> None:
        """Wait until all lines are written, for three seconds at most."""
        with self._changed:
            self._changed.wait_for(lambda: not self._bytes, _FLUSH_SECONDS)

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._write_all, name="log", daemon=True)
        self._thread.start()
        # The server's processes end without `logging.shutdown`.
        multiprocessing.util.Finalize(None, self.flush, exitpriority=0)

    def _drop(self) -> None:
        self.dropped += 1
        self.on_drop()

    def _write_all(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._lines)
                line = self._lines.popleft()
            is_written = _write(line)
            with self._changed:
                self._bytes -= len(line)
                if not is_written:
                    self._drop()
                has_room = is_written and self._bytes < _MAX_WAITING_BYTES // 2
                untold = self.dropped - self._told if has_room else 0
                self._told += untold
                self._changed.notify_all()
            if untold:
                logger.error("%d log lines were dropped", untold)


def _write(line: bytes) -> bool:
    """Write to the descriptor itself: Python's stream has a lock, which a forked process may inherit taken."""
    try:
        while line:
            line = line[os.write(_STANDARD_ERROR, line) :]
    except OSError:
        return False
    return True


OUTPUT = Output()


class BackgroundHandler(logging.Handler):
    """Passes lines to `OUTPUT`. A critical line is the last one of a process, so it waits until it is written."""

    def createLock(self) -> None:  # noqa: N802
        """Do without a lock, because a line that waits must block no other."""
        self.lock = None

    def emit(self, record: logging.LogRecord) -> None:
        try:
            OUTPUT.put(self.format(record) + "\n")
        except Exception:  # noqa: BLE001 - as every handler of the standard library
            self.handleError(record)
        if record.levelno >= logging.CRITICAL:
            self.flush()

    def flush(self) -> None:
        OUTPUT.flush()

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Write why the line cannot be formatted, also without blocking."""
        failure = {"event": "a log line cannot be formatted", "level": "error", "logger": record.name}
        OUTPUT.put(json.dumps(failure | {"exception": traceback.format_exc()}) + "\n")


def json_formatter(*last: Any) -> structlog.stdlib.ProcessorFormatter:
    """Return a formatter for structlog's and all other loggers; `last` are processors of the rendered line."""
    return structlog.stdlib.ProcessorFormatter(
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.JSONRenderer(),
            *last,
        ],
        foreign_pre_chain=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.stdlib.add_logger_name,
            structlog.stdlib.add_log_level,
            structlog.processors.format_exc_info,
        ],
    )
