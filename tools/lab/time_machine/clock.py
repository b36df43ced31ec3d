"""
One clock for all processes, which can be moved on.

`libfaketime`, preloaded into PostgreSQL, Redis and the service's processes, adds the number in a file to the real time;
monotonic clocks stay real, so that timeouts last as long as always. Stripe's double and the chain have clocks of their
own, which are moved by their own requests. No code of the product knows of it.
"""

import subprocess
import time
from pathlib import Path

from devstack.debian import unpacked
from devstack.services.server import Server
from devstack.services.stack import Services

_PACKAGE = "libfaketime"
# Under the library, Python's `time.sleep` up to a time of the monotonic clock fails; `select` takes a duration.
_SLEEP = """import select, time
time.sleep = lambda seconds: select.select([], [], [], max(0, seconds)) and None
"""


class TimeMachine:
    """The time of a stack; `offset` is how many seconds it is ahead of the real one."""

    def __init__(self, services: Services, directory: Path) -> None:
        """Fetch the library; the servers that are given to `preload` restart with it."""
        self._services, self.offset = services, 0
        self._file = directory / "clock"
        self._library = _library()
        self._modules = directory / "modules"
        self._modules.mkdir()
        (self._modules / "sitecustomize.py").write_text(_SLEEP)
        services.stripe.controls.signed_at("account")
        self._write()

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables of a process whose time is the machine's."""
        return {
            "LD_PRELOAD": str(self._library),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "PYTHONPATH": str(self._modules),
        }

    @property
    def now(self) -> int:
        """The current second."""
        return int(time.time()) + self.offset

    def preload(self, *servers: Server) -> None:
        """Restart these servers with the machine's time."""
        for server in servers:
            server.stop()
            server.prefix = ["env", *(f"{name}={text}" for name, text in self.environment.items())]
            server.start()
            server.wait()

    def move(self, seconds: int) -> None:
        """
        Let this time pass everywhere. Webhooks of the time in between arrive at its end.

        What falls due at Stripe happens at its own second; the service and its tasks find the time moved at once.
        """
        controls = self._services.stripe.controls
        controls.hold()
        self.offset += seconds
        controls.advance_to(self.now)
        self._write()
        rpc = self._services.node.rpc
        rpc.call("evm_increaseTime", seconds)
        rpc.call("evm_mine")
        controls.release()

    def _write(self) -> None:
        draft = self._file.with_suffix(".new")
        draft.write_text(f"+{self.offset}\n")
        draft.chmod(0o644)
        draft.rename(self._file)


def _library() -> Path:
    try:
        root = unpacked(_PACKAGE, _PACKAGE, only="./usr/lib/*")
    except (OSError, subprocess.CalledProcessError) as error:
        raise RuntimeError(
            "The time machine needs Debian's package libfaketime, by apt-get and dpkg-deb."
        ) from error
    return next(root.rglob("libfaketimeMT.so.1"))
