"""The metrics by which alerts name a fault, read while it lasts. How long a rule then waits is not awaited."""

import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import urllib3

METRICS_TOKEN = secrets.token_hex(32)
_AGAIN_SECONDS = 1.0
# A process reports what it counts every ten seconds.
_REPORTED_SECONDS = 15


@dataclass(frozen=True)
class Sign:
    """An alert, its metric, and whether a value calls for it, compared with the value before the fault."""

    alert: str
    metric: str
    calls: Callable[[float, float], bool]


def _is_zero(_: float, now: float) -> bool:
    return now == 0


REDIS = Sign("GatewayRedisAway", "gateway_redis_up", _is_zero)
READ_ONLY = Sign("GatewayDatabaseReadOnly", "gateway_database_writable", _is_zero)
LOCKED = Sign(
    "GatewayRowLocked",
    'gateway_database_errors_total{error="lock-timeout"}',
    lambda before, now: now - before > 5,
)
SESSIONS = Sign(
    "GatewaySessionsLost",
    'gateway_database_errors_total{error="session-lost"}',
    lambda before, now: now - before > 20,
)
DISK_FULL = Sign(
    "GatewayDatabaseDiskFull",
    'gateway_database_errors_total{error="disk-full"}',
    lambda before, now: now > before,
)
OPEN_READ_ONLY = Sign(
    "GatewaySessionsReadOnly",
    'gateway_database_errors_total{error="read-only"}',
    lambda before, now: now > before,
)
# While PostgreSQL is down, /metrics returns 503, so a scrape fails.
AWAY = Sign("GatewayAway", "up", _is_zero)
CLOCKS = Sign("GatewayClockSkew", "gateway_clock_ahead_seconds", lambda _, now: now > 1)


@dataclass
class Watch:
    """Reads a sign's metric at /metrics until it has called for its alert."""

    base_url: str
    sign: Sign
    is_seen: bool = False
    _before: float | None = None
    _stop: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Read repeatedly during the block, and after it until the processes have reported."""
        self._read()
        thread = threading.Thread(target=self._watch, daemon=True)
        thread.start()
        try:
            yield
            deadline = time.monotonic() + _REPORTED_SECONDS
            while not self.is_seen and time.monotonic() < deadline:
                time.sleep(_AGAIN_SECONDS)
        finally:
            self._stop.set()
            thread.join()

    def _watch(self) -> None:
        while not self.is_seen and not self._stop.wait(_AGAIN_SECONDS):
            self._read()

    def _read(self) -> None:
        """Read the largest value of the metric, apart from its sign."""
        with suppress(urllib3.exceptions.HTTPError):
            response = urllib3.request(
                "GET",
                f"{self.base_url}/metrics",
                headers={"authorization": f"Bearer {METRICS_TOKEN}"},
                timeout=10,
                retries=False,
            )
            is_up = response.status == 200
            text = f"{response.data.decode() if is_up else ''}\nup {is_up:d}"
            name = rf"^{re.escape(self.sign.metric)}(?:\{{[^}}]*\}})? (\S+)$"
            values = [abs(float(value)) for value in re.findall(name, text, re.MULTILINE)]
            if values:
                self._before = max(values) if self._before is None else self._before
                self.is_seen = self.is_seen or self.sign.calls(self._before, max(values))
