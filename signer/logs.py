"""Logging of all processes, the signer and the service: JSON lines that block no caller."""

import logging
import os
import queue
import sys
import threading
import time
from typing import Any

import structlog

# The number of lines that wait for standard error. Further lines are dropped, because no request may wait for a log.
_MAX_WAITING_LINES = 10_000
# How long the end of a process waits for the remaining lines.
_FLUSH_SECONDS = 3.0


class BackgroundHandler(logging.Handler):
    """
    Writes lines to standard error in a thread of its own, so that a log that nobody reads blocks no caller.

    It drops lines that do not fit into its queue. A line with their number follows once lines are read again.
    """

    def __init__(self) -> None:
        super().__init__()
        self._process_id, self._dropped = 0, 0
        self._lines: queue.Queue[str] = queue.Queue(_MAX_WAITING_LINES)

    def emit(self, record: logging.LogRecord) -> None:
        """Queue the line. Called with the handler's lock."""
        if self._process_id != os.getpid():
            self._start()
        try:
            self._lines.put_nowait(self.format(record) + "\n")
        except queue.Full:
            self._dropped += 1
        except Exception:  # noqa: BLE001 - as every handler of the standard library
            self.handleError(record)

    def flush(self) -> None:
        """Wait until all lines are written, for three seconds at most."""
        ends_at = time.monotonic() + _FLUSH_SECONDS
        while self._lines.unfinished_tasks and time.monotonic() < ends_at:
            time.sleep(0.005)

    def _start(self) -> None:
        """Start the thread; a forked process has none, and its parent writes the lines that waited."""
        self._process_id, self._dropped = os.getpid(), 0
        self._lines = queue.Queue(_MAX_WAITING_LINES)
        threading.Thread(target=self._write_all, args=[self._lines], name="log", daemon=True).start()

    def _take_dropped(self) -> int:
        self.acquire()
        dropped, self._dropped = self._dropped, 0
        self.release()
        return dropped

    def _write_all(self, lines: "queue.Queue[str]") -> None:
        while True:
            line = lines.get()
            try:
                sys.stderr.write(line)
                if dropped := self._take_dropped():
                    record = logging.LogRecord(
                        __name__, logging.ERROR, __file__, 0, "%d log lines were dropped", (dropped,), None
                    )
                    sys.stderr.write(self.format(record) + "\n")
                if lines.empty():
                    sys.stderr.flush()
            except (OSError, ValueError):
                # Standard error is closed; there is no other place for this line.
                pass
            finally:
                lines.task_done()


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
