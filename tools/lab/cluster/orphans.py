"""
Reaps orphaned processes, as a host's init does.

Patroni starts PostgreSQL as a daemon, so this process becomes its parent. Unless it is reaped after its end, its id
remains, and Patroni assumes that it is running.
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
    """Reap every orphaned PostgreSQL during the block."""
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
