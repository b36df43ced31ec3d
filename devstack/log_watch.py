"""Shows on the console what is grave in the logs of the parts."""

from collections.abc import Iterable
from pathlib import Path

from devstack.console import complain

_GRAVE = (b'"level": "error"', b'"level": "critical"', b": ERROR/", b": CRITICAL/", b"Traceback (most recent")
_WIDTH = 240


class LogWatch:
    """Reads each log from where it stood the last time."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._positions = dict.fromkeys(paths, 0)

    def report(self) -> None:
        """Print the grave lines that were written since the last report."""
        for path in self._positions:
            for line in self._new_lines(path):
                if any(mark in line for mark in _GRAVE):
                    complain(f"  ! {path.stem}: {line.decode(errors='replace')[:_WIDTH]}")

    def _new_lines(self, path: Path) -> list[bytes]:
        if not path.exists():
            return []
        with path.open("rb") as log:
            log.seek(self._positions[path])
            whole, newline, _ = log.read().rpartition(b"\n")
        self._positions[path] += len(whole) + len(newline)
        return whole.splitlines()
