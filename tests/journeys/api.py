"""The service's HTTP API as a caller sees it that wants to look at every response, refusals included."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import urllib3

# Room for a connection per thread of a storm; patience for the last of it.
_POOL = urllib3.PoolManager(maxsize=256, retries=False, timeout=120)
_PATIENCE_SECONDS = 300
# For as long as a web process remembers that Redis has failed; it asks its callers to wait for longer.
_PAUSE_SECONDS = 1.2


@dataclass(frozen=True)
class ApiResponse:
    """A whole response."""

    status: int
    content_type: str
    retry_after: int | None
    body: dict[str, Any]


@dataclass
class Api:
    """A client whose every request has a connection of its own, since the other end is killed now and then."""

    base_url: str
    token: str | None = None

    def ask(self, path: str, body: dict[str, Any] | None = None, *, method: str | None = None) -> ApiResponse:
        """Return the response to a POST of the body, or to a GET, or by `method`; no status is an error."""
        headers = {"content-type": "application/json", "connection": "close"}
        if self.token:
            headers["authorization"] = f"Bearer {self.token}"
        response = _POOL.request(
            method or ("GET" if body is None else "POST"),
            self.base_url + path,
            body=None if body is None else json.dumps(body),
            headers=headers,
        )
        wait = response.headers.get("retry-after")
        kind = response.headers.get("content-type", "")
        return ApiResponse(response.status, kind, int(wait) if wait else None, response.json())

    def ask_until_served(
        self, path: str, body: dict[str, Any] | None = None, *, method: str | None = None
    ) -> ApiResponse:
        """Ask as a patient caller does, who repeats a request that got 503; return what comes then."""
        return until_served(lambda: self.ask(path, body, method=method))


def until_served(ask: Callable[[], ApiResponse], *, only_code: str | None = None) -> ApiResponse:
    """
    Retry while the response is a 503 with Retry-After, and with `only_code` if that is given.

    On a busy machine a node or Redis may take longer than the service waits for it, also when nothing is broken.
    """
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        response = ask()
        is_served = response.status != 503 or only_code not in {None, response.body["code"]}
        if is_served or time.monotonic() > deadline:
            return response
        assert response.retry_after is not None, response
        time.sleep(min(response.retry_after, _PAUSE_SECONDS))
