"""Requests to the API, for the client of the controls."""

from dataclasses import dataclass

from devstack.stripe.steering.channel import Channel, Thing


@dataclass(frozen=True)
class LoggedRequest:
    """One request to the API; `status` is 0 where the connection broke off and None while it runs."""

    id: str
    method: str
    path: str
    params: Thing
    idempotency_key: str | None
    status: int | None
    replayed: bool


class Requests(Channel):
    """Sees what the API was asked, and lets it answer badly."""

    def requests(self, method: str | None = None, path: str = "/") -> list[LoggedRequest]:
        """Return the logged requests whose path begins like this, oldest first."""
        found = [LoggedRequest(**entry) for entry in self._ask("GET", "requests")["requests"]]
        return [item for item in found if method in (None, item.method) and item.path.startswith(path)]

    def forget_requests(self) -> None:
        """Begin the log of requests anew."""
        self._ask("DELETE", "requests")

    def fail(
        self,
        status: int,
        *,
        count: int | None = 1,
        method: str | None = None,
        path: str | None = None,
        saved: bool = False,
    ) -> None:
        """Answer the next matching requests 409, 429 or 500 and do nothing."""
        self._tell("requests/fail", status=status, count=count, method=method, path=path, saved=saved)

    def error_after_commit(
        self,
        *,
        count: int | None = 1,
        method: str | None = None,
        path: str | None = None,
        saved: bool = False,
    ) -> None:
        """Do the work of the next matching requests and answer 500; `saved`: their keys keep answering it."""
        self._tell("requests/error_after_commit", count=count, method=method, path=path, saved=saved)

    def timeout_after_commit(
        self, seconds: float = 0, *, count: int | None = 1, method: str | None = None, path: str | None = None
    ) -> None:
        """Do the work of the next matching requests and break off, after that much silence."""
        self._tell("requests/timeout_after_commit", seconds=seconds, count=count, method=method, path=path)

    def slow(
        self, seconds: float, *, count: int | None = 1, method: str | None = None, path: str | None = None
    ) -> None:
        """Begin the next matching requests late."""
        self._tell("requests/slow", seconds=seconds, count=count, method=method, path=path)
