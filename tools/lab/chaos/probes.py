"""Probes: the longest time without a response of the service during a trial."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import urllib3

_ANSWER_SECONDS, _AGAIN_SECONDS = 10.0, 0.02


class Probe:
    """Sends requests at intervals, retries at once on connection errors, and keeps the longest wait."""

    def __init__(
        self,
        ask: Callable[[urllib3.PoolManager], int],
        *,
        every_seconds: float,
        again_seconds: float = _AGAIN_SECONDS,
    ) -> None:
        """`ask` returns the status of a response; a 5xx counts as no response."""
        self._ask, self._every_seconds, self._again_seconds = ask, every_seconds, again_seconds
        self.longest = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Probe during the block."""
        self.longest = 0.0
        stop = threading.Event()
        thread = threading.Thread(target=self._watch, args=(stop,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def _watch(self, stop: threading.Event) -> None:
        pool = urllib3.PoolManager(retries=False, timeout=_ANSWER_SECONDS)
        while not stop.wait(self._every_seconds):
            started = time.monotonic()
            while not self._is_answered(pool) and not stop.wait(self._again_seconds):
                pass
            self.longest = max(self.longest, time.monotonic() - started)

    def _is_answered(self, pool: urllib3.PoolManager) -> bool:
        with suppress(urllib3.exceptions.HTTPError):
            return self._ask(pool) < 500
        return False


def health_probe(base_url: str) -> Probe:
    """Probe /healthz ten times a second."""
    return Probe(lambda pool: pool.request("GET", f"{base_url}/healthz").status, every_seconds=0.1)


def sign_in_probe(base_url: str, profile_address: str, *, again_seconds: float = _AGAIN_SECONDS) -> Probe:
    """Request a sign-in challenge once a second, which needs the database but not the node."""
    body = json.dumps({"address": profile_address})
    headers = {"content-type": "application/json"}
    return Probe(
        lambda pool: pool.request("POST", f"{base_url}/api/auth/nonce", body=body, headers=headers).status,
        every_seconds=1,
        again_seconds=again_seconds,
    )
