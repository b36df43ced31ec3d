"""
`python -m lab.chaos.periodic SECONDS`: send the periodic tasks one by one, far more often than beat does.

It runs in the service's environment until it is stopped. For the given time it sends tasks quickly, so that each
process of the worker runs each task; afterwards slowly, because some tasks read whole tables.
"""

import sys
import time
from collections.abc import Mapping
from itertools import cycle
from pathlib import Path
from typing import ClassVar

from devstack.processes import GatewayProcess

_QUICKLY_SECONDS, _SLOWLY_SECONDS = 0.4, 10.0


class Periodic(GatewayProcess):
    """The process that sends them."""

    name: ClassVar[str] = "periodic"

    def __init__(self, log_directory: Path, environment: Mapping[str, str], *, quick_seconds: float) -> None:
        super().__init__(log_directory, environment)
        self._quick_seconds = quick_seconds

    def command(self) -> list[str]:
        """Return the foreground process."""
        return [sys.executable, "-m", "lab.chaos.periodic", str(self._quick_seconds)]

    def answers(self) -> bool:
        """Return whether it has sent a task."""
        return bool(self.said())


def main() -> None:
    """Send them in turn."""
    from gateway.celery import app  # this import takes seconds and needs the service's settings

    began, quick_seconds = time.monotonic(), float(sys.argv[1])
    for name in cycle(sorted({str(entry["task"]) for entry in app.conf.beat_schedule.values()})):
        app.send_task(name)
        print(name, flush=True)
        is_quick = time.monotonic() - began < quick_seconds
        time.sleep(_QUICKLY_SECONDS if is_quick else _SLOWLY_SECONDS)


if __name__ == "__main__":
    main()
