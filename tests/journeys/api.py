"""The service's HTTP API as a caller sees it that wants to look at every answer, refusals included."""

import json
from dataclasses import dataclass
from typing import Any

import urllib3

# Room for a connection per thread of a storm; patience for the last of it.
_POOL = urllib3.PoolManager(maxsize=256, retries=False, timeout=120)


@dataclass(frozen=True)
class Answer:
    """A whole answer."""

    status: int
    content_type: str
    retry_after: int | None
    body: dict[str, Any]


@dataclass
class Api:
    """A client whose every request has a connection of its own, since the other end is killed now and then."""

    base_url: str
    token: str | None = None

    def ask(self, path: str, body: dict[str, Any] | None = None, *, method: str | None = None) -> Answer:
        """Return the answer to a POST of the body, or to a GET, or as `method` says; no status is an error."""
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
        return Answer(response.status, kind, int(wait) if wait else None, response.json())
