"""Requests to the service, their errors and retries."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import urllib3

from credit_relay_client.schema import Problem, ProblemCode

_Result = TypeVar("_Result")
_TIMEOUT_SECONDS = 40
_OWNER = "0x8da5cb5b"  # owner()
_WAIT_STATUSES = {429, 503}
_FIRST_PAUSE_SECONDS = 0.5
# The longest retry at a URL from which the service has never responded: the URL is probably wrong.
_FIRST_CONTACT_SECONDS = 4
_PROBLEM_MEMBERS = Problem.__required_keys__


class RelayProblem(RuntimeError):
    """
    The service rejected a request. Branch on `code`; a newer service may send codes that its type does not include.

    `members` has the additional members of some codes, such as `expectedNonce` or `clientSecret`. `retry_after` is the
    time in seconds until the next attempt; None if a retry is pointless. Give the `request_id` to support.
    """

    def __init__(self, problem: Mapping[str, Any], *, retry_after: float | None = None) -> None:
        super().__init__(f"{problem['code']}: {problem['detail']}")
        self.code: ProblemCode = problem["code"]
        self.status: int = problem["status"]
        self.detail: str = problem["detail"]
        self.request_id: str | None = problem.get("requestId")
        self.members = {name: value for name, value in problem.items() if name not in _PROBLEM_MEMBERS}
        self.retry_after = retry_after


class ServiceUnreachable(ConnectionError):
    """No response of the service: the network failed, or a proxy responded instead."""


@dataclass
class Service:
    """The service at one URL; it `is_known` once it has responded there, maybe on an earlier visit."""

    url: str
    patience_seconds: float = 60
    is_known: bool = False
    _pool: urllib3.PoolManager = field(
        default_factory=lambda: urllib3.PoolManager(maxsize=32, retries=False, timeout=_TIMEOUT_SECONDS)
    )

    def once(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """
        Make one attempt and return the response's body.

        Raises:
            RelayProblem: the service rejected it.
            ServiceUnreachable: no response of the service.
        """
        url = self.url.rstrip("/") + path
        try:
            response = self._pool.request(method, url, json=body, headers=headers)
            answer = response.json()
        except (urllib3.exceptions.HTTPError, ValueError) as error:
            raise self._unreachable(f"No response of {self.url} to {method} {path}.") from error
        is_problem = isinstance(answer, dict) and answer.keys() >= _PROBLEM_MEMBERS
        self.is_known |= is_problem or response.status == 200
        if response.status == 200:
            return answer
        if not is_problem:
            raise self._unreachable(f"{self.url} responded {response.status} to {path}.")
        raise RelayProblem(answer, retry_after=_retry_after(response))

    def _unreachable(self, text: str) -> ServiceUnreachable:
        return ServiceUnreachable(text if self.is_known else f"{text} Is it the URL of the service?")

    def patiently(self, attempt: Callable[[], _Result], *, seconds: float | None = None) -> _Result:
        """
        Retry an attempt while the service is busy or unreachable, for at most `seconds`.

        If the service has never responded, this takes four seconds at most, because the URL is probably wrong.

        The attempt must be idempotent. All requests of this package are: the same signed relay call is one transaction,
        a subscription is created once, and a check-in, a purchase and a new profile have an idempotency key.
        """
        began_at, patience = time.monotonic(), self.patience_seconds if seconds is None else seconds
        pause = _FIRST_PAUSE_SECONDS
        while True:
            try:
                return attempt()
            except (ServiceUnreachable, RelayProblem) as error:
                wait = error.retry_after if isinstance(error, RelayProblem) else pause
                longest = patience if self.is_known else min(patience, _FIRST_CONTACT_SECONDS)
                if wait is None or time.monotonic() + wait > began_at + longest:
                    raise
            time.sleep(wait)
            pause *= 2


def _retry_after(response: urllib3.BaseHTTPResponse) -> float | None:
    try:
        return max(float(response.headers["retry-after"]), 0.01)
    except (KeyError, ValueError):
        return 1 if response.status in _WAIT_STATUSES else None


class Node:
    """A node of the chain (JSON-RPC)."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._pool = urllib3.PoolManager(retries=False, timeout=_TIMEOUT_SECONDS)

    def call(self, method: str, *params: Any) -> Any:
        """Return the result of a method."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = cast("dict[str, Any]", self._pool.request("POST", self.url, json=body).json())
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error'].get('message')}")
        return answer["result"]

    @property
    def chain_id(self) -> int:
        """The chain's id."""
        return int(self.call("eth_chainId"), 16)

    def key_manager(self, profile: str) -> str:
        """Return the key manager of a profile: its owner."""
        owner: str = self.call("eth_call", {"to": profile, "data": _OWNER}, "latest")
        return "0x" + owner[-40:]
