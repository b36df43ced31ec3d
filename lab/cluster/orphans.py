"""
What a host's first process does: it takes note of the end of those whose parent has gone.

PostgreSQL is nobody's child once Patroni has started it, so it becomes this process's. Unless its end is noted, its id
stays, and Patroni takes it for running.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil

_POLL_SECONDS = 0.5
_NAME = "postgres"


@contextmanager
def noted() -> Iterator[None]:
    """Note the end of every orphaned PostgreSQL during the block."""
    stop = threading.Event()
    thread = threading.Thread(target=_note_until, args=(stop,), name="orphans", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _note_until(stop: threading.Event) -> None:
    this = psutil.Process()
    while not stop.wait(_POLL_SECONDS):
        for process in this.children():
            with suppress(psutil.NoSuchProcess, ChildProcessError):
                if process.name() == _NAME and process.status() == psutil.STATUS_ZOMBIE:
                    os.waitpid(process.pid, os.WNOHANG)
