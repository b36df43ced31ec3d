"""What the API was asked and what it answered, for tests to count."""

import threading

from devstack.stripe.state.things import Thing
from devstack.stripe.wire.exchange import Request, Response
from devstack.stripe.wire.refusals import Malformed

_LONGEST = 20_000


class RequestLog:
    """The requests since the start or since the log was cleared, oldest first."""

    def __init__(self) -> None:
        self._entries: list[Thing] = []
        self._lock = threading.Lock()

    def begin(self, request: Request, identifier: str) -> Thing:
        """Note that the request came."""
        entry: Thing = {
            "id": identifier,
            "method": request.method,
            "path": request.path,
            "params": _params(request),
            "idempotency_key": request.headers.get("idempotency-key"),
            "status": None,
            "replayed": False,
        }
        with self._lock:
            self._entries.append(entry)
            del self._entries[:-_LONGEST]
        return entry

    def end(self, entry: Thing, response: Response) -> None:
        """Note how it was answered; a connection that broke off has the status 0."""
        entry["status"] = response.status
        entry["replayed"] = "Idempotent-Replayed" in response.headers

    def entries(self) -> list[Thing]:
        """Return what was noted."""
        with self._lock:
            return list(self._entries)

    def clear(self) -> None:
        """Forget what was noted."""
        with self._lock:
            self._entries.clear()


def _params(request: Request) -> Thing:
    try:
        return request.form
    except Malformed:
        return {}
