"""A minimal JSON-RPC client: single calls and batches over kept-alive connections."""

import itertools
import json
from collections.abc import Sequence
from typing import Any

import urllib3


class RpcUnreachable(ConnectionError):
    """The node did not respond."""


class RpcFailed(RuntimeError):
    """The node returned an error object."""

    def __init__(self, method: str, error: dict[str, Any]) -> None:
        super().__init__(f"{method}: {error.get('message')}")
        self.code: int | None = error.get("code")
        self.data: Any = error.get("data")


class Rpc:
    """A node behind one URL."""

    def __init__(self, url: str, *, timeout: float = 60) -> None:
        self.url = url
        self._pool = urllib3.PoolManager(retries=False, timeout=timeout)
        self._numbers = itertools.count(1)

    def call(self, method: str, *params: Any) -> Any:
        """Return the result of one call."""
        return self.batch([(method, *params)])[0]

    def batch(self, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Return the results of `(method, *params)` calls, in order; the first error is raised."""
        bodies = [
            {"jsonrpc": "2.0", "id": next(self._numbers), "method": method, "params": params}
            for method, *params in calls
        ]
        results = {result["id"]: result for result in self._post(bodies)} if bodies else {}
        return [_result(body["method"], results[body["id"]]) for body in bodies]

    def _post(self, bodies: list[dict[str, Any]]) -> list[dict[str, Any]]:
        headers = {"content-type": "application/json"}
        try:
            response = self._pool.request("POST", self.url, body=json.dumps(bodies), headers=headers)
        except urllib3.exceptions.HTTPError as error:
            raise RpcUnreachable(f"{self.url} does not respond") from error
        replies: list[dict[str, Any]] = response.json()
        return replies


def _result(method: str, answer: dict[str, Any]) -> Any:
    if "error" in answer:
        raise RpcFailed(method, answer["error"])
    return answer["result"]
